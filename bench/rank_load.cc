#include "bench/rank_load.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "bench/rank_ids.h"
#include "train/dense/slices.h"

namespace embank {
namespace {

// Lookups, one after the other; those of a field in turn.
class Loads {
 public:
  explicit Loads(uint32_t ranks) : by_hash_(ranks), by_feature_(ranks) {}

  void BeginField(uint32_t field) {
    field_ = field;
    lookups_.clear();
  }
  void Add(Key id) {
    const auto ranks = static_cast<uint32_t>(by_hash_.size());
    ++by_hash_[OwnerOf(HashKey(RankIds::TableHashOf(field_), id), ranks)];
    ++by_feature_[field_ % ranks];
    largest_ = std::max(largest_, ++lookups_[id]);
  }

  RankLoad Result() const {
    const auto all =
        static_cast<double>(std::accumulate(by_hash_.begin(), by_hash_.end(), uint64_t{0}));
    const auto max_by_mean = [&](const std::vector<uint64_t>& loads) {
      return static_cast<double>(*std::ranges::max_element(loads)) *
             static_cast<double>(loads.size()) / all;
    };
    return {.by_hash = max_by_mean(by_hash_),
            .by_feature = max_by_mean(by_feature_),
            .largest_share = static_cast<double>(largest_) / all};
  }

 private:
  std::vector<uint64_t> by_hash_;  // of each rank
  std::vector<uint64_t> by_feature_;
  uint64_t largest_ = 0;  // of an id
  uint32_t field_ = 0;
  std::unordered_map<Key, uint64_t> lookups_;  // of the field
};

}  // namespace

RankLoadFigure RunRankLoad(const RankLoadOptions& options) {
  const RankIds source;
  Loads all(options.ranks);
  Loads distinct(options.ranks);
  for (uint32_t field = 0; field < RankIds::kFields; ++field) {
    all.BeginField(field);
    distinct.BeginField(field);
    for (uint32_t batch = 0; batch < options.batches; ++batch) {
      const std::vector<Key> ids =
          source.Of(field, uint64_t{batch} * options.samples, options.samples);
      for (const Key id : ids) all.Add(id);
      for (uint32_t slice = 0; slice < kSlicesDefault; ++slice) {
        const SampleRange range = SliceOf(options.samples, kSlicesDefault, slice);
        const std::unordered_set<Key> of_slice(ids.begin() + range.begin, ids.begin() + range.end);
        for (const Key id : of_slice) distinct.Add(id);
      }
    }
  }
  return {.all = all.Result(), .distinct = distinct.Result()};
}

}  // namespace embank
