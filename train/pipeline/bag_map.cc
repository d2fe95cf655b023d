#include "train/pipeline/bag_map.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace embank {
namespace {

constexpr uint32_t kNoBag = UINT32_MAX;

}  // namespace

void BagMap::CountOccurrences(const UniqueIds& ids, std::span<const uint32_t> counts) {
  EMBANK_CHECK(counts.size() == first_.size());
  std::exclusive_scan(counts.begin(), counts.end(), first_.begin(), 0u);
  occurrences_.assign(first_.back() + counts.back(), 0);
  for (const IdPlace place : ids.index) ++occurrences_[first_[place.owner()] + place.number()];
  next_.resize(occurrences_.size());
  std::exclusive_scan(occurrences_.begin(), occurrences_.end(), next_.begin(), 0u);
}

void BagMap::Run(const UniqueIds& ids, std::span<uint32_t> counts, const MappedBags& bags) {
  EMBANK_CHECK(bags.ends.size() <= kBagsMax && bags.bags.size() == ids.index.size());
  CountOccurrences(ids, counts);
  std::ranges::fill(bags.bag_counts, 0u);
  std::ranges::fill(last_, kNoBag);
  uint32_t places = 0;
  uint32_t position = 0;
  for (uint32_t bag = 0; bag < bags.ends.size(); ++bag) {
    for (; position < bags.ends[bag]; ++position) {
      const IdPlace id = ids.index[position];
      const uint32_t owner = id.owner();
      if (last_[owner] != bag) {
        last_[owner] = bag;
        // No place is written that is still to be read: a bag has as many ids as owners, or more.
        ids.index[places++] = {owner << IdPlace::kNumberBits | bags.bag_counts[owner]++};
      }
      const uint32_t at = next_[first_[owner] + id.number()]++;
      bags.bags[at] = static_cast<uint16_t>(bags.bag_counts[owner] - 1);
      if (!bags.weights.empty()) bags.weights_by_id[at] = bags.weights[position];
    }
    bags.ends[bag] = places;
  }
  EMBANK_CHECK(position == ids.index.size());
  if (std::ranges::any_of(occurrences_, [](uint32_t count) { return count > UINT16_MAX; })) {
    SplitFrequent(ids, counts);
  }
}

// The occurrences stay where they are.
void BagMap::SplitFrequent(const UniqueIds& ids, std::span<uint32_t> counts) {
  std::vector<Key> unique;
  std::vector<uint16_t> touches;
  const auto add = [&](uint32_t number, uint32_t count) {
    unique.push_back(ids.unique[number]);
    touches.push_back(static_cast<uint16_t>(count));
  };
  for (size_t owner = 0; owner < counts.size(); ++owner) {
    const uint32_t end = first_[owner] + counts[owner];
    for (uint32_t number = first_[owner]; number < end; ++number) {
      uint32_t rest = occurrences_[number];
      for (; rest > UINT16_MAX; rest -= UINT16_MAX) {
        add(number, UINT16_MAX);
        ++counts[owner];
      }
      add(number, rest);
    }
  }
  EMBANK_CHECK(unique.size() <= ids.unique.size());
  std::ranges::copy(unique, ids.unique.begin());
  std::ranges::copy(touches, ids.touches.begin());
}

}  // namespace embank
