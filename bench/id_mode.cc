#include "bench/id_mode.h"

#include <algorithm>
#include <bit>

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

Permutation::Permutation(uint64_t n, uint64_t seed)
    : n_(n),
      seed_(Mix(seed)),
      bits_(std::max(1, 64 - std::countl_zero(n - 1))),
      mask_(~uint64_t{0} >> (64 - bits_)) {}

uint64_t Permutation::Scramble(uint64_t x) const {
  // Each line is a bijection of bits_ bits: adding, multiplying by an odd number, folding the upper
  // half onto the lower.
  const uint32_t shift = (bits_ + 1) / 2;
  for (uint64_t round = 0; round < 4; ++round) {
    const uint64_t key = Mix(seed_ + round);
    x = (x + key) & mask_;
    x = (x * (key | 1)) & mask_;
    x ^= x >> shift;
  }
  return x;
}

uint64_t Permutation::operator()(uint64_t i) const {
  // Walking on until the value falls below n stays on one cycle, so the walk is a bijection too;
  // less than half of the values lie above, so it takes fewer than two steps on average.
  uint64_t x = Scramble(i);
  while (x >= n_) x = Scramble(x);
  return x;
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
