#include "base/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>

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

}  // namespace
}  // namespace embank::test::hash_test
