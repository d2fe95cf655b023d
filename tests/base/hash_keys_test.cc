#include "base/hash_keys.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/hash.h"
#include "tests/support/random.h"

namespace embank::test::hash_keys_test {
namespace {

TEST(HashKeys, IsHashKeyOfEachAndWritesNoFurther) {
  constexpr KeyHash kUntouched = 0xA5A5A5A5A5A5A5A5u;
  Random random(1);
  for (size_t count = 0; count <= 70; ++count) {
    const uint64_t table_hash = random.Bits();
    std::vector<Key> keys(count);
    for (Key& key : keys) key = random.Bits();
    std::vector<KeyHash> hashes(count + 8, kUntouched);
    HashKeys(table_hash, keys, hashes.data());
    for (size_t i = 0; i < hashes.size(); ++i) {
      ASSERT_EQ(hashes[i], i < count ? HashKey(table_hash, keys[i]) : kUntouched) << i;
    }
  }
}

}  // namespace
}  // namespace embank::test::hash_keys_test
