#include "bench/run_sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace embank::run_sections_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ReplayReport SomeReplay() {
  ReplayReport report;
  report.source = "keys <of> a trace";
  report.lookup.positions = 3'000'000;
  report.lookup.nanoseconds = 1'500'000'000;
  report.lookup.latency.Record(2'000'000);
  report.gradients = report.lookup;
  report.slices = {{1'000'000, 1'000'000'000, 500'000'000, 1'000'000, 600'000},
                   {2'000'000, 500'000'000, 0, 2'000'000, 2'000'000}};
  report.answers_compared = 3'000'000;
  report.rows_compared = 123'456;
  report.digest = 0xF96BD06A;
  return report;
}

SurviveReport SomeSurvive() {
  SurviveReport report;
  report.kills = {{KilledIn::kBatches, 12, 8, 0.5}, {KilledIn::kRecovery, 16, 16, 0.25}};
  report.rows_compared = 654'321;
  report.data_bytes = uint64_t{40} << 20;
  report.dram_bytes = uint64_t{16} << 20;
  report.figures.positions_before = 1'000'000;
  report.figures.slices = SomeReplay().slices;
  report.figures.lookup = SomeReplay().lookup;
  report.figures.checkpoint_positions = {2'000'000, 4'000'000};
  report.figures.checkpoint_seconds = {0.5, 1.5};
  return report;
}

std::string ReplayText(const ReplayReport& report) {
  Machine machine;
  machine.cpu = "Some Processor";
  return SectionElement(ReplaySection(machine, ReplayOptions(), report,
                                      {"embank-bench replay --seed 1", "2026-01-02 03:04 UTC"}),
                        1);
}

TEST(CommandText, IsWhatAShellTakes) {
  const std::vector<const char*> words = {"/some/where/embank-bench",
                                          "replay",
                                          "--trace",
                                          "my keys.txt",
                                          "",
                                          "it's",
                                          "$x",
                                          "a=b,c.d:e"};
  EXPECT_EQ(CommandText(words),
            "embank-bench replay --trace 'my keys.txt' '' 'it'\\''s' '$x' a=b,c.d:e");
}

TEST(TimeText, IsInUtc) {
  EXPECT_EQ(TimeText(0), "1970-01-01 00:00 UTC");
  EXPECT_EQ(TimeText(1'700'000'000), "2023-11-14 22:13 UTC");
}

TEST(ReplaySection, SaysWhatWasShownWhereAndHow) {
  const std::string text = ReplayText(SomeReplay());
  EXPECT_THAT(text, AllOf(HasSubstr("All 3,000,000 answers and all 123,456 rows"),
                          HasSubstr("Some Processor"), HasSubstr("<dt>commit</dt>"),
                          HasSubstr("embank-bench replay --seed 1"),
                          HasSubstr("2026-01-02 03:04 UTC"), HasSubstr("keys &lt;of&gt; a trace"),
                          HasSubstr("crc32c f96bd06a"), Not(HasSubstr("FAILED"))));
  EXPECT_THAT(text,
              AllOf(HasSubstr("Throughput"), HasSubstr("Hit ratio"), HasSubstr("Time of a batch"),
                    HasSubstr("<td>1,000,000</td>"), HasSubstr("<td>0.600</td>")));
}

TEST(ReplaySection, AStoreThatDiffersIsAFailure) {
  ReplayReport report = SomeReplay();
  report.mismatches = 7;
  report.first_mismatch = "key 42: vector";
  EXPECT_THAT(ReplayText(report),
              AllOf(HasSubstr("verdict failed"), HasSubstr("FAILED: 7"),
                    HasSubstr("key 42: vector"), Not(HasSubstr("bit for bit."))));
}

TEST(ReplaySection, AReplayWithoutKeysAndGradientsHasPictures) {
  EXPECT_THAT(ReplayText(ReplayReport()), AllOf(HasSubstr("nothing was measured"),
                                                Not(HasSubstr("nan")), Not(HasSubstr("inf<"))));
}

TEST(ReplaySection, ItsFiguresAreThoseOfTheSlices) {
  const HtmlSection section = ReplaySection(Machine(), ReplayOptions(), SomeReplay(), RunOrigin());
  ASSERT_EQ(section.figures.size(), 3u);
  const std::vector<PlotPoint>& lookups = section.figures[0].plot.series[0].points;
  ASSERT_EQ(lookups.size(), 2u);
  EXPECT_DOUBLE_EQ(lookups[0].x, 1.0);
  EXPECT_DOUBLE_EQ(lookups[0].y, 1.0);
  EXPECT_DOUBLE_EQ(lookups[1].x, 3.0);
  EXPECT_DOUBLE_EQ(lookups[1].y, 4.0);
  EXPECT_DOUBLE_EQ(section.figures[1].plot.series[0].points[0].y, 60.0);
  const std::vector<PlotPoint>& latencies = section.figures[2].plot.series[0].points;
  ASSERT_EQ(latencies.size(), 2u);
  EXPECT_DOUBLE_EQ(latencies[0].y, 100.0);
  EXPECT_LE(latencies[0].x, 2.0);
  EXPECT_GT(latencies[1].x, 2.0);
}

TEST(SurviveSection, ShowsKillsAndCheckpoints) {
  SurviveOptions options;
  const HtmlSection section = SurviveSection(Machine(), options, SomeSurvive(), RunOrigin());
  EXPECT_THAT(section.figures[0].plot.marks, ElementsAre(2.0, 4.0));
  EXPECT_THAT(section.figures[1].plot.marks, ElementsAre(2.0, 4.0));
  EXPECT_DOUBLE_EQ(section.figures[0].plot.series[0].points[0].x, 2.0);
  const std::string text = SectionElement(section, 1);
  EXPECT_THAT(text, AllOf(HasSubstr("Killed 2 times"), HasSubstr("654,321 rows"),
                          HasSubstr("take 40 MiB"), HasSubstr("16 MiB of memory"),
                          HasSubstr("<td>recovery</td><td>16</td><td>16</td><td>0.250</td>"),
                          HasSubstr("checkpoint")));
  SurviveReport wrong = SomeSurvive();
  wrong.mismatches = 1;
  EXPECT_TRUE(SurviveSection(Machine(), options, wrong, RunOrigin()).is_failed);
}

TEST(TiersSection, ShowsWhereRowsAre) {
  TiersReport report;
  report.answers_compared = 3'000'000;
  report.rows_compared = 123'456;
  report.positions = 1'000;
  report.created = 250;
  report.tiers = {{.name = "HBM", .rows = 7, .bytes = 3 << 20, .answered = 500, .moved_in = 9},
                  {.name = "SSD", .rows = 1'234, .answered = 250}};
  report.lookup = SomeReplay().lookup;
  const auto text = [&] {
    return SectionElement(TiersSection(Machine(), TiersOptions(), report, RunOrigin()), 1);
  };
  EXPECT_THAT(text(), AllOf(HasSubstr("3,000,000 answers and all 123,456 rows"),
                            HasSubstr("<td>HBM</td><td>7</td><td>3.0</td><td>50.0 %</td><td>9"),
                            HasSubstr("<td>SSD</td><td>1,234</td><td>0.0</td><td>25.0 %</td><td>-"),
                            HasSubstr("<td>made</td><td></td><td></td><td>25.0 %</td>")));
  report.mismatches = 1;
  EXPECT_THAT(text(), HasSubstr("verdict failed"));
}

}  // namespace
}  // namespace embank::run_sections_test
