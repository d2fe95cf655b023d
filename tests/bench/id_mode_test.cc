#include "bench/id_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "train/generator/zipf.h"

namespace embank::id_mode_test {
namespace {

using testing::ElementsAre;

constexpr uint64_t kSeed = 5;

TEST(Permutation, MapsEveryNumberOnce) {
  for (const uint64_t n : {1u, 2u, 3u, 4u, 10u, 63u, 64u, 65u, 1000u, 65536u, 65537u, 1000003u}) {
    const Permutation permutation(n, kSeed);
    std::vector<bool> hit(n);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t image = permutation(i);
      ASSERT_LT(image, n);
      ASSERT_FALSE(hit[image]) << "n " << n << " i " << i;
      hit[image] = true;
    }
  }
}

// 100 equal parts of the range get 10,000 / 100 of the first ten thousand numbers each: the
// statistic has 99 degrees of freedom, mean 99 and deviation 14.
TEST(Permutation, ScattersItsFirstNumbers) {
  constexpr uint64_t kN = 1'000'000;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Permutation permutation(kN, seed);
    std::vector<double> parts(100);
    for (uint64_t i = 0; i < 10'000; ++i) ++parts[permutation(i) / (kN / 100)];
    double statistic = 0.0;
    for (const double count : parts) statistic += (count - 100) * (count - 100) / 100;
    EXPECT_LT(statistic, 99 + 6 * 14.07) << seed;
  }
}

TEST(Permutation, NeighboursPart) {
  const Permutation permutation(1'000'000, kSeed);
  uint64_t near = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const auto a = static_cast<int64_t>(permutation(i));
    const auto b = static_cast<int64_t>(permutation(i + 1));
    near += std::abs(a - b) < 1000 ? 1 : 0;
  }
  EXPECT_LT(near, 60u);  // 0.2 % of 10,000 = 20 are expected
}

// Adding and multiplying alone would flip the lowest bit every time.
TEST(Permutation, LowestBitsOfNeighboursAreIndependent) {
  constexpr uint64_t kPairs = 10'000;
  const Permutation permutation(uint64_t{1} << 20, kSeed);
  uint64_t flips = 0;
  for (uint64_t i = 0; i < kPairs; ++i) flips += (permutation(i) ^ permutation(i + 1)) & 1;
  EXPECT_NEAR(static_cast<double>(flips), kPairs / 2.0, 6 * std::sqrt(kPairs / 4.0));
}

TEST(IdMode, HashedKeysAreDistinctAndFillAllBits) {
  constexpr uint64_t kN = 200'000;
  const IdMapper mapper = *IdMapper::Create(IdMode::kHashed, kN, kSeed);
  std::unordered_set<Key> keys;
  std::vector<uint64_t> ones(64);
  for (uint64_t i = 0; i < kN; ++i) {
    const Key key = mapper.KeyOf(i);
    EXPECT_TRUE(keys.insert(key).second);
    for (uint32_t bit = 0; bit < 64; ++bit) ones[bit] += (key >> bit) & 1;
  }
  for (const uint64_t count : ones) {
    EXPECT_NEAR(static_cast<double>(count), kN / 2.0, 6 * std::sqrt(kN / 4.0));
  }
}

TEST(IdMode, FirstAppearanceNumbersRanksInOrder) {
  IdMapper mapper = *IdMapper::Create(IdMode::kFirstAppearance, 10, kSeed);
  std::vector<uint64_t> stream = {9, 9, 1, 10, 9, 1};
  mapper.Map(stream);
  EXPECT_THAT(stream, ElementsAre(0, 0, 1, 2, 0, 1));
  stream = {3, 10};
  mapper.Map(stream);
  EXPECT_THAT(stream, ElementsAre(3, 2));
}

TEST(IdMode, FirstAppearanceGivesPopularRanksSmallKeys) {
  constexpr uint64_t kN = 100'000;
  IdMapper mapper = *IdMapper::Create(IdMode::kFirstAppearance, kN, kSeed);
  std::vector<uint64_t> ranks(200'000);
  ZipfSampler::Create(kN, 1.05, kSeed)->Ranks(0, ranks);
  std::vector<uint64_t> keys = ranks;
  mapper.Map(keys);
  std::unordered_map<uint64_t, uint64_t> key_of_rank;
  for (size_t i = 0; i < ranks.size(); ++i) {
    ASSERT_EQ(key_of_rank.emplace(ranks[i], keys[i]).first->second, keys[i]);
  }
  EXPECT_LT(key_of_rank.at(1), 100u);
  EXPECT_EQ(*std::max_element(keys.begin(), keys.end()), key_of_rank.size() - 1);
}

// In every mode, the keys that the ranks 1..n map to are the keys number 0..n-1.
TEST(IdMode, KeysOfRanksAreTheSetOfAllKeys) {
  constexpr uint64_t kN = 5000;
  for (IdMode mode : {IdMode::kPermuted, IdMode::kFirstAppearance, IdMode::kHashed}) {
    IdMapper mapper = *IdMapper::Create(mode, kN, kSeed);
    std::vector<uint64_t> mapped(kN);
    std::iota(mapped.rbegin(), mapped.rend(), 1);
    mapper.Map(mapped);
    std::vector<uint64_t> all;
    for (uint64_t i = 0; i < kN; ++i) all.push_back(mapper.KeyOf(i));
    std::sort(mapped.begin(), mapped.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(mapped, all) << IdModeName(mode);
    EXPECT_EQ(std::unique(all.begin(), all.end()), all.end()) << IdModeName(mode);
  }
}

TEST(IdMode, NamesAreParsedBack) {
  for (IdMode mode : {IdMode::kPermuted, IdMode::kFirstAppearance, IdMode::kHashed}) {
    EXPECT_EQ(*ParseIdMode(IdModeName(mode)), mode);
  }
  EXPECT_EQ(ParseIdMode("sorted").status().code(), StatusCode::kInvalidArgument);
}

TEST(IdMode, RefusesRangesThatItCannotHold) {
  EXPECT_FALSE(IdMapper::Create(IdMode::kPermuted, 0, kSeed).ok());
  EXPECT_FALSE(
      IdMapper::Create(IdMode::kFirstAppearance, IdMapper::kAppearancesMax + 1, kSeed).ok());
  EXPECT_TRUE(IdMapper::Create(IdMode::kPermuted, uint64_t{1} << 40, kSeed).ok());
}

}  // namespace
}  // namespace embank::id_mode_test
