// A reference interpreter of Algorithm 1 of PICASSO (HybridHash, ICDE 2022), as it is printed:
//
//   1. warm-up: while itr < warmup_iters, each queried id increments FCounter and is read from
//   cold;
//   2. lookup: an id of the hot storage hits, another one is read from cold; each one is counted;
//   3. flush: if itr mod flush_iters = 0, the hot storage becomes the top k of FCounter.
//
// The flush stands behind the lookup of its iteration. Between equal counts the lower id is first,
// about which the paper says nothing. The interpreter knows no planner, no heat and no row.
#ifndef EMBANK_TESTS_SUPPORT_ALGORITHM1_H_
#define EMBANK_TESTS_SUPPORT_ALGORITHM1_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace embank::test {

class Algorithm1 {
 public:
  using Id = uint64_t;

  struct Options {
    size_t k = 0;  // rows of the hot storage
    uint64_t warmup_iters = 100;
    uint64_t flush_iters = 100;  // at least 1
  };

  explicit Algorithm1(const Options& options) : options_(options) {}

  // One iteration. Returns how many of the ids, duplicates counted, hit the hot storage.
  uint64_t Iterate(std::span<const Id> ids) {
    uint64_t hits = 0;
    if (itr_ < options_.warmup_iters) {
      for (const Id id : ids) ++fcounter_[id];
    } else {
      for (const Id id : ids) {
        if (hot_.contains(id)) ++hits;
        ++fcounter_[id];
      }
      if (itr_ % options_.flush_iters == 0) Flush();
    }
    ++itr_;
    return hits;
  }

  // The ids of the hot storage.
  const std::unordered_set<Id>& hot() const { return hot_; }

 private:
  void Flush() {
    std::vector<std::pair<Id, uint64_t>> counts(fcounter_.begin(), fcounter_.end());
    const auto is_before = [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    };
    const size_t k = std::min(options_.k, counts.size());
    const auto end = counts.begin() + static_cast<ptrdiff_t>(k);
    std::nth_element(counts.begin(), end, counts.end(), is_before);
    hot_.clear();
    for (auto entry = counts.begin(); entry != end; ++entry) hot_.insert(entry->first);
  }

  const Options options_;
  uint64_t itr_ = 0;
  std::unordered_map<Id, uint64_t> fcounter_;
  std::unordered_set<Id> hot_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_ALGORITHM1_H_
