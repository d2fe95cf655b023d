#include "bench/unique_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace embank {
namespace {

using testing::ElementsAre;

TEST(UniqueKeys, AreThoseOfEachBatchInOrder) {
  const std::vector<Key> positions = {5, 9, 5, 5, 5, 5, 5, 5, 0, 9};
  const UniqueKeys unique(positions, 4);
  const KeySpan all(positions);
  EXPECT_THAT(unique.Of(all.subspan(0, 4)), ElementsAre(5, 9));
  EXPECT_THAT(unique.Of(all.subspan(4, 4)), ElementsAre(5));
  EXPECT_THAT(unique.Of(all.subspan(8, 2)), ElementsAre(0, 9));
}

TEST(UniqueKeys, DistinctKeysAllStay) {
  const std::vector<Key> positions = {3, 2, 1, ~Key{0}};
  const UniqueKeys unique(positions, 100);
  EXPECT_THAT(unique.Of(positions), ElementsAre(3, 2, 1, ~Key{0}));
}

}  // namespace
}  // namespace embank
