#include "bench/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace embank::latency_histogram_test {
namespace {

constexpr double kErrorMax = 1.0 / (1 << LatencyHistogram::kSubBucketBits);

// Durations of all magnitudes, evenly: 2^0 .. 2^50 ns.
std::vector<uint64_t> Durations(uint64_t count, uint64_t seed) {
  const CounterRandom random(seed);
  std::vector<uint64_t> durations(count);
  for (uint64_t i = 0; i < count; ++i) {
    durations[i] = random.Bits(2 * i) >> (64 - 1 - random.Bits(2 * i + 1) % 50);
  }
  return durations;
}

LatencyHistogram HistogramOf(const std::vector<uint64_t>& durations) {
  LatencyHistogram histogram;
  for (const uint64_t duration : durations) histogram.Record(duration);
  return histogram;
}

// The smallest duration that at least `fraction` of all do not exceed.
uint64_t ExactPercentile(std::vector<uint64_t> durations, double fraction) {
  std::sort(durations.begin(), durations.end());
  const double rank = std::ceil(fraction * static_cast<double>(durations.size()));
  return durations[std::max<size_t>(1, static_cast<size_t>(rank)) - 1];
}

TEST(LatencyHistogram, PercentilesAreWithinTheErrorBound) {
  for (const uint64_t count : {1u, 2u, 10u, 1000u, 100'000u}) {
    const std::vector<uint64_t> durations = Durations(count, count);
    const LatencyHistogram histogram = HistogramOf(durations);
    for (const double fraction : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const uint64_t exact = ExactPercentile(durations, fraction);
      const uint64_t told = histogram.PercentileNs(fraction);
      EXPECT_GE(told, exact) << count << " " << fraction;
      EXPECT_LE(static_cast<double>(told), static_cast<double>(exact) * (1.0 + kErrorMax))
          << count << " " << fraction;
    }
  }
}

TEST(LatencyHistogram, SmallDurationsAreExact) {
  LatencyHistogram histogram;
  for (uint64_t duration = 0; duration < 256; ++duration) histogram.Record(duration);
  for (uint64_t duration = 0; duration < 256; ++duration) {
    const double fraction = static_cast<double>(duration + 1) / 256.0;
    EXPECT_EQ(histogram.PercentileNs(fraction), duration);
  }
}

TEST(LatencyHistogram, ReachesTheLargestNumber) {
  LatencyHistogram histogram;
  histogram.Record(std::numeric_limits<uint64_t>::max());
  histogram.Record(0);
  EXPECT_EQ(histogram.PercentileNs(1.0), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(histogram.PercentileNs(0.5), 0u);
  EXPECT_EQ(histogram.max_ns(), std::numeric_limits<uint64_t>::max());
}

TEST(LatencyHistogram, NeverTellsMoreThanTheLongest) {
  LatencyHistogram histogram;
  histogram.Record(1'000'001);
  EXPECT_EQ(histogram.PercentileNs(0.5), 1'000'001u);
}

TEST(LatencyHistogram, MergedIsAsIfOneHadCountedAll) {
  const std::vector<uint64_t> first = Durations(1000, 1);
  const std::vector<uint64_t> second = Durations(3000, 2);
  std::vector<uint64_t> both = first;
  both.insert(both.end(), second.begin(), second.end());
  LatencyHistogram merged = HistogramOf(first);
  merged.Merge(HistogramOf(second));
  const LatencyHistogram whole = HistogramOf(both);
  EXPECT_EQ(merged.count(), 4000u);
  EXPECT_EQ(merged.max_ns(), whole.max_ns());
  for (int permille = 0; permille <= 1000; ++permille) {
    EXPECT_EQ(merged.PercentileNs(permille / 1000.0), whole.PercentileNs(permille / 1000.0));
  }
}

TEST(LatencyHistogram, BinsHaveEveryBatchBetweenTheirEnds) {
  for (const uint32_t bins_per_power : {1, 8, 128}) {
    const std::vector<uint64_t> durations = Durations(2000, 3);
    const std::vector<LatencyHistogram::Bin> bins = HistogramOf(durations).Bins(bins_per_power);
    ASSERT_FALSE(bins.empty());
    EXPECT_GT(bins.front().count, 0u);
    EXPECT_GT(bins.back().count, 0u);
    uint64_t sum = 0;
    for (size_t i = 0; i < bins.size(); ++i) {
      EXPECT_LT(bins[i].begin_ns, bins[i].end_ns);
      EXPECT_EQ(bins[i].begin_ns, i == 0 ? bins[0].begin_ns : bins[i - 1].end_ns);
      EXPECT_EQ(bins[i].count, static_cast<uint64_t>(std::count_if(
                                   durations.begin(), durations.end(), [&](uint64_t duration) {
                                     return duration >= bins[i].begin_ns &&
                                            duration < bins[i].end_ns;
                                   })));
      sum += bins[i].count;
    }
    EXPECT_EQ(sum, durations.size());
  }
}

TEST(LatencyHistogram, BinsReachTheLargestNumber) {
  LatencyHistogram histogram;
  histogram.Record(std::numeric_limits<uint64_t>::max());
  const std::vector<LatencyHistogram::Bin> bins = histogram.Bins(8);
  ASSERT_EQ(bins.size(), 1u);
  EXPECT_EQ(bins[0].begin_ns, uint64_t{15} << 60);
  EXPECT_EQ(bins[0].end_ns, std::numeric_limits<uint64_t>::max());
  histogram.Record(0);
  EXPECT_EQ(histogram.Bins(8).front().begin_ns, 0u);
  EXPECT_EQ(histogram.Bins(8).front().end_ns, 16u);
}

TEST(LatencyHistogram, EmptyTellsZero) {
  const LatencyHistogram histogram;
  EXPECT_TRUE(histogram.Bins(8).empty());
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.PercentileNs(0.5), 0u);
}

}  // namespace
}  // namespace embank::latency_histogram_test
