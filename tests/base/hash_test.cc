#include "base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <vector>

#include "tests/support/inverse_mix.h"
#include "tests/support/random.h"

namespace embank::test::hash_test {
namespace {

TEST(Mix, GivesThePublishedOutputsOfSplitmix64) {
  // The generator that the finaliser belongs to, from seed 1234567: state += golden ratio.
  const uint64_t outputs[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                              4593380528125082431u, 16408922859458223821u};
  uint64_t state = 1234567;
  for (const uint64_t output : outputs) EXPECT_EQ(Mix(state += kGoldenRatio), output);
  EXPECT_EQ(Mix(0), 0u);
}

TEST(Mix, IsUndoneByItsInverse) {
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t x = random.Bits();
    ASSERT_EQ(InverseMix(Mix(x)), x);
    ASSERT_EQ(Mix(InverseMix(x)), x);
  }
  for (const uint64_t x : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    EXPECT_EQ(InverseMix(Mix(x)), x);
  }
}

TEST(Mix, EveryInputBitReachesEveryOutputBit) {
  Random random(2);
  for (int in = 0; in < 64; ++in) {
    uint64_t reached = 0;
    int flipped = 0;
    for (int i = 0; i < 256; ++i) {
      const uint64_t x = random.Bits();
      const uint64_t difference = Mix(x) ^ Mix(x ^ (uint64_t{1} << in));
      reached |= difference;
      flipped += std::popcount(difference);
    }
    EXPECT_EQ(reached, ~uint64_t{0}) << "input bit " << in;
    EXPECT_NEAR(flipped / 256.0, 32.0, 2.0) << "input bit " << in;
  }
}

// The sanity vectors that xxHash publishes for XXH3 with 64 bits: seed 0, bytes of a generator.
TEST(TableHash, GivesThePublishedVectorsOfXxh3) {
  std::string bytes;
  uint64_t generator = 2654435761u;
  for (int i = 0; i < 256; ++i) {
    bytes.push_back(static_cast<char>(generator >> 56));
    generator *= 11400714785074694797u;
  }
  const std::pair<size_t, uint64_t> vectors[] = {
      {0, 0x2D06800538D394C2u},  {1, 0xC44BDFF4074EECDBu},  {6, 0x27B56A84CD2D7325u},
      {12, 0xA713DAF0DFBB77E7u}, {24, 0xA3FE70BF9D3510EBu}, {48, 0x397DA259ECBA1F11u},
      {80, 0xBCDEFBBB2C47C90Au}, {195, 0xCD94217EE362EC3Au}};
  for (const auto& [length, hash] : vectors) {
    EXPECT_EQ(TableHash(bytes.substr(0, length)), hash) << length << " bytes";
  }
}

TEST(TableHash, CountsEveryByteZerosToo) {
  EXPECT_NE(TableHash("a"), TableHash(std::string("a\0", 2)));
  EXPECT_NE(TableHash("ab"), TableHash("ba"));
}

TEST(HashKey, PartsEqualKeysOfDifferentTablesAndDifferentKeysOfATable) {
  const uint64_t users = TableHash("users");
  const uint64_t items = TableHash("items");
  std::set<KeyHash> seen;
  for (Key key = 0; key < 1000; ++key) {
    EXPECT_EQ(HashKey(users, key), Mix(key ^ users));
    EXPECT_TRUE(seen.insert(HashKey(users, key)).second);
    EXPECT_TRUE(seen.insert(HashKey(items, key)).second);
  }
  EXPECT_TRUE(seen.insert(HashKey(users, ~Key{0})).second);
}

TEST(RangeOf, IsTheTopTwelveBits) {
  EXPECT_EQ(RangeOf(0), 0u);
  EXPECT_EQ(RangeOf(~KeyHash{0}), 4095u);
  EXPECT_EQ(RangeOf(uint64_t{1} << 52), 1u);
  EXPECT_EQ(RangeOf((uint64_t{1} << 52) - 1), 0u);
  EXPECT_EQ(kRangeCount, 4096u);
}

// The vectors of docs/arithmetic.md and more, computed by another program.
TEST(OwnerOf, GivesTheVectorsOfTheArithmetic) {
  constexpr size_t kCounts = 5;
  constexpr uint32_t kOwners[kCounts] = {2, 3, 8, 64, 256};
  struct Vector {
    const char* table;
    Key key;
    uint32_t owners[kCounts];
  };
  constexpr Vector kVectors[] = {
      {"users", 0u, {1, 1, 4, 34, 137}},
      {"users", 1u, {0, 0, 0, 5, 22}},
      {"users", 42u, {0, 0, 1, 15, 63}},
      {"users", 1000000007u, {1, 2, 7, 57, 228}},
      {"users", 18446744073709551615u, {0, 1, 3, 31, 127}},
      {"items", 0u, {1, 2, 5, 44, 178}},
      {"items", 1u, {1, 1, 4, 39, 159}},
      {"items", 42u, {1, 2, 5, 43, 173}},
      {"items", 1000000007u, {0, 0, 2, 16, 66}},
      {"items", 18446744073709551615u, {0, 1, 3, 26, 107}},
  };
  for (const Vector& vector : kVectors) {
    const KeyHash hash = HashKey(TableHash(vector.table), vector.key);
    EXPECT_EQ(OwnerOf(hash, 1), 0u);
    for (size_t i = 0; i < std::size(kOwners); ++i) {
      EXPECT_EQ(OwnerOf(hash, kOwners[i]), vector.owners[i])
          << vector.table << " " << vector.key << " among " << kOwners[i];
    }
  }
}

// Each of the 4,096 values of the mix's top bits has one owner, and the owners have equal runs of
// them, as far as they divide.
TEST(OwnerOf, GivesOwnersEqualShares) {
  for (uint32_t owners = 1; owners <= kOwnersMax; ++owners) {
    std::vector<uint32_t> shares(owners);
    for (uint64_t top = 0; top < uint64_t{1} << kOwnerBits; ++top) {
      const uint32_t owner = OwnerOf(InverseMix(top << (64 - kOwnerBits)), owners);
      ASSERT_LT(owner, owners);
      ++shares[owner];
    }
    const auto [least, most] = std::ranges::minmax(shares);
    EXPECT_EQ(least, (1u << kOwnerBits) / owners);
    EXPECT_LE(most - least, 1u);
  }
}

}  // namespace
}  // namespace embank::test::hash_test
