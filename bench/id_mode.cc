#include "bench/id_mode.h"

#include "base/hash.h"
#include "base/status.h"
#include "base/str_cat.h"

namespace embank {

StatusOr<IdMode> ParseIdMode(const std::string& name) {
  for (IdMode mode : {IdMode::kPermuted, IdMode::kFirstAppearance, IdMode::kHashed}) {
    if (name == IdModeName(mode)) return mode;
  }
  return InvalidArgumentError(
      StrCat("'", name, "' is no id mode: permuted, first-appearance or hashed"));
}

const char* IdModeName(IdMode mode) {
  switch (mode) {
    case IdMode::kPermuted:
      return "permuted";
    case IdMode::kFirstAppearance:
      return "first-appearance";
    case IdMode::kHashed:
      return "hashed";
  }
  return "";
}

StatusOr<IdMapper> IdMapper::Create(IdMode mode, uint64_t n, uint64_t seed) {
  if (n == 0) return InvalidArgumentError("no rows to draw keys from");
  if (mode == IdMode::kFirstAppearance && n > kAppearancesMax) {
    return InvalidArgumentError(
        StrCat("id mode first-appearance holds at most ", kAppearancesMax, " rows"));
  }
  return IdMapper(mode, n, seed);
}

IdMapper::IdMapper(IdMode mode, uint64_t n, uint64_t seed)
    : mode_(mode), seed_(Mix(seed + kGoldenRatio)), permutation_(n, seed) {
  if (!MapIsStateless()) appearances_.resize(n);
}

void IdMapper::Map(std::span<uint64_t> ranks) {
  if (MapIsStateless()) {
    for (uint64_t& rank : ranks) rank = KeyOf(rank - 1);
    return;
  }
  for (uint64_t& rank : ranks) {
    uint32_t& appearance = appearances_[rank - 1];
    if (appearance == 0) appearance = ++appeared_;
    rank = appearance - 1;
  }
}

Key IdMapper::KeyOf(uint64_t i) const {
  switch (mode_) {
    case IdMode::kPermuted:
      return permutation_(i);
    case IdMode::kFirstAppearance:
      return i;
    case IdMode::kHashed:
      return Mix(i ^ seed_);
  }
  return i;
}

}  // namespace embank
