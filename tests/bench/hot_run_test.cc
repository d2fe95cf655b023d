#include "bench/hot_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/threads/clock.h"
#include "bench/exact_lru.h"
#include "bench/hot_report.h"
#include "bench/hot_stream.h"
#include "bench/link_model.h"
#include "tests/support/scratch_directory.h"

namespace embank::hot_run_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

HotOptions Small() {
  HotOptions options;
  options.rows = 20'000;
  options.batch = 1000;
  options.k = 0.01;
  options.iters = 700;
  options.drift_at = 350;
  options.warmup_iters = 50;
  options.flush_iters = 50;
  return options;
}

HotReport RunAll(const HotOptions& options) {
  EXPECT_TRUE(Validate(options).ok()) << Validate(options);
  Progress progress(stderr, SteadyClock());
  const StatusOr<HotReport> report = RunHot(options, &progress);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : HotReport();
}

HotHits HitsOf(const HotReport& report, HotPolicyKind kind, HotPart part) {
  for (const HotFigure& figure : report.figures) {
    if (figure.policy == kind && figure.part == part) return figure.hits;
  }
  ADD_FAILURE() << HotPolicyName(kind) << " has no part " << HotPartName(part);
  return {};
}

double Lookups(const HotReport& report, HotPolicyKind kind, HotPart part) {
  const HotHits hits = HitsOf(report, kind, part);
  return static_cast<double>(hits.lookup_hits) / static_cast<double>(hits.lookups);
}

TEST(HotRun, CountsThePartsOfEachPolicy) {
  const HotReport report = RunAll(Small());
  EXPECT_EQ(report.rows, 20'000u);
  EXPECT_EQ(report.figures.size(), 3 * kHotPolicyKinds.size());
  for (const HotPolicyKind kind : kHotPolicyKinds) {
    EXPECT_EQ(HitsOf(report, kind, HotPart::kSteady).lookups, 301'000u);
    EXPECT_EQ(HitsOf(report, kind, HotPart::kDrifted).lookups, 300'000u);
    EXPECT_EQ(HitsOf(report, kind, HotPart::kSettled).lookups, 49'000u);
  }
}

TEST(HotRun, HasTheHitsOfTheInterpreterWhereHeatDoesNotAge) {
  const HotReport report = RunAll(Small());
  for (const HotPart part : {HotPart::kSteady, HotPart::kDrifted, HotPart::kSettled}) {
    const HotHits printed = HitsOf(report, HotPolicyKind::kAlgorithm, part);
    const HotHits planned = HitsOf(report, HotPolicyKind::kCumulative, part);
    EXPECT_EQ(planned.lookup_hits, printed.lookup_hits);
    EXPECT_EQ(planned.distinct_hits, printed.distinct_hits);
  }
}

TEST(HotRun, FollowsADriftAndIsNoWorseThanCountersBefore) {
  const HotReport report = RunAll(Small());
  const auto lookups = [&](HotPolicyKind kind, HotPart part) {
    return Lookups(report, kind, part);
  };
  EXPECT_GE(lookups(HotPolicyKind::kEmbank, HotPart::kSteady),
            lookups(HotPolicyKind::kCumulative, HotPart::kSteady) - 0.005);
  EXPECT_GE(lookups(HotPolicyKind::kEmbank, HotPart::kDrifted),
            lookups(HotPolicyKind::kLru, HotPart::kDrifted) - 0.05);
  EXPECT_GE(lookups(HotPolicyKind::kEmbank, HotPart::kSettled),
            lookups(HotPolicyKind::kLru, HotPart::kSettled));
  EXPECT_LT(lookups(HotPolicyKind::kCumulative, HotPart::kDrifted),
            lookups(HotPolicyKind::kEmbank, HotPart::kDrifted) - 0.05);
  for (const HotFigure& figure : report.figures) {
    EXPECT_EQ(figure.early_epochs > 0, figure.policy == HotPolicyKind::kEmbank);
  }
}

TEST(HotRun, EndsNoEpochEarlyWithoutADrift) {
  HotOptions options = Small();
  options.drift_at = 0;
  const HotReport report = RunAll(options);
  for (const HotFigure& figure : report.figures) {
    EXPECT_EQ(figure.early_epochs, 0u);
    EXPECT_EQ(figure.part, HotPart::kSteady);
  }
  ASSERT_EQ(report.levels.size(), 3u);
  for (const HotLevels& levels : report.levels) {
    EXPECT_NEAR(levels.first + levels.second + levels.third, 1.0, 1e-12);
    EXPECT_GT(levels.second, 0.0);
    EXPECT_LE(levels.first, report.levels[2].first + 0.01) << "the last one is the optimum";
  }
}

TEST(HotRun, ReplaysATrace) {
  const test::ScratchDirectory directory;
  HotOptions options = Small();
  options.trace_path = directory.path() + "/keys.txt";
  options.drift_at = 0;
  options.batch = 10;
  options.warmup_iters = 2;
  options.flush_iters = 2;
  options.k = 0.5;
  std::ofstream file(options.trace_path);
  // Keys 100 and 200 of four distinct ones make up all hits.
  for (int i = 0; i < 20; ++i) file << "100\n200\n100\n200\n300\n";
  file << "400\n";
  file.close();
  const HotReport report = RunAll(options);
  EXPECT_EQ(report.rows, 4u);
  const HotHits hits = HitsOf(report, HotPolicyKind::kEmbank, HotPart::kSteady);
  EXPECT_EQ(hits.lookups, 81u);
  // The first flush is behind the third batch of ten keys.
  EXPECT_EQ(hits.lookup_hits, 7u * 8u);
  EXPECT_EQ(hits.distinct_hits, 7u * 2u);
  options.trace_path = directory.path() + "/none.txt";
  Progress progress(stderr, SteadyClock());
  EXPECT_FALSE(RunHot(options, &progress).ok());
}

TEST(HotRun, HasTheExponentsOfThePapersCoverages) {
  EXPECT_NEAR(ExponentOfCoverage(10'000, 0.20, 0.70), 0.824, 0.0006);
  EXPECT_NEAR(ExponentOfCoverage(1'000'000, 0.20, 0.70), 0.791, 0.0006);
  EXPECT_NEAR(ExponentOfCoverage(1'000'000, 0.20, 0.99), 1.284, 0.0006);
  EXPECT_NEAR(ExponentOfCoverage(1'000'000, 0.068, 0.76), 0.954, 0.0006);
  EXPECT_NEAR(ExponentOfCoverage(10'000'000, 0.068, 0.76), 0.937, 0.0006);
}

TEST(HotReport, WritesTableJsonAndCurve) {
  HotOptions options = Small();
  options.preset = "avg";
  options.drift_at = 0;
  options.iters = 200;
  options.curve_csv = "curve.csv";
  options.curve_svg = "curve.svg";
  const HotReport report = RunAll(options);
  ASSERT_EQ(report.curve.size(), 5u);
  for (size_t i = 1; i < report.curve.size(); ++i) {
    EXPECT_GT(report.curve[i].embank.lookup_hits, report.curve[i - 1].embank.lookup_hits);
  }
  const std::string table = HotTable(Machine(), options, report);
  EXPECT_THAT(table, AllOf(HasSubstr("model"), HasSubstr("three levels"), HasSubstr("1024 MiB")));
  const auto json = nlohmann::json::parse(HotJson(Machine(), options, report));
  ASSERT_EQ(json["runs"].size(), kHotPolicyKinds.size());
  EXPECT_EQ(json["runs"][0]["policy"], "algorithm");
  EXPECT_EQ(json["runs"][0]["part"], "steady");
  EXPECT_EQ(json["runs"][0]["k"], 0.01);
  EXPECT_NEAR(json["runs"][0]["skew"].get<double>(), 0.82, 0.01);
  EXPECT_GT(json["runs"][0]["hit_ratio_lookups"], json["runs"][0]["hit_ratio_unique"]);
  for (const auto& model : json["link_model"]) EXPECT_EQ(model["source"], "model");
  const std::string csv = HotCurveCsv(report);
  EXPECT_THAT(csv, AllOf(StartsWith("hbm_mib,k,policy,"), HasSubstr("\n1024,0.010000,embank,0.")));
  EXPECT_THAT(HotCurveSvg(report),
              AllOf(StartsWith("<svg xmlns="), HasSubstr("<style>"), HasSubstr("unique")));
}

TEST(HotStream, TellsDistinctIdsAndSwapsHalfOfTheTopFifth) {
  const StatusOr<std::unique_ptr<HotStream>> stream =
      HotStream::Zipf({.rows = 1000, .skew = 1.0, .batch = 500, .drift_at = 2, .seed = 3});
  ASSERT_TRUE(stream.ok());
  const std::vector<uint32_t> before((*stream)->order().begin(), (*stream)->order().end());
  for (uint64_t iteration = 0; iteration <= 2; ++iteration) {
    const HotBatch& batch = (*stream)->Next();
    EXPECT_EQ(batch.iteration, iteration);
    uint64_t ids = 0;
    for (const uint32_t count : batch.counts) ids += count;
    EXPECT_EQ(ids, 500u);
    EXPECT_EQ(batch.distinct.size(), batch.counts.size());
    EXPECT_TRUE(std::equal(before.begin(), before.end(), (*stream)->order().begin()));
  }
  (*stream)->Next();
  const auto after = (*stream)->order();
  for (uint32_t rank = 0; rank < 200; ++rank) {
    EXPECT_EQ(after[rank] == before[rank], rank % 2 == 1) << rank;
  }
  EXPECT_EQ(std::set<uint32_t>(after.begin(), after.end()).size(), 1000u);
}

TEST(ExactLru, EvictsTheOldest) {
  ExactLru lru(10, 2);
  EXPECT_FALSE(lru.Access(1));
  EXPECT_FALSE(lru.Access(2));
  EXPECT_TRUE(lru.Access(1));
  EXPECT_FALSE(lru.Access(3));
  EXPECT_FALSE(lru.Access(2));
  EXPECT_TRUE(lru.Access(3));
  EXPECT_FALSE(lru.Access(1));
}

TEST(LinkModel, CountsLatencyAndColdRows) {
  LinkModel model;
  model.rows_per_batch = 12'000;
  model.row_bytes = 1000;
  EXPECT_NEAR(model.BatchSeconds(0.0), 1.01e-3, 1e-12);
  EXPECT_NEAR(model.Gain(0.5), 1.01 / 0.51, 1e-9);
  model.rows_per_batch = model.RowsForGain(0.95, 0.8);
  EXPECT_NEAR(model.Gain(0.95), 0.8 / 0.05, 1e-9);
}

}  // namespace
}  // namespace embank::hot_run_test
