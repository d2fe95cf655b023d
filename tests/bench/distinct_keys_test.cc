#include "bench/distinct_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace embank::distinct_keys_test {
namespace {

using testing::ElementsAre;

TEST(DistinctKeys, AreThoseOfEachBatchInOrder) {
  const std::vector<Key> positions = {5, 9, 5, 5, 5, 5, 5, 5, 0, 9};
  const DistinctKeys distinct(positions, 4);
  const KeySpan all(positions);
  EXPECT_THAT(distinct.Of(all.subspan(0, 4)), ElementsAre(5, 9));
  EXPECT_THAT(distinct.Of(all.subspan(4, 4)), ElementsAre(5));
  EXPECT_THAT(distinct.Of(all.subspan(8, 2)), ElementsAre(0, 9));
}

TEST(DistinctKeys, WithoutDuplicatesAllStay) {
  const std::vector<Key> positions = {3, 2, 1, ~Key{0}};
  const DistinctKeys distinct(positions, 100);
  EXPECT_THAT(distinct.Of(positions), ElementsAre(3, 2, 1, ~Key{0}));
}

}  // namespace
}  // namespace embank::distinct_keys_test
