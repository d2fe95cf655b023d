#include "bench/kv_samples.h"

#include <gtest/gtest.h>

namespace embank::kv_samples_test {
namespace {

KvSample Sample(uint64_t positions, uint64_t unique_keys = 0) {
  KvSample sample;
  sample.timing.seconds = 1.0;
  sample.timing.positions = positions;
  sample.timing.latency.Record(1000);
  sample.unique_keys = unique_keys;
  return sample;
}

TEST(KvSamples, MedianIsTheMiddleOne) {
  EXPECT_EQ(Median({3.0}), 3.0);
  EXPECT_EQ(Median({9.0, 1.0, 5.0}), 5.0);
  EXPECT_EQ(Median({4.0, 1.0, 2.0, 3.0}), 2.0);
}

// The machine slows down from round to round, and the fraction stays the same.
TEST(KvSamples, FractionsAreOfTheLimitOfTheSameRound) {
  KvSamples samples;
  const KvCase engine{"absl", Phase::kLookup, 2, 100};
  const KvCase limit{kLimitName, Phase::kLookup, 2, 100};
  for (const uint64_t rate : {900u, 300u, 100u}) {
    samples.Record(engine, Sample(rate / 2));
    samples.Record(limit, Sample(rate));
  }
  const KvResult result = samples.Result(engine, 2);
  EXPECT_DOUBLE_EQ(*result.fraction_of_limit, 0.5);
  EXPECT_EQ(result.rows_per_second, 150.0);
  EXPECT_EQ(result.rows_per_second_min, 50.0);
  EXPECT_EQ(result.rows_per_second_max, 450.0);
  EXPECT_FALSE(samples.Result(limit, 2).fraction_of_limit.has_value());
}

TEST(KvSamples, UpdatesAreComparedByDistinctKeys) {
  KvSamples samples;
  const KvCase engine{"absl", Phase::kUpdate, 1, 100};
  samples.Record(engine, Sample(1000, 400));
  samples.Record({kLimitName, Phase::kUpdate, 1, 100}, Sample(4000, 1600));
  const KvResult result = samples.Result(engine, 1);
  EXPECT_EQ(*result.unique_rows_per_second, 400.0);
  EXPECT_EQ(result.rows_per_second, 1000.0);
  EXPECT_DOUBLE_EQ(*result.fraction_of_limit, 0.25);
}

TEST(KvSamples, SpeedupIsOverTheBaseThreadsOfTheSameEngine) {
  KvSamples samples;
  samples.Record({"absl", Phase::kLookup, 1, 100}, Sample(1000));
  samples.Record({"absl", Phase::kLookup, 2, 100}, Sample(1900));
  EXPECT_DOUBLE_EQ(*samples.Result({"absl", Phase::kLookup, 2, 100}, 1).speedup, 1.9);
  EXPECT_FALSE(samples.Result({"absl", Phase::kLookup, 1, 100}, 1).speedup.has_value());
  EXPECT_FALSE(samples.Result({"absl", Phase::kLookup, 1, 100}, 1).fraction_of_limit.has_value());
}

}  // namespace
}  // namespace embank::kv_samples_test
