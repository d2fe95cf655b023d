#include "bench/packed_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/threads/clock.h"
#include "bench/packed_report.h"
#include "tests/support/scratch_directory.h"

namespace embank::packed_run_test {
namespace {

using testing::HasSubstr;

PackedOptions SmallOptions() {
  PackedOptions options;
  options.tables = 3;
  options.rows = 2000;
  options.dims = {4, 8};
  options.batches = {64};
  options.seconds = 0.01;
  options.rounds = 3;
  return options;
}

StatusOr<PackedReport> RunQuietly(const PackedOptions& options) {
  Progress progress(stderr, SteadyClock());
  return RunPacked(options, &progress);
}

TEST(Packed, IdsAreRowsAndFollowZipf) {
  const PackedOptions options = SmallOptions();
  const PackedCase of = PackedCases(options)[0];
  const std::vector<uint64_t> ids = *PackedIds(options, of, 0);
  EXPECT_EQ(ids.size() % of.KeysOfTable(), 0u);
  EXPECT_LT(*std::ranges::max_element(ids), options.rows);
  // The most popular of 2,000 ids has 1 / 8.18 of the positions.
  uint64_t most = 0;
  for (const uint64_t id : std::set<uint64_t>(ids.begin(), ids.end())) {
    most = std::max<uint64_t>(most, static_cast<uint64_t>(std::ranges::count(ids, id)));
  }
  EXPECT_NEAR(static_cast<double>(most) / static_cast<double>(ids.size()), 1.0 / 8.178, 0.005);
  EXPECT_EQ(*PackedIds(options, of, 0), ids);
  EXPECT_NE(*PackedIds(options, of, 1), ids);
}

TEST(Packed, EachCaseHasItsTimes) {
  const test::ScratchDirectory directory;
  PackedOptions options = SmallOptions();
  options.ids_directory = directory.path();
  const StatusOr<PackedReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->figures.size(), 3u);
  for (const PackedFigure& figure : report->figures) {
    EXPECT_GE(figure.calls, options.rounds);
    for (const CallTime& time : {figure.lookup, figure.gradients}) {
      EXPECT_GT(time.min_us, 0.0);
      EXPECT_LE(time.min_us, time.median_us);
      EXPECT_LE(time.median_us, time.max_us);
    }
  }
  const PackedCase& bags = report->figures[2].of;
  EXPECT_EQ(bags.KeysOfTable(), 83'200u);
  const std::string text = PackedTable(DescribeMachine(), options, *report);
  EXPECT_THAT(text, HasSubstr("bags"));
  const auto json = nlohmann::json::parse(PackedJson(DescribeMachine(), options, *report));
  EXPECT_EQ(json["cases"][1]["dim"], 8);
  EXPECT_GT(json["cases"][1]["gradients"]["us"], 0.0);
  // Four bytes for each position of each table.
  const uint64_t positions = PackedIds(options, report->figures[0].of, 0)->size();
  EXPECT_EQ(std::filesystem::file_size(directory.path() + "/tables.u32"), positions * 3 * 4);
}

}  // namespace
}  // namespace embank::packed_run_test
