#include "bench/ssd_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "base/threads/clock.h"
#include "bindings/c/embank.h"
#include "tests/support/scratch_directory.h"

namespace embank::ssd_run_test {
namespace {

using testing::HasSubstr;

// 80 MB of rows, and a quarter of that is more than Embank's least memory.
SsdOptions SmallRun(const std::string& path) {
  SsdOptions options;
  options.engines = {"embank"};
  options.rows = 20'000;
  options.shape.dim = 512;
  options.batch = 512;
  options.seconds = 0.05;
  options.warmup = 0.05;
  options.rounds = 1;
  options.peer_threads = {2};
  options.path = path;
  return options;
}

StatusOr<SsdReport> RunQuietly(const SsdOptions& options) {
  Progress progress(stderr, SteadyClock());
  return RunSsd(options, &progress);
}

const SsdResult& ResultOf(const SsdReport& report, SsdPhase phase, std::string_view engine) {
  for (const SsdResult& result : report.results) {
    if (result.which.phase == phase && result.which.engine == engine) return result;
  }
  ADD_FAILURE() << PhaseName(phase) << " of " << engine << " is not there";
  return report.results.front();
}

bool IsLeftOut(const SsdReport& report, const std::string& word) {
  return std::any_of(report.notes.begin(), report.notes.end(),
                     [&](const std::string& note) { return note.find(word) != std::string::npos; });
}

void ExpectFigures(const SsdResult& result, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::optional<double> value = result.Figure(name);
    ASSERT_TRUE(value.has_value()) << PhaseName(result.which.phase) << ": " << name;
    EXPECT_GE(*value, 0.0) << PhaseName(result.which.phase) << ": " << name;
  }
}

TEST(SsdRun, SizesFollowFromTheOptions) {
  SsdOptions options;
  options.utilisation = 0.75;
  const SsdSizes sizes = SizesOf(options, 1'000'000);
  EXPECT_EQ(sizes.payload_bytes, 512u);
  EXPECT_EQ(sizes.data_bytes, 512'000'000u);
  EXPECT_EQ(sizes.dram_bytes, 128'000'000u);
  EXPECT_EQ(sizes.record_bytes, 592u);  // header 32, payload 512, padding 48
  EXPECT_EQ(sizes.ssd_bytes, 789'333'333u);
  EXPECT_EQ(SizesOf(options, 1000).dram_bytes, uint64_t{16} << 20);
  EXPECT_EQ(SizesOf(SsdOptions(), 1000).ssd_bytes, 0u);
  EXPECT_EQ(sizes.pmem_bytes, 0u);
  options.phases = {SsdPhase::kPmem};
  EXPECT_EQ(SizesOf(options, 1'000'000).pmem_bytes, 888'000'000u);
  EXPECT_EQ(SizesOf(options, 1000).pmem_bytes, uint64_t{4} << 20);
  options.pmem_bytes = 123'456'789;
  EXPECT_EQ(SizesOf(options, 1000).pmem_bytes, 123'456'789u);
}

TEST(SsdRun, MeasuresEveryPhaseAndLeavesNothing) {
  const test::ScratchDirectory directory;
  const StatusOr<SsdReport> report = RunQuietly(SmallRun(directory.path()));
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->results.size(), 6u);
  ExpectFigures(ResultOf(*report, SsdPhase::kFill, "embank"),
                {"rows_per_second", "batch_p999_over_p50", "settle_seconds"});
  const SsdResult& lookup = ResultOf(*report, SsdPhase::kLookup, "embank");
  ExpectFigures(lookup, {"rows_per_second", "iops", "cpu_us_per_miss", "longest_batch_us"});
  // A quarter of the data at most is in memory.
  EXPECT_LT(*lookup.Figure("hit_ratio"), 0.6);
  EXPECT_GT(*lookup.Figure("iops"), 0.0);
  const SsdResult& scan = ResultOf(*report, SsdPhase::kScan, "embank");
  ExpectFigures(scan, {"rows_per_second", "scan_seconds", "scan_bytes_per_second"});
  // Rows in the log are neighbours, and are read as such.
  EXPECT_LT(*scan.Figure("iops"), *scan.Figure("rows_per_second") / 4);
  if (!IsLeftOut(*report, "fio")) ExpectFigures(scan, {"fraction_of_fio_read"});
  const SsdResult& overwrite = ResultOf(*report, SsdPhase::kOverwrite, "embank");
  EXPECT_EQ(overwrite.Figure("overwritten"), 0.5);
  EXPECT_EQ(overwrite.Figure("checkpoints"), 5.0);
  // Every dirty row is written at least once, except those that the next one will write.
  EXPECT_GT(*overwrite.Figure("write_amplification"), 0.9);
  ExpectFigures(ResultOf(*report, SsdPhase::kCheckpoint, "embank"),
                {"checkpoint_seconds", "checkpoint_bytes_per_second", "trainer_rows_per_second",
                 "checkpoint_seconds_beside", "longest_flip_us"});
  EXPECT_TRUE(ResultOf(*report, SsdPhase::kCheckpoint, "embank").Figure("trainer_slowdown"));
  ExpectFigures(ResultOf(*report, SsdPhase::kRecover, "embank"),
                {"recover_seconds", "rows_per_second", "index_bytes_per_row"});
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

// All rows fit, and the trainer changes a few of them over and over. A checkpoint has some syncs.
TEST(SsdRun, MeasuresCheckpointsThatHaveFewChangedRows) {
  const test::ScratchDirectory directory;
  SsdOptions options = SmallRun(directory.path());
  options.phases = {SsdPhase::kCheckpoint};
  options.shape.dim = 64;
  options.dram_fraction = 4.0;
  options.changed = 1000;
  options.sync_us = 5000;
  options.seconds = 0.2;
  const StatusOr<SsdReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  const SsdResult& result = ResultOf(*report, SsdPhase::kCheckpoint, "embank");
  ExpectFigures(result, {"flushed_rows_per_checkpoint", "trainer_batch_p95_us",
                         "trainer_batch_p95_us_beside", "trainer_p95_ratio"});
  EXPECT_GE(*result.Figure("checkpoint_seconds"), 0.01);
  EXPECT_GE(*result.Figure("checkpoint_seconds_beside"), 0.01);
  EXPECT_GE(*result.Figure("visited_slots_per_checkpoint"), 1.0);
  EXPECT_LE(*result.Figure("visited_slots_per_checkpoint"), 4 * 1500.0) << "whole batches";
}

TEST(SsdRun, ComparesPoliciesAndAStoreInMemory) {
  const test::ScratchDirectory directory;
  SsdOptions options = SmallRun(directory.path());
  options.engines = {"embank", "embank-lfu", "embank-memory"};
  options.phases = {SsdPhase::kLookup, SsdPhase::kScan};
  const StatusOr<SsdReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->results.size(), 6u);
  const SsdResult& memory = ResultOf(*report, SsdPhase::kLookup, "embank-memory");
  EXPECT_EQ(*memory.Figure("hit_ratio"), 1.0);
  EXPECT_EQ(*memory.Figure("iops"), 0.0);
  EXPECT_FALSE(memory.Figure("times_best_peer").has_value());
  for (const char* engine : {"embank", "embank-lfu"}) {
    const SsdResult& lookup = ResultOf(*report, SsdPhase::kLookup, engine);
    EXPECT_LT(*lookup.Figure("hit_ratio"), 0.6);
    EXPECT_EQ(*lookup.Figure("times_memory"),
              *lookup.Figure("rows_per_second") / *memory.Figure("rows_per_second"));
  }
}

TEST(SsdRun, ComparesWithFioOrSaysThatItIsMissing) {
  const test::ScratchDirectory directory;
  SsdOptions options = SmallRun(directory.path());
  options.phases = {SsdPhase::kLookup};
  options.distribution = *ParseDistribution("zipf:0.99");
  const StatusOr<SsdReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->results.size(), 1u);
  if (IsLeftOut(*report, "fio")) {
    EXPECT_FALSE(report->results[0].Figure("fio_iops").has_value());
  } else {
    ExpectFigures(report->results[0], {"fio_iops", "fraction_of_fio", "fio_cpu_us_per_read"});
  }
}

TEST(SsdRun, ComparesWithRocksdbOrSaysThatItIsMissing) {
  const test::ScratchDirectory directory;
  SsdOptions options = SmallRun(directory.path());
  options.engines = {"rocksdb", "embank", "rocksdb-rows"};
  options.peer_threads = {1, 3};
  options.phases = {SsdPhase::kLookup, SsdPhase::kRecover};
  const StatusOr<SsdReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  const SsdResult& embank = ResultOf(*report, SsdPhase::kLookup, "embank");
  if (IsLeftOut(*report, "rocksdb is left out")) {
    EXPECT_EQ(report->results.size(), 2u);
    EXPECT_FALSE(embank.Figure("times_best_peer").has_value());
    return;
  }
  ASSERT_EQ(report->results.size(), 2u + 2 * (2 + 1));
  EXPECT_GT(*embank.Figure("times_best_peer"), 0.0);
  for (const char* engine : {"rocksdb", "rocksdb-rows"}) {
    ExpectFigures(ResultOf(*report, SsdPhase::kLookup, engine),
                  {"rows_per_second", "iops", "hit_ratio"});
    EXPECT_LT(*ResultOf(*report, SsdPhase::kLookup, engine).Figure("hit_ratio"), 0.6);
  }
}

// 20,000 rows of 2 KiB have 10 % more space than they need: not enough to overwrite them all,
// unless compaction frees the space of dead records.
TEST(SsdRun, SaysThatTheLogIsFullOrOverwritesAll) {
  const test::ScratchDirectory directory;
  SsdOptions options = SmallRun(directory.path());
  options.utilisation = 0.9;
  options.overwrites = 1.0;
  options.phases = {SsdPhase::kOverwrite};
  const StatusOr<SsdReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  const double overwritten =
      *ResultOf(*report, SsdPhase::kOverwrite, "embank").Figure("overwritten");
  if (IsLeftOut(*report, "overwrite: ended early")) {
    EXPECT_LT(overwritten, 1.0);
  } else {
    EXPECT_EQ(overwritten, 1.0);
  }
}

// A run with lookups of rows on the SSD and in PMem. Nothing: libpmem is missing, which it says.
std::optional<SsdReport> RunWithPmem(uint64_t pmem_bytes) {
  const test::ScratchDirectory ssd;
  const test::ScratchDirectory pmem;
  SsdOptions options = SmallRun(ssd.path());
  options.rounds = 2;
  options.phases = {SsdPhase::kLookup, SsdPhase::kPmem};
  options.pmem_path = pmem.path();
  options.pmem_bytes = pmem_bytes;
  const StatusOr<SsdReport> report = RunQuietly(options);
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(std::filesystem::is_empty(ssd.path()) && std::filesystem::is_empty(pmem.path()));
  if (!report.ok()) return std::nullopt;
  if (embank_build_info("pmem") != nullptr) return *report;
  EXPECT_TRUE(IsLeftOut(*report, "the phase pmem is left out"));
  EXPECT_EQ(report->results.size(), 1u);
  return std::nullopt;
}

TEST(SsdRun, LooksUpRowsOfPmemBesideThoseOfTheSsd) {
  const std::optional<SsdReport> report = RunWithPmem(0);
  if (!report.has_value()) GTEST_SKIP() << "libpmem is not installed";
  ASSERT_EQ(report->results.size(), 2u);
  const SsdResult& pmem = ResultOf(*report, SsdPhase::kPmem, "embank-pmem");
  ExpectFigures(pmem, {"rows_per_second", "batch_p50_us", "pmem_cpu_us_per_row", "drains"});
  EXPECT_GT(*pmem.Figure("pmem_hit_ratio"), 0.4);
  EXPECT_NEAR(*pmem.Figure("pmem_hit_ratio") + *pmem.Figure("hit_ratio"), 1.0, 0.02)
      << "what is not in DRAM is in PMem";
  EXPECT_EQ(pmem.Figure("iops"), 0.0) << "nothing comes from the SSD";
  EXPECT_EQ(pmem.Figure("ssd_rows_appended_by_checkpoint"), 0.0);
  // 80 MB in buffers of 1 MiB at most.
  EXPECT_GT(*pmem.Figure("pmem_buffers_written"), 75.0);
  EXPECT_GT(*pmem.Figure("drains"), 0.0);
  EXPECT_LE(*pmem.Figure("drains"), *pmem.Figure("pmem_buffers_written"));
  const SsdResult& ssd = ResultOf(*report, SsdPhase::kLookup, "embank");
  EXPECT_FALSE(ssd.Figure("pmem_hit_ratio").has_value());
  EXPECT_EQ(*pmem.Figure("pmem_times_ssd"),
            *pmem.Figure("pmem_rows_per_second") / *ssd.Figure("missed_rows_per_second"));
}

TEST(SsdRun, SaysHowManyRowsDidNotFitIntoPmem) {
  const std::optional<SsdReport> report = RunWithPmem(uint64_t{4} << 20);
  if (!report.has_value()) GTEST_SKIP() << "libpmem is not installed";
  const SsdResult& pmem = ResultOf(*report, SsdPhase::kPmem, "embank-pmem");
  EXPECT_LT(*pmem.Figure("pmem_hit_ratio"), 0.2) << "a twentieth of the rows fits";
  EXPECT_GT(*pmem.Figure("iops"), 0.0);
  EXPECT_GT(*pmem.Figure("ssd_rows_appended_by_checkpoint"), 100.0);
}

TEST(SsdRun, WrongPlacesAreNamed) {
  SsdOptions options = SmallRun("/no/such/directory");
  EXPECT_THAT(std::string(RunQuietly(options).status().message()),
              HasSubstr("--path: /no/such/directory"));
  const test::ScratchDirectory directory;
  options = SmallRun(directory.path());
  options.rows = kBenchRowsMax;
  EXPECT_THAT(std::string(RunQuietly(options).status().message()), HasSubstr("--rows: "));
  options = SmallRun(directory.path());
  options.phases = {SsdPhase::kPmem};
  options.pmem_path = "/no/such/directory";
  EXPECT_THAT(std::string(RunQuietly(options).status().message()),
              HasSubstr("--pmem: /no/such/directory"));
  options.pmem_path = directory.path();
  options.pmem_bytes = uint64_t{1} << 60;
  EXPECT_THAT(std::string(RunQuietly(options).status().message()), HasSubstr("--pmem-bytes: "));
}

}  // namespace
}  // namespace embank::ssd_run_test
