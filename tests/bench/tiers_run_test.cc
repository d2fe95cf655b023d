#include "bench/tiers_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/tiers_report.h"
#include "tests/bench/temporary_file.h"
#include "tests/support/scratch_directory.h"

namespace embank::tiers_run_test {
namespace {

using testing::HasSubstr;

// More bytes than the least memory, in rows of 8 KiB; half of the positions name a hundred keys.
std::string SomeTrace() {
  const CounterRandom random(3);
  std::string lines;
  for (uint64_t i = 0; i < 12'000; ++i) {
    StrAppend(&lines, random.Bits(i) % (i % 2 == 0 ? 100 : 6000), "\n");
  }
  return lines;
}

StatusOr<TiersReport> RunQuietly(const TiersOptions& options) {
  Progress progress(stderr, SteadyClock());
  return RunTiers(options, &progress);
}

TiersOptions OptionsFor(const TemporaryFile& file, const std::string& directory) {
  TiersOptions options;
  options.replay.trace_path = file.path();
  options.replay.shape.dim = 1024;
  options.replay.batch = 64;
  options.path = directory;
  options.flush_iters = 5;
  return options;
}

TEST(Tiers, AllHaveRowsAndTheOracleAgrees) {
  const test::ScratchDirectory directory;
  const TemporaryFile file("keys.txt", SomeTrace());
  const TiersOptions options = OptionsFor(file, directory.path());
  const StatusOr<TiersReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->mismatches, 0u) << report->first_mismatch;
  EXPECT_EQ(report->positions, 12'000u);
  EXPECT_EQ(report->answers_compared, 12'000u);
  EXPECT_EQ(report->rows_compared, report->rows);
  EXPECT_EQ(report->created, report->rows);
  EXPECT_EQ(report->device, "twin");
  ASSERT_EQ(report->tiers.size(), 4u);
  uint64_t rows = 0;
  for (const TierFigures& tier : report->tiers) {
    EXPECT_GT(tier.rows, 0u) << tier.name;
    EXPECT_GT(tier.answered, 0u) << tier.name;
    EXPECT_EQ(tier.bytes, tier.rows * 8192) << tier.name;
    rows += tier.rows;
  }
  EXPECT_EQ(rows, report->rows);
  EXPECT_LE(report->tiers[0].bytes, report->hbm_bytes);
  EXPECT_EQ(*report->tiers[0].moved_in - *report->tiers[0].moved_out, report->tiers[0].rows);
  // Each tier counts what it answers, and the outcomes count what was found.
  uint64_t answered = 0;
  for (const TierFigures& tier : report->tiers) {
    answered += tier.answered;
    EXPECT_EQ(tier.unique_share.has_value(), tier.name != std::string_view("DRAM"));
    EXPECT_GT(tier.unique_share.value_or(1.0), 0.0) << tier.name;
  }
  EXPECT_EQ(answered, report->found);
  EXPECT_EQ(report->found + report->created, report->positions);
  EXPECT_GT(report->hot_flushes, 0u);
  EXPECT_EQ(report->checkpoints, 4u);

  EXPECT_THAT(TiersTable({}, options, *report), HasSubstr("PMem"));
  const auto json = nlohmann::json::parse(TiersJson({}, options, *report));
  EXPECT_EQ(json["tiers"].size(), 4u);
  EXPECT_GT(report->flush.flushes, 0u);
  EXPECT_EQ(report->flush.batches, 600u);
  EXPECT_LE(report->flush.p50_beside_us, report->flush.p99_beside_us);
  EXPECT_EQ(json["tiers"][0]["rows"], report->tiers[0].rows);
  EXPECT_EQ(json["mismatches"], 0);
}

TEST(Tiers, OptionsAreNamedThatAreWrong) {
  const TemporaryFile file("keys.txt", "1\n2\n");
  TiersOptions options = OptionsFor(file, "nowhere-at-all");
  EXPECT_THAT(std::string(RunQuietly(options).status().message()), HasSubstr("--path"));
  options.hbm_share = 0.0;
  EXPECT_THAT(std::string(Validate(options).message()), HasSubstr("--hbm-share"));
  options = OptionsFor(file, "");
  EXPECT_THAT(std::string(Validate(options).message()), HasSubstr("--path"));
  const test::ScratchDirectory directory;
  options = OptionsFor(file, directory.path());
  options.pmem_path = "nowhere-at-all";
  EXPECT_THAT(std::string(RunQuietly(options).status().message()), HasSubstr("--pmem"));
}

}  // namespace
}  // namespace embank::tiers_run_test
