#include "bench/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/random.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "tests/bench/temporary_file.h"

namespace embank::replay_test {
namespace {

using testing::HasSubstr;

// 20,000 accesses to at most 3,000 keys, low ones more often.
const std::string& SomeTrace() {
  static const std::string text = [] {
    const CounterRandom random(1);
    std::string lines;
    for (uint64_t i = 0; i < 20'000; ++i) {
      StrAppend(&lines, random.Bits(2 * i) % (1 + random.Bits(2 * i + 1) % 3000), "\n");
    }
    return lines;
  }();
  return text;
}

StatusOr<ReplayReport> RunQuietly(const ReplayOptions& options) {
  Progress progress(stderr, SteadyClock());
  return RunReplay(options, &progress);
}

ReplayOptions OptionsFor(const TemporaryFile& file) {
  ReplayOptions options;
  options.trace_path = file.path();
  options.shape.dim = 5;
  options.batch = 512;
  return options;
}

TEST(Replay, ComparesEveryAnswerAndEveryRow) {
  const TemporaryFile file(".txt", SomeTrace());
  const ReplayReport report = *RunQuietly(OptionsFor(file));
  EXPECT_EQ(report.mismatches, 0u) << report.first_mismatch;
  EXPECT_EQ(report.positions, 20'000u);
  EXPECT_EQ(report.answers_compared, 20'000u);
  EXPECT_EQ(report.rows_compared, report.distinct_keys);
  EXPECT_GT(report.distinct_keys, 2000u);
  EXPECT_EQ(report.lookup.positions, 20'000u);
  EXPECT_EQ(report.lookup.latency.count(), 40u);
  EXPECT_EQ(report.gradients.positions, 20'000u);
  EXPECT_EQ(report.scan.positions, report.distinct_keys);
  EXPECT_GT(report.share_top_1, 0.01);
  EXPECT_LT(report.share_top_1, report.share_top_10);
  EXPECT_LT(report.share_top_10, report.share_top_20);
  EXPECT_GE(report.row_bytes, 16u + 5 * 4 * 2);
  EXPECT_GT(report.bytes_per_row, static_cast<double>(report.row_bytes));
}

TEST(Replay, ItsSlicesAddUpToTheRun) {
  const TemporaryFile file(".txt", SomeTrace());
  const ReplayReport report = *RunQuietly(OptionsFor(file));
  EXPECT_EQ(report.slices.size(), 40u) << "one for each batch";
  RunSlice sum;
  for (const RunSlice& slice : report.slices) {
    EXPECT_EQ(slice.accesses, slice.positions);
    EXPECT_LE(slice.hits, slice.accesses);
    sum.positions += slice.positions;
    sum.lookup_ns += slice.lookup_ns;
    sum.gradients_ns += slice.gradients_ns;
    sum.hits += slice.hits;
  }
  EXPECT_EQ(sum.positions, 20'000u);
  EXPECT_EQ(sum.lookup_ns, report.lookup.nanoseconds);
  EXPECT_EQ(sum.gradients_ns, report.gradients.nanoseconds);
  EXPECT_EQ(sum.hits, 20'000u - report.distinct_keys);
  EXPECT_LT(report.slices.front().HitRatio(), report.slices.back().HitRatio());
}

TEST(Replay, ComparesEveryOptimizerAndType) {
  const TemporaryFile file(".txt", SomeTrace());
  for (const Optimizer optimizer :
       {Optimizer::kNone, Optimizer::kSgd, Optimizer::kAdagrad, Optimizer::kRowwiseAdagrad,
        Optimizer::kAdam, Optimizer::kFtrl}) {
    for (const ValueType type : {ValueType::kF32, ValueType::kF16, ValueType::kBf16}) {
      ReplayOptions options = OptionsFor(file);
      options.shape.optimizer = optimizer;
      options.shape.value_type = type;
      const ReplayReport report = *RunQuietly(options);
      EXPECT_EQ(report.mismatches, 0u) << report.first_mismatch;
      EXPECT_EQ(report.gradients.positions, optimizer == Optimizer::kNone ? 0u : 20'000u);
    }
  }
}

TEST(Replay, DigestDoesNotDependOnThreads) {
  const TemporaryFile file(".txt", SomeTrace());
  ReplayOptions options = OptionsFor(file);
  options.batch = 10'000;  // large enough for the store to share among threads
  options.threads = 1;
  const uint32_t digest = RunQuietly(options)->digest;
  options.threads = 3;
  EXPECT_EQ(RunQuietly(options)->digest, digest);
  options.seed = 2;
  EXPECT_NE(RunQuietly(options)->digest, digest);
}

// Taken once: keys, first values, sums and steps must be the same bits on every machine.
TEST(Replay, DigestIsTheSameOnEveryMachine) {
  const TemporaryFile file(".txt", SomeTrace());
  EXPECT_EQ(RunQuietly(OptionsFor(file))->digest, 0xF7D743B3u);
}

TEST(Replay, EmptyTraceIsAnEmptyStore) {
  const TemporaryFile file(".txt");
  const ReplayReport report = *RunQuietly(OptionsFor(file));
  EXPECT_EQ(report.positions, 0u);
  EXPECT_EQ(report.rows_compared, 0u);
  EXPECT_EQ(report.mismatches, 0u);
}

TEST(Replay, NamesABrokenTrace) {
  const TemporaryFile file(".txt", "1\n2\nthree\n");
  const Status broken = RunQuietly(OptionsFor(file)).status();
  EXPECT_EQ(broken.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(broken.message()), HasSubstr(".txt:3: 't' in column 1"));
  ReplayOptions options;
  options.trace_path = "/no/such.txt";
  const Status absent = RunQuietly(options).status();
  EXPECT_EQ(absent.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(absent.message()), HasSubstr("--trace: /no/such.txt"));
}

TEST(Replay, GradientsAreSmallAndDiffer) {
  float sum = 0.0f;
  for (uint64_t position = 0; position < 1000; ++position) {
    const float gradient = ReplayGradient(7, position, 0);
    ASSERT_GE(gradient, -0.5f);
    ASSERT_LT(gradient, 0.5f);
    sum += gradient;
  }
  EXPECT_NEAR(sum, 0.0f, 50.0f);  // deviation of the sum: sqrt(1000 / 12) = 9
  EXPECT_NE(ReplayGradient(7, 1, 0), ReplayGradient(7, 2, 0));
  EXPECT_NE(ReplayGradient(7, 1, 0), ReplayGradient(8, 1, 0));
  EXPECT_NE(ReplayGradient(7, 1, 0), ReplayGradient(7, 1, 1));
}

}  // namespace
}  // namespace embank::replay_test
