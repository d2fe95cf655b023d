#include "bench/access_counts.h"

#include <gtest/gtest.h>

#include <vector>

namespace embank::access_counts_test {
namespace {

TEST(AccessCounts, SharesOfTheMostFrequentKeys) {
  AccessCounts counts;
  // Key k of 1..100 comes k times: 5,050 accesses, the top 20 keys have 81 + ... + 100 = 1,810.
  for (Key key = 1; key <= 100; ++key) counts.Add(std::vector<Key>(key, key));
  EXPECT_EQ(counts.accesses(), 5050u);
  EXPECT_EQ(counts.distinct(), 100u);
  EXPECT_DOUBLE_EQ(counts.ShareOfTop(0.01), 100.0 / 5050);
  EXPECT_DOUBLE_EQ(counts.ShareOfTop(0.10), 955.0 / 5050);
  EXPECT_DOUBLE_EQ(counts.ShareOfTop(0.20), 1810.0 / 5050);
  EXPECT_DOUBLE_EQ(counts.ShareOfTop(1.0), 1.0);
}

TEST(AccessCounts, TopHasAtLeastOneKey) {
  AccessCounts counts;
  counts.Add(std::vector<Key>{1, 2, 2, 3});
  EXPECT_DOUBLE_EQ(counts.ShareOfTop(0.01), 0.5);
}

TEST(AccessCounts, PartOfAKeyIsAKey) {
  AccessCounts counts;
  counts.Add(std::vector<Key>{1, 1, 1, 2, 2, 3});
  EXPECT_DOUBLE_EQ(counts.ShareOfTop(0.5), 5.0 / 6);  // 1.5 of 3 keys: two
}

TEST(AccessCounts, NothingCountedIsZero) { EXPECT_EQ(AccessCounts().ShareOfTop(0.2), 0.0); }

}  // namespace
}  // namespace embank::access_counts_test
