#include "bench/survive_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/random.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/killed_process.h"
#include "bench/survive_report.h"
#include "tests/bench/temporary_file.h"
#include "tests/support/scratch_directory.h"

namespace embank::survive_run_test {
namespace {

using testing::HasSubstr;

// Three times as many bytes as the least budget, in rows of 8 KiB.
std::string SomeTrace() {
  const CounterRandom random(3);
  std::string lines;
  for (uint64_t i = 0; i < 12'000; ++i) StrAppend(&lines, random.Bits(i) % 6000, "\n");
  return lines;
}

StatusOr<SurviveReport> RunQuietly(const SurviveOptions& options) {
  Progress progress(stderr, SteadyClock());
  return RunSurvive(options, &progress);
}

SurviveOptions OptionsFor(const TemporaryFile& file, const std::string& directory) {
  SurviveOptions options;
  options.replay.trace_path = file.path();
  options.replay.shape.dim = 1024;
  options.replay.batch = 256;
  options.path = directory;
  return options;
}

// The slices show the part after the last kill, and have the hits of all of it.
void ExpectSlicesOf(const SurviveReport& report) {
  const SurviveFigures& figures = report.figures;
  RunSlice sum;
  for (const RunSlice& slice : figures.slices) {
    sum.positions += slice.positions;
    sum.lookup_ns += slice.lookup_ns;
    sum.accesses += slice.accesses;
    sum.hits += slice.hits;
  }
  EXPECT_EQ(sum.positions, figures.lookup.positions);
  EXPECT_EQ(sum.lookup_ns, figures.lookup.nanoseconds);
  EXPECT_EQ(sum.accesses, figures.lookup.positions + figures.gradients.positions);
  EXPECT_EQ(figures.positions_before + sum.positions, report.positions);
  EXPECT_NEAR(sum.HitRatio(), figures.hit_ratio, 1e-9);
  EXPECT_EQ(figures.checkpoint_positions.size(), figures.checkpoint_seconds.size());
  EXPECT_EQ(figures.checkpoint_positions.back(), report.positions);
}

TEST(Survive, FindsTheLastCheckpointWhereverItIsKilled) {
  const TemporaryFile file(".txt", SomeTrace());
  const test::ScratchDirectory directory;
  SurviveOptions options = OptionsFor(file, directory.path());
  options.kills = 6;
  const auto run = RunQuietly(options);
  ASSERT_TRUE(run.ok()) << run.status();
  const SurviveReport& report = *run;
  EXPECT_EQ(report.mismatches, 0u) << report.first_mismatch;
  EXPECT_GT(report.data_bytes, 2 * report.dram_bytes);
  ASSERT_EQ(report.kills.size(), 6u);
  uint64_t found = 0;
  for (const Kill& kill : report.kills) {
    EXPECT_GE(kill.batches_found, found);
    EXPECT_LE(kill.batches_found, kill.batches_told);
    found = kill.batches_found;
  }
  EXPECT_EQ(report.kills[1].where, KilledIn::kCheckpoint);
  EXPECT_EQ(report.kills[2].where, KilledIn::kRecovery);
  EXPECT_GT(found, 0u);
  EXPECT_GT(report.figures.hit_ratio, 0.0);
  EXPECT_LT(report.figures.hit_ratio, 1.0);
  EXPECT_GT(report.figures.iops, 0.0);
  EXPECT_GE(report.figures.write_amplification, 1.0);
  ExpectSlicesOf(report);
  // Every kill's rows, and those of the end.
  EXPECT_GT(report.rows_compared, 2 * report.rows);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));

  const Machine machine;
  const std::string table = SurviveTable(machine, options, report);
  for (const char* part : {"checkpoint", "found: ", "recovery s: ", "IOPS: ", "compared: "}) {
    EXPECT_THAT(table, HasSubstr(part));
  }
  const auto json = nlohmann::json::parse(SurviveJson(machine, options, report));
  EXPECT_EQ(json["kills"].size(), 6u);
  EXPECT_EQ(json["parameters"]["rows"], report.rows);
}

TEST(Survive, WithoutKillsIsAReplayOnDisk) {
  const TemporaryFile file(".txt", "1\n2\n1\n");
  const test::ScratchDirectory directory;
  SurviveOptions options = OptionsFor(file, directory.path());
  options.kills = 0;
  const auto report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->mismatches, 0u) << report->first_mismatch;
  EXPECT_EQ(report->rows_compared, 2u);
  EXPECT_EQ(report->figures.checkpoint_seconds.size(), 1u);
  ExpectSlicesOf(*report);
}

TEST(Survive, NamesWhatItCannotUse) {
  const TemporaryFile empty(".txt");
  const test::ScratchDirectory directory;
  const Status no_keys = RunQuietly(OptionsFor(empty, directory.path())).status();
  EXPECT_THAT(std::string(no_keys.message()), HasSubstr("--trace: it has no keys"));
  const TemporaryFile file(".txt", "1\n");
  const Status no_path = RunQuietly(OptionsFor(file, "/no/such")).status();
  EXPECT_THAT(std::string(no_path.message()), HasSubstr("--path: /no/such"));
}

TEST(KilledProcess, TellsUntilItIsKilled) {
  auto process = KilledProcess::Start([](KilledProcess::Tell tell) -> Status {
    for (uint64_t i = 0;; ++i) tell({7, i});
  });
  ASSERT_TRUE(process.ok()) << process.status();
  for (uint64_t i = 0; i < 100; ++i) {
    const auto step = process->Next();
    ASSERT_TRUE(step.has_value());
    ASSERT_EQ(step->place, 7u);
    ASSERT_EQ(step->number, i);
  }
  process->Kill();
}

TEST(KilledProcess, ThatEndsByItselfIsNoticed) {
  auto process = KilledProcess::Start([](KilledProcess::Tell tell) {
    tell({1, 2});
    return InternalError("for the test");
  });
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE(process->Next().has_value());
  EXPECT_FALSE(process->Next().has_value());
}

}  // namespace
}  // namespace embank::survive_run_test
