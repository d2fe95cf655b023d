#include "bench/ssd_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/embank.h"

namespace embank::ssd_report_test {
namespace {

using testing::HasSubstr;

SsdReport SomeReport() {
  SsdReport report;
  report.sizes = {123'456'789, 512, 544, 63'209'875'968, 15'802'468'992, 0, 0};
  for (const SsdPhase phase : {SsdPhase::kFill, SsdPhase::kLookup, SsdPhase::kPmem, SsdPhase::kScan,
                               SsdPhase::kOverwrite, SsdPhase::kCheckpoint, SsdPhase::kRecover}) {
    for (const char* engine : {"embank", "rocksdb-rows"}) {
      SsdResult result{{phase, engine, 256}, {}};
      for (const char* name : SsdFigureNames()) result.figures[name] = 0.5;
      result.figures["rows_per_second"] = 9'999'999.0;
      result.figures["fio_iops"] = 1'234'500.0;
      result.figures["longest_batch_us"] = 99'999'000.0;
      result.figures["pmem_rows_per_second"] = 9'999'999.0;
      report.results.push_back(result);
    }
  }
  report.results[3].figures.erase("cpu_us_per_miss");
  report.notes = {"fio is not installed"};
  return report;
}

TEST(SsdReport, TableShowsEveryPhaseWithin80Columns) {
  const std::string table = SsdTable(Machine(), SsdOptions(), SomeReport());
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const char* part : {"123,456,789 rows of 512 bytes, uniform", "14.72 GiB of 58.87 GiB",
                           "us/miss", "lookup         T", "pmem           T", "scan           T",
                           "recover        T", "fio, thousand random reads a second: 1234.5",
                           "rows a second of PMem / of the SSD in lookup: 0.50",
                           "embank / best peer: 0.50", "note: fio is not installed"}) {
    EXPECT_THAT(table, HasSubstr(part));
  }
}

// The table of a phase, and the text below it, as one line of words.
std::string SectionOf(const std::string& table, const std::string& phase) {
  const size_t begin = table.find("\n\n  " + phase + " ");
  if (begin == std::string::npos) return "";
  std::istringstream words(table.substr(begin, table.find("\n\n", begin + 2) - begin));
  std::string section;
  for (std::string word; words >> word;) section += " " + word;
  return section;
}

TEST(SsdReport, EveryColumnIsExplainedBelowItsTable) {
  const std::string table = SsdTable(Machine(), SsdOptions(), SomeReport());
  const std::pair<const char*, std::vector<const char*>> kPhases[] = {
      {"fill", {"T", "krows/s", "p50 us", "tail", "max ms", "settle s", "WA"}},
      {"lookup", {"T", "krows/s", "kIOPS", "of fio", "hit", "us/miss", "p50 us", "tail"}},
      {"pmem", {"T", "krows/s", "pmem", "pmem k/s", "us/row", "drains", "writes", "to SSD"}},
      {"scan", {"T", "s", "krows/s", "MB/s", "of fio", "kIOPS"}},
      {"overwrite", {"T", "krows/s", "of rows", "MB/s", "WA", "p50 us", "tail", "max ms"}},
      {"checkpoint", {"T", "s", "MB/s", "of fio", "trainer k/s", "slower", "max ms"}},
      {"recover", {"T", "s", "Mrows/s", "footers s", "times", "index B/row"}}};
  for (const auto& [phase, columns] : kPhases) {
    const std::string section = SectionOf(table, phase);
    std::string headings = std::string(" ") + phase;
    for (const std::string column : columns) {
      headings += " " + column;
      EXPECT_THAT(section, HasSubstr(" " + column + ": ")) << phase;
    }
    EXPECT_THAT(section, testing::StartsWith(headings + " embank ")) << "all columns";
  }
}

TEST(SsdReport, APhaseThatDidNotRunIsNotExplained) {
  SsdReport report = SomeReport();
  report.results.resize(2);
  const std::string table = SsdTable(Machine(), SsdOptions(), report);
  EXPECT_THAT(SectionOf(table, "fill"), HasSubstr("settle s: "));
  EXPECT_THAT(table, testing::Not(HasSubstr("us/miss")));
  EXPECT_THAT(table, testing::Not(HasSubstr("footers")));
}

TEST(SsdReport, JsonHasAllFiguresAndNullForThoseNotMeasured) {
  SsdOptions options;
  options.utilisation = 0.75;
  const auto json =
      nlohmann::json::parse(SsdJson(Machine(), options, SomeReport()), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["commit"], embank_build_info("git"));
  EXPECT_EQ(json["parameters"]["rows"], 123'456'789);
  EXPECT_EQ(json["parameters"]["peer_threads"].size(), 3u);
  ASSERT_EQ(json["runs"].size(), 14u);
  for (const nlohmann::json& run : json["runs"]) {
    for (const char* name :
         {"rows_per_second", "iops", "fio_iops", "cpu_us_per_miss", "hit_ratio",
          "write_amplification", "batch_p50_us", "batch_p999_over_p50", "longest_batch_us",
          "pmem_hit_ratio", "pmem_rows_per_second", "pmem_cpu_us_per_row", "pmem_times_ssd",
          "drains", "pmem_buffers_written", "ssd_rows_appended_by_checkpoint", "trainer_slowdown",
          "recover_seconds", "index_bytes_per_row"}) {
      EXPECT_TRUE(run.contains(name)) << name;
    }
  }
  EXPECT_EQ(json["runs"][0]["phase"], "fill");
  EXPECT_EQ(json["runs"][3]["engine"], "rocksdb-rows");
  EXPECT_TRUE(json["runs"][3]["cpu_us_per_miss"].is_null());
  EXPECT_EQ(json["runs"][3]["fio_iops"], 1'234'500.0);
  EXPECT_EQ(json["notes"][0], "fio is not installed");
}

TEST(SsdSamples, FiguresAreMediansOfTheRoundsThatHaveThem) {
  SsdSamples samples;
  const SsdCase which{SsdPhase::kLookup, "embank", 2};
  samples.Record(which, {{"rows_per_second", 3.0}, {"iops", 7.0}});
  samples.Record(which, {{"rows_per_second", 1.0}});
  samples.Record(which, {{"rows_per_second", 2.0}, {"iops", 9.0}});
  samples.Record({SsdPhase::kLookup, "embank", 4}, {{"rows_per_second", 5.0}});
  const std::vector<SsdResult> results = samples.Results(SsdPhase::kLookup, "embank");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].Figure("rows_per_second"), 2.0);
  EXPECT_EQ(results[0].Figure("rows_per_second_min"), 1.0);
  EXPECT_EQ(results[0].Figure("rows_per_second_max"), 3.0);
  EXPECT_EQ(results[0].Figure("iops"), 7.0);
  EXPECT_FALSE(results[0].Figure("hit_ratio").has_value());
  EXPECT_EQ(results[1].which.threads, 4u);
  EXPECT_TRUE(samples.Results(SsdPhase::kFill, "embank").empty());
}

}  // namespace
}  // namespace embank::ssd_report_test
