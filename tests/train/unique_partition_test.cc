#include "train/pipeline/unique_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/hash.h"
#include "tests/support/random.h"

namespace embank::test::unique_partition_test {
namespace {

constexpr uint64_t kTable = 0x1234567890abcdef;

// Unique first, then Partition: two passes, as they are defined.
struct Reference {
  Reference(KeySpan ids, uint32_t owners) : counts(owners) {
    std::vector<Key> distinct;
    for (const Key id : ids) {
      if (std::ranges::find(distinct, id) == distinct.end()) distinct.push_back(id);
    }
    std::map<Key, uint32_t> places;
    for (uint32_t owner = 0; owner < owners; ++owner) {
      for (const Key id : distinct) {
        if (OwnerOf(HashKey(kTable, id), owners) != owner) continue;
        unique.push_back(id);
        touches.push_back(static_cast<uint16_t>(std::ranges::count(ids, id)));
        places[id] = owner << 24 | counts[owner]++;
      }
    }
    for (const Key id : ids) index.push_back(places[id]);
  }
  std::vector<Key> unique;
  std::vector<uint16_t> touches;
  std::vector<uint32_t> index;  // the owner, then its place there in 24 bits
  std::vector<uint32_t> counts;
};

TEST(UniquePartition, IsUniqueAndThenPartition) {
  Random random(1);
  for (const uint32_t owners : {1u, 2u, 3u, 8u, 256u}) {
    UniquePartition unique_partition(owners);
    for (const size_t size : {0u, 1u, 2u, 63u, 64u, 500u, 1000u, 20u}) {
      std::vector<Key> ids(size);
      for (Key& id : ids)
        id = random.Bits() % 8 == 0 ? ~uint64_t{0} - random.Bits() % 3 : random.Bits() % 300;
      std::vector<Key> unique(size);
      std::vector<uint16_t> touches(size);
      std::vector<IdPlace> index(size);
      const uint32_t count = unique_partition.Run(ids, kTable, {unique, touches, index});
      unique.resize(count);
      touches.resize(count);
      const Reference reference(ids, owners);
      EXPECT_EQ(unique, reference.unique);
      EXPECT_EQ(touches, reference.touches);
      EXPECT_TRUE(std::ranges::equal(index, reference.index, {}, &IdPlace::bits));
      EXPECT_TRUE(std::ranges::equal(unique_partition.counts(), reference.counts));
    }
  }
}

TEST(UniquePartition, CountsTouchesUpToTheLargestNumber) {
  for (const uint32_t owners : {1u, 2u}) {
    const std::vector<Key> ids(UINT16_MAX + 2, 5);
    std::vector<Key> unique(ids.size());
    std::vector<uint16_t> touches(ids.size());
    std::vector<IdPlace> index(ids.size());
    ASSERT_EQ(UniquePartition(owners).Run(ids, kTable, {unique, touches, index}), 1u);
    EXPECT_EQ(touches[0], UINT16_MAX);
  }
}

}  // namespace
}  // namespace embank::test::unique_partition_test
