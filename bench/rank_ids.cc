#include "bench/rank_ids.h"

#include "base/hash.h"
#include "base/str_cat.h"

namespace embank {

RankIds::RankIds() {
  for (uint32_t field = 0; field < kFields; ++field) {
    samplers_.push_back(*ZipfSampler::Create(kCardinality, kExponent, field));
  }
}

std::vector<Key> RankIds::Of(uint32_t field, uint64_t first, uint64_t samples) const {
  std::vector<Key> ids(samples);
  samplers_[field].Ranks(first, ids);
  for (Key& id : ids) id = Mix(id);
  return ids;
}

uint64_t RankIds::TableHashOf(uint32_t field) { return TableHash(StrCat("C", field)); }

}  // namespace embank
