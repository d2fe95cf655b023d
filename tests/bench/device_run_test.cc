#include "bench/device_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/threads/clock.h"
#include "bench/device_report.h"

namespace embank::device_run_test {
namespace {

using testing::HasSubstr;

DeviceOptions SmallOptions() {
  DeviceOptions options;
  options.rows = 20'000;
  options.dim = 16;
  options.batch = 512;
  options.seconds = 0.005;
  options.rounds = 3;
  return options;
}

StatusOr<DeviceReport> RunQuietly(const DeviceOptions& options) {
  Progress progress(stderr, SteadyClock());
  return RunDevice(options, &progress);
}

TEST(DeviceRun, HasTheTimesOfEachShare) {
  const DeviceOptions options = SmallOptions();
  const StatusOr<DeviceReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->device, "twin");
  EXPECT_EQ(report->hot_rows, 2'000u);
  ASSERT_EQ(report->figures.size(), options.hit_shares.size());
  for (const DeviceFigure& figure : report->figures) {
    EXPECT_GT(figure.lookup_us, 0.0);
    EXPECT_GT(figure.gradients_us, 0.0);
    EXPECT_GT(figure.host_lookup_us, 0.0);
    EXPECT_GT(figure.host_gradients_us, 0.0);
  }
  const std::string text = DeviceTable(DescribeMachine(), options, *report);
  EXPECT_THAT(text, HasSubstr("0.95"));
  EXPECT_THAT(text, HasSubstr("twin"));
  const auto json = nlohmann::json::parse(DeviceJson(DescribeMachine(), options, *report));
  EXPECT_EQ(json["cases"].size(), options.hit_shares.size());
  EXPECT_GT(json["cases"][0]["host_gradients_us"], 0.0);
}

// PICASSO, table IV: caching gains 13 % and more at 24 % of the distinct rows.
TEST(DeviceRun, OverALinkTheGainOfHotRowsIsThatOfTheFormula) {
  DeviceOptions options = SmallOptions();
  options.dim = 128;
  options.batch = 8192;
  options.hbm_share = 0.5;
  options.hit_shares = {0.0, 0.24, 0.5};
  options.link_gbps = 12.0;
  options.link_us = 10.0;
  options.seconds = 0.001;
  options.rounds = 1;
  const StatusOr<DeviceReport> report = RunQuietly(options);
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string text = DeviceTable(DescribeMachine(), options, *report);
  SCOPED_TRACE(text);
  for (const DeviceFigure& figure : report->figures) {
    const double seconds = 10e-6 + (1.0 - figure.hit_share) * 8192 * 512 / 12e9;
    EXPECT_NEAR(figure.lookup_us * 1e-6, seconds, 0.1 * seconds) << figure.hit_share;
  }
  EXPECT_GE(report->figures[0].lookup_us / report->figures[1].lookup_us, 1.13);
}

TEST(DeviceRun, NeedsADeviceOfThatNumber) {
  DeviceOptions options = SmallOptions();
  options.cuda_device = 99;
  const StatusOr<DeviceReport> report = RunQuietly(options);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.status().ToString(), HasSubstr("CUDA"));
}

TEST(DeviceOptions, AreChecked) {
  DeviceOptions options = SmallOptions();
  EXPECT_TRUE(Validate(options).ok());
  options.hit_shares = {1.5};
  EXPECT_THAT(Validate(options).ToString(), HasSubstr("--hits"));
  options = SmallOptions();
  options.link_gbps = 12.0;
  options.cuda_device = 0;
  EXPECT_THAT(Validate(options).ToString(), HasSubstr("--link-gbps"));
  options = SmallOptions();
  options.batch = options.rows + 1;
  EXPECT_THAT(Validate(options).ToString(), HasSubstr("--batch"));
}

}  // namespace
}  // namespace embank::device_run_test
