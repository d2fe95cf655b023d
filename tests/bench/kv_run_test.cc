#include "bench/kv_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "base/threads/clock.h"
#include "bench/machine.h"
#include "tests/bench/temporary_file.h"

namespace embank::kv_run_test {
namespace {

using testing::HasSubstr;

KvOptions SmallRun() {
  KvOptions options;
  options.rows = 20'000;
  options.shape.dim = 4;
  options.batch = 512;
  options.seconds = 0.01;
  options.rounds = 2;
  options.threads = {2};
  return options;
}

StatusOr<KvReport> RunQuietly(const KvOptions& options) {
  Progress progress(stderr, SteadyClock());
  return RunKv(options, &progress);
}

TEST(KvRun, MeasuresEveryPhaseOfEveryEngine) {
  const KvReport report = *RunQuietly(SmallRun());
  ASSERT_EQ(report.results.size(), 9u);
  size_t i = 0;
  for (const Phase phase : {Phase::kFill, Phase::kLookup, Phase::kUpdate}) {
    for (const char* engine : {"embank", "libcuckoo", "absl"}) {
      const KvResult& result = report.results[i++];
      EXPECT_EQ(result.engine, engine);
      EXPECT_EQ(result.phase, phase);
      EXPECT_GT(result.rows_per_second, 0.0);
      EXPECT_LE(result.rows_per_second_min, result.rows_per_second);
      EXPECT_GE(result.rows_per_second_max, result.rows_per_second);
      EXPECT_FALSE(result.index_bytes_per_row.has_value());
      EXPECT_GT(result.bytes_per_row, 16 + 2 * 4 * 4);  // header, vector, Adagrad's sums
      EXPECT_GT(result.batch_p50_us, 0.0);
      EXPECT_LE(result.batch_p50_us, result.batch_p99_us);
      EXPECT_LE(result.batch_p99_us, result.batch_p999_us);
    }
  }
  EXPECT_EQ(report.rows, 20'000u);
}

TEST(KvRun, RunsOnlyWhatItIsAskedFor) {
  KvOptions options = SmallRun();
  options.engines = {"absl"};
  options.phases = {Phase::kLookup};
  options.shape.optimizer = Optimizer::kNone;
  const KvReport report = *RunQuietly(options);
  ASSERT_EQ(report.results.size(), 1u);
  EXPECT_EQ(report.results[0].phase, Phase::kLookup);
  EXPECT_EQ(report.results[0].engine, "absl");
}

TEST(KvRun, ComparesEveryPhaseWithTheLimitOfTheSameThreads) {
  KvOptions options = SmallRun();
  options.engines = {"embank", "absl"};
  options.threads = {1, 2};
  options.distribution = *ParseDistribution("zipf:1.05");
  const KvReport report = *RunQuietly(options);
  ASSERT_EQ(report.results.size(), 3u * 2 * 2);
  ASSERT_EQ(report.limits.size(), 3u * 2);
  for (const KvResult& result : report.results) {
    ASSERT_TRUE(result.fraction_of_limit.has_value());
    EXPECT_TRUE(std::isfinite(*result.fraction_of_limit));
    EXPECT_GT(*result.fraction_of_limit, 0.0);
    EXPECT_EQ(result.speedup.has_value(), result.threads == 2);
    EXPECT_EQ(result.unique_rows_per_second.has_value(), result.phase == Phase::kUpdate);
    EXPECT_GE(result.tail, 1.0);
  }
  for (const KvResult& limit : report.limits) {
    EXPECT_GT(limit.rows_per_second, 0.0);
    EXPECT_FALSE(limit.fraction_of_limit.has_value());
  }
}

// Zipf's batches of 512 among 20,000 rows: some keys come many times, and some once.
TEST(KvRun, CountsDistinctKeysOfUpdates) {
  KvOptions options = SmallRun();
  options.engines = {"absl"};
  options.phases = {Phase::kUpdate};
  options.distribution = *ParseDistribution("zipf:1.05");
  const KvReport report = *RunQuietly(options);
  const KvResult& update = report.results.at(0);
  EXPECT_LT(*update.unique_rows_per_second, 0.9 * update.rows_per_second);
  EXPECT_GT(*update.unique_rows_per_second, 0.2 * update.rows_per_second);
}

TEST(KvRun, SmallCallsHaveLatenciesAndNoLimit) {
  KvOptions options = SmallRun();
  options.phases = {Phase::kSmall};
  options.engines = {"embank"};
  options.batch = 16;  // less than the larger of the calls
  const KvReport report = *RunQuietly(options);
  ASSERT_EQ(report.results.size(), 2u);
  EXPECT_TRUE(report.limits.empty());
  EXPECT_EQ(report.results[0].batch, 1u);
  EXPECT_EQ(report.results[1].batch, 64u);
  for (const KvResult& result : report.results) {
    EXPECT_EQ(result.phase, Phase::kSmall);
    EXPECT_GT(result.batch_p50_us, 0.0);
    EXPECT_GE(result.batch_p99_us, result.batch_p50_us);
    EXPECT_FALSE(result.fraction_of_limit.has_value());
  }
}

TEST(KvRun, ReplaysATrace) {
  const TemporaryFile file(".txt", "1\n2\n3\n2\n1\n18446744073709551615\n");
  KvOptions options = SmallRun();
  options.distribution = *ParseDistribution("trace:" + file.path());
  const KvReport report = *RunQuietly(options);
  EXPECT_EQ(report.rows, 4u);
  EXPECT_EQ(report.positions, 6u);
}

// A location and a tag take 8 bytes; with what no map can do without, and while it grows, the index
// takes more than that and less than 200.
TEST(KvRun, TellsIndexBytesPastAMillionRows) {
  KvOptions options = SmallRun();
  options.rows = kIndexRowsMin + 1000;
  options.shape = {1, ValueType::kF32, Optimizer::kNone};
  options.phases = {Phase::kFill};
  options.rounds = 1;
  const KvReport report = *RunQuietly(options);
  ASSERT_EQ(report.results.size(), 3u);
  for (const KvResult& result : report.results) {
    ASSERT_TRUE(result.index_bytes_per_row.has_value()) << result.engine;
    EXPECT_GT(*result.index_bytes_per_row, 8.0) << result.engine;
    EXPECT_LT(*result.index_bytes_per_row, 200.0) << result.engine;
  }
}

TEST(KvRun, RefusesMoreRowsThanTheMachineHolds) {
  KvOptions options = SmallRun();
  options.rows = kBenchRowsMax;
  const Status status = RunQuietly(options).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--rows: "));
}

TEST(KvRun, RefusesATraceOfMoreRowsThanTheMachineHolds) {
  constexpr uint32_t kKeys = 1 << 22;
  constexpr uint64_t kNeededBytes = uint64_t{kKeys} * 48 << 10;  // dim 4096, Adam: 48 KiB of floats
  if (DescribeMachine().memory_available_bytes > kNeededBytes) GTEST_SKIP() << "they fit here";
  std::string contents;
  for (uint32_t key = 0; key < kKeys; ++key) {
    for (const int shift : {24, 16, 8, 0}) contents += static_cast<char>(key >> shift);
  }
  const TemporaryFile trace(".bin", contents);
  KvOptions options = SmallRun();
  options.shape = {4096, ValueType::kF32, Optimizer::kAdam};
  options.distribution = {Distribution::Kind::kTrace, 0.0, trace.path()};
  const Status status = RunQuietly(options).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("--dist trace:" + trace.path() + ": 4194304"));
}

}  // namespace
}  // namespace embank::kv_run_test
