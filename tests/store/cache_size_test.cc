#include "store/inspect/cache_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <unordered_map>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::cache_size_test {
namespace {

// The hit ratio of an LRU cache after it has been filled, by doing it.
double SimulatedHitRatio(uint64_t rows, double zipf_exponent, uint64_t cached_rows) {
  std::vector<double> ends;
  double sum = 0;
  for (uint64_t rank = 1; rank <= rows; ++rank) {
    sum += std::pow(static_cast<double>(rank), -zipf_exponent);
    ends.push_back(sum);
  }
  Random random(rows);
  std::list<uint64_t> order;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> places;
  constexpr uint64_t kWarmup = 60'000;
  constexpr uint64_t kCounted = 150'000;
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kWarmup + kCounted; ++i) {
    const double drawn = static_cast<double>(random.Bits() >> 11) * 0x1p-53 * sum;
    const auto key =
        static_cast<uint64_t>(std::lower_bound(ends.begin(), ends.end(), drawn) - ends.begin());
    const auto found = places.find(key);
    if (found != places.end()) {
      order.splice(order.begin(), order, found->second);
      hits += i >= kWarmup ? 1 : 0;
      continue;
    }
    order.push_front(key);
    places[key] = order.begin();
    if (places.size() <= cached_rows) continue;
    places.erase(order.back());
    order.pop_back();
  }
  return static_cast<double>(hits) / kCounted;
}

TEST(RowsForHitRatio, AreThoseWithWhichACacheHasIt) {
  constexpr uint64_t kRows = 20'000;
  for (const double zipf_exponent : {0.0, 0.7, 1.05, 1.4}) {
    for (const double hit_ratio : {0.5, 0.7, 0.9}) {
      const uint64_t rows = RowsForHitRatio(kRows, zipf_exponent, hit_ratio);
      EXPECT_NEAR(SimulatedHitRatio(kRows, zipf_exponent, rows), hit_ratio, 0.01)
          << zipf_exponent << ", " << rows << " rows";
    }
  }
}

TEST(RowsForHitRatio, GrowWithTheRatioAndNeverBeyondAllRows) {
  for (const uint64_t rows : {uint64_t{1}, uint64_t{4096}, uint64_t{5000}, uint64_t{1} << 38}) {
    uint64_t before = 0;
    for (const double hit_ratio : {0.0, 0.1, 0.5, 0.9, 0.999, 1.0}) {
      const uint64_t needed = RowsForHitRatio(rows, 1.0, hit_ratio);
      EXPECT_GE(needed, before);
      EXPECT_LE(needed, rows);
      before = needed;
    }
    EXPECT_GT(before, rows / 2);
  }
  EXPECT_EQ(RowsForHitRatio(0, 1.0, 0.5), 0u);
}

}  // namespace
}  // namespace embank::test::cache_size_test
