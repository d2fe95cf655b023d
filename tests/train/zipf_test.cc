#include "train/generator/zipf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "base/crc32c.h"

namespace embank::zipf_test {
namespace {

constexpr uint64_t kSeed = 17;

ZipfSampler Sampler(uint64_t n, double s) { return *ZipfSampler::Create(n, s, kSeed); }

std::vector<uint64_t> Ranks(uint64_t n, double s, uint64_t count) {
  std::vector<uint64_t> ranks(count);
  Sampler(n, s).Ranks(0, ranks);
  return ranks;
}

// Share of the positions whose rank is at most `top`.
double Coverage(const std::vector<uint64_t>& ranks, uint64_t top) {
  uint64_t covered = 0;
  for (const uint64_t rank : ranks) covered += rank <= top ? 1 : 0;
  return static_cast<double>(covered) / static_cast<double>(ranks.size());
}

// sum of r^-s for r = first..last.
double Harmonic(uint64_t first, uint64_t last, double s) {
  double sum = 0.0;
  for (uint64_t r = last; r >= first; --r) sum += std::pow(static_cast<double>(r), -s);
  return sum;
}

// Exponents that published coverage statements ask for, n = 1e6.
TEST(Zipf, CoversWhatThePapersSay) {
  constexpr uint64_t kN = 1'000'000;
  constexpr uint64_t kPositions = 500'000;
  EXPECT_NEAR(Coverage(Ranks(kN, 0.791, kPositions), kN / 5), 0.70, 0.01);
  EXPECT_NEAR(Coverage(Ranks(kN, 1.284, kPositions), kN / 5), 0.99, 0.01);
  EXPECT_NEAR(Coverage(Ranks(kN, 0.954, kPositions), kN * 68 / 1000), 0.76, 0.01);
  EXPECT_NEAR(Coverage(Ranks(kN, 1.124, kPositions), kN * 68 / 1000), 0.92, 0.01);
  EXPECT_NEAR(Coverage(Ranks(kN, 1.113, kPositions), kN * 7 / 1000), 0.816, 0.01);
  EXPECT_NEAR(Coverage(Ranks(kN, 1.375, kPositions), kN * 7 / 1000), 0.975, 0.01);
}

TEST(Zipf, CoversTheTopOfTenMillion) {
  struct Row {
    double s, top_0_1, top_1, top_20;
  };
  constexpr uint64_t kN = 10'000'000;
  for (const Row& row :
       {Row{0.8, .224, .376, .715}, Row{0.9, .386, .545, .817}, Row{1.0, .586, .724, .904},
        Row{1.05, .684, .801, .936}, Row{1.1, .769, .864, .959}, Row{1.2, .890, .944, .986}}) {
    const std::vector<uint64_t> ranks = Ranks(kN, row.s, 300'000);
    EXPECT_NEAR(Coverage(ranks, kN / 1000), row.top_0_1, 0.01) << row.s;
    EXPECT_NEAR(Coverage(ranks, kN / 100), row.top_1, 0.01) << row.s;
    EXPECT_NEAR(Coverage(ranks, kN / 5), row.top_20, 0.01) << row.s;
  }
}

// Ranks 1..1000 one by one and the rest as one class, those that are expected less than ten times
// with it. The statistic's mean is its degrees of freedom d, its deviation sqrt(2 d).
void ExpectExactFrequencies(uint64_t n, double s) {
  constexpr uint64_t kPositions = 1'000'000;
  const double positions = static_cast<double>(kPositions);
  const double total = Harmonic(1, n, s);
  uint64_t last = 0;
  while (last < std::min<uint64_t>(n - 1, 1000) &&
         positions * std::pow(static_cast<double>(last + 1), -s) / total >= 10.0) {
    ++last;
  }
  std::vector<double> counts(last + 1);
  for (const uint64_t rank : Ranks(n, s, kPositions)) {
    ASSERT_GE(rank, 1u);
    ASSERT_LE(rank, n);
    ++counts[rank <= last ? rank - 1 : last];
  }
  double statistic = 0.0;
  for (uint64_t i = 0; i <= last; ++i) {
    const double weight =
        i < last ? std::pow(static_cast<double>(i + 1), -s) : Harmonic(last + 1, n, s);
    const double expected = positions * weight / total;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  const double freedom = static_cast<double>(last);
  EXPECT_NEAR(statistic, freedom, 4.5 * std::sqrt(2.0 * freedom) + 4.5) << "n " << n << " s " << s;
}

TEST(Zipf, FrequenciesOfTheFirstThousandRanksAreExact) {
  ExpectExactFrequencies(50'000, 0.0);
  ExpectExactFrequencies(1'000'000, 0.79);
  ExpectExactFrequencies(1'000'000, 1.0);
  ExpectExactFrequencies(1'000'000, 1.05);
  ExpectExactFrequencies(1'000'000, 2.0);
}

TEST(Zipf, FrequenciesOfFewRanksAreExact) {
  for (const double s : {0.0, 0.3, 1.0, 1.5, 4.0}) {
    ExpectExactFrequencies(2, s);
    ExpectExactFrequencies(3, s);
    ExpectExactFrequencies(10, s);
  }
}

TEST(Zipf, OneRankIsAlwaysTheFirst) {
  for (const double s : {0.0, 1.0, 7.0}) {
    for (const uint64_t rank : Ranks(1, s, 100)) ASSERT_EQ(rank, 1u);
  }
}

TEST(Zipf, SteepestExponentGivesTheFirstRankOnly) {
  for (const uint64_t rank : Ranks(1'000'000, ZipfSampler::kExponentMax, 10'000)) {
    ASSERT_EQ(rank, 1u);
  }
}

TEST(Zipf, LargestRangeReachesItsUpperHalf) {
  uint64_t upper = 0;
  for (const uint64_t rank : Ranks(ZipfSampler::kRankMax, 0.0, 1000)) {
    ASSERT_LE(rank, ZipfSampler::kRankMax);
    upper += rank > ZipfSampler::kRankMax / 2 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(upper), 500.0, 80.0);
}

TEST(Zipf, ExponentsBesideOneAreLikeOne) {
  const std::vector<uint64_t> one = Ranks(1'000'000, 1.0, 20'000);
  for (const double s : {1.0 - 1e-9, 1.0 + 1e-9}) {
    const std::vector<uint64_t> beside = Ranks(1'000'000, s, 20'000);
    uint64_t different = 0;
    for (size_t i = 0; i < one.size(); ++i) different += one[i] != beside[i] ? 1 : 0;
    EXPECT_LE(different, 20u);
  }
}

double UniquePerBatch(double s) {
  constexpr uint64_t kBatch = 8192;
  constexpr uint64_t kBatches = 20;
  const ZipfSampler sampler = Sampler(1'000'000, s);
  std::vector<uint64_t> ranks(kBatch);
  uint64_t unique = 0;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    sampler.Ranks(batch * kBatch, ranks);
    unique += std::set<uint64_t>(ranks.begin(), ranks.end()).size();
  }
  return static_cast<double>(unique) / static_cast<double>(kBatch * kBatches);
}

TEST(Zipf, UniqueIdsPerBatchAreAsComputed) {
  EXPECT_NEAR(UniquePerBatch(0.79), 0.858, 0.005);
  EXPECT_NEAR(UniquePerBatch(1.05), 0.463, 0.005);
}

TEST(Zipf, OneAndTwoThreadsMakeTheSameStream) {
  constexpr uint64_t kPositions = 100'000;
  const ZipfSampler sampler = Sampler(1'000'000, 1.05);
  std::vector<uint64_t> whole(kPositions);
  sampler.Ranks(0, whole);
  std::vector<uint64_t> halves(kPositions);
  const std::span<uint64_t> span(halves);
  std::thread second([&] { sampler.Ranks(kPositions / 3, span.subspan(kPositions / 3)); });
  sampler.Ranks(0, span.first(kPositions / 3));
  second.join();
  EXPECT_EQ(whole, halves);
}

TEST(Zipf, SeedsMakeDifferentStreams) {
  const ZipfSampler other = *ZipfSampler::Create(1'000'000, 0.5, kSeed + 1);
  uint64_t equal = 0;
  for (uint64_t i = 0; i < 1000; ++i) equal += Sampler(1'000'000, 0.5).Rank(i) == other.Rank(i);
  EXPECT_LT(equal, 20u);
}

// The digests were taken once: a stream must not change with the compiler, its options or libm.
TEST(Zipf, StreamsAreTheSameOnEveryMachine) {
  const auto digest = [](double s) {
    const std::vector<uint64_t> ranks = Ranks(1'000'000, s, 100'000);
    return ExtendCrc32c(0, std::as_bytes(std::span(ranks)));
  };
  EXPECT_EQ(digest(0.0), 0x94F5936Eu);
  EXPECT_EQ(digest(0.79), 0xC5540170u);
  EXPECT_EQ(digest(1.0), 0x9BECC3DDu);
  EXPECT_EQ(digest(1.05), 0xDC3CBFAFu);
}

TEST(Zipf, RefusesNonsense) {
  for (const double s : {-0.1, 100.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(ZipfSampler::Create(10, s, 0).status().code(), StatusCode::kInvalidArgument);
  }
  for (const uint64_t n : {uint64_t{0}, ZipfSampler::kRankMax + 1}) {
    EXPECT_EQ(ZipfSampler::Create(n, 1.0, 0).status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace embank::zipf_test
