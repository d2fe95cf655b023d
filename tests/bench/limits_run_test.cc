#include "bench/limits_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/threads/clock.h"
#include "bench/report.h"

namespace embank::limits_run_test {
namespace {

using testing::ElementsAre;

LimitsOptions TinyRun() {
  LimitsOptions options;
  options.row_bytes = {64, 20};
  options.threads = {1, 2};
  options.seconds = 0.05;
  options.memory_mib = 4;
  return options;
}

LimitsReport RunQuietly(const LimitsOptions& options) {
  Progress progress(stderr, SteadyClock());
  return *RunLimits(options, &progress);
}

TEST(LimitsRun, MeasuresEveryProbeOnBothKindsOfPages) {
  const LimitsReport report = RunQuietly(TinyRun());
  ASSERT_EQ(report.figures.size(), 2u * 2 * (3 + 2 * 2));
  for (const LimitFigure& figure : report.figures) {
    EXPECT_TRUE(std::isfinite(figure.per_second));
    EXPECT_GT(figure.per_second, 0.0);
    EXPECT_LE(figure.per_second_min, figure.per_second);
    EXPECT_GE(figure.per_second_max, figure.per_second);
    const bool has_rows =
        figure.probe == LimitProbe::kGather || figure.probe == LimitProbe::kReadModifyWrite;
    EXPECT_EQ(figure.row_bytes, !has_rows ? 0u : figure.bytes == 64 ? 80u : 48u);
  }
}

TEST(LimitsRun, FiguresSayWhatAnOperationTakes) {
  LimitFigure figure;
  figure.threads = 2;
  figure.bytes = 256;
  figure.per_second = 40e6;
  EXPECT_DOUBLE_EQ(figure.Nanoseconds(), 50.0);
  EXPECT_DOUBLE_EQ(figure.BytesPerSecond(), 10.24e9);
}

TEST(LimitsRun, ProbesPowersOfTwoAndAllCores) {
  EXPECT_THAT(ThreadCounts(0), ElementsAre(1));
  EXPECT_THAT(ThreadCounts(1), ElementsAre(1));
  EXPECT_THAT(ThreadCounts(2), ElementsAre(1, 2));
  EXPECT_THAT(ThreadCounts(12), ElementsAre(1, 2, 4, 8, 12));
}

TEST(LimitsRun, JsonHasTheFieldsThatProgramsRead) {
  const LimitsOptions options = TinyRun();
  const auto json = nlohmann::json::parse(
      LimitsJson(DescribeMachine(), options, RunQuietly(options)), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_TRUE(json.at("machine").contains("cpu"));
  EXPECT_TRUE(json.contains("commit"));
  EXPECT_EQ(json.at("parameters").at("memory_bytes"), 4 << 20);
  ASSERT_EQ(json.at("limits").size(), 28u);
  const nlohmann::json& first = json["limits"][0];
  EXPECT_EQ(first.at("probe"), "random_lines");
  EXPECT_EQ(first.at("pages"), "2 MiB");
  EXPECT_EQ(first.at("threads"), 1);
  EXPECT_EQ(first.at("bytes"), 64);
  EXPECT_EQ(first.at("row_bytes"), 0);
  for (const char* field :
       {"per_second", "per_second_min", "per_second_max", "nanoseconds", "bytes_per_second"}) {
    EXPECT_GT(first.at(field), 0.0) << field;
  }
}

}  // namespace
}  // namespace embank::limits_run_test
