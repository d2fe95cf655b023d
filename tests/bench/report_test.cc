#include "bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "bindings/c/embank.h"
#include "tests/bench/temporary_file.h"

namespace embank::report_test {
namespace {

using testing::HasSubstr;

Machine SomeMachine() {
  Machine machine;
  machine.cpu = "Some Vendor (R) Some Processor (R) Platinum 9999X @ 2.40GHz";
  machine.cores = 128;
  machine.memory_bytes = uint64_t{2} << 40;
  machine.kernel = "Linux 6.1.0-99-cloud-amd64";
  machine.huge_pages = "madvise";
  machine.load_average = 100.25;
  return machine;
}

KvReport SomeKvReport() {
  KvReport report;
  for (const Phase phase : {Phase::kFill, Phase::kLookup, Phase::kUpdate}) {
    for (const char* engine : {"embank", "libcuckoo", "absl"}) {
      KvResult result;
      result.engine = engine;
      result.phase = phase;
      result.rows_per_second = result.engine == "absl" ? 123'456'789.0 : 246'913'578.0;
      result.rows_per_second_min = 99'999'999.0;
      result.rows_per_second_max = 299'999'999.0;
      if (result.engine == "absl") result.index_bytes_per_row = 28.5;
      result.bytes_per_row = 16400.25;
      result.batch_p50_us = 99'999.0;
      result.batch_p99_us = 999'999.0;
      result.batch_p999_us = 9'999'999.0;
      result.tail = 100.0;
      result.fraction_of_limit = 0.75;
      if (phase == Phase::kUpdate) result.unique_rows_per_second = 111'111'111.0;
      report.results.push_back(result);
    }
    KvResult limit;
    limit.engine = kLimitName;
    limit.phase = phase;
    limit.rows_per_second = 329'218'104.0;
    report.limits.push_back(limit);
  }
  KvResult twice = report.results[3];
  twice.threads = 16;
  twice.speedup = 12.5;
  report.results.push_back(twice);
  KvResult call = report.results[0];
  call.phase = Phase::kSmall;
  call.batch = 64;
  call.fraction_of_limit.reset();
  call.batch_p50_us = 1.234;
  report.results.push_back(call);
  report.rows = 123'456'789;
  report.positions = 4'194'304;
  return report;
}

ReplayReport SomeReplayReport() {
  ReplayReport report;
  report.source = "keys.trace.zst";
  report.lookup.positions = 1'245'184;
  report.lookup.nanoseconds = 500'000'000;
  report.lookup.latency.Record(1'500'000);
  report.gradients.positions = 1'245'184;
  report.gradients.nanoseconds = 1'000'000'000;
  report.distinct_keys = 258'368;
  report.share_top_1 = 0.387;
  report.share_top_10 = 0.621;
  report.share_top_20 = 0.730;
  report.row_bytes = 272;
  report.bytes_per_row = 294.1;
  report.rows_compared = 258'368;
  report.digest = 0xF96BD06A;
  return report;
}

void ExpectFitsATerminal(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Report, KvTableShowsEveryRunWithin80Columns) {
  const std::string table = KvTable(SomeMachine(), KvOptions(), SomeKvReport());
  ExpectFitsATerminal(table);
  EXPECT_THAT(table, HasSubstr("123,456,789 rows, uniform, permuted"));
  EXPECT_THAT(table, HasSubstr("lookup absl       1  123.457"));
  EXPECT_THAT(table, HasSubstr("lookup limit      1  329.218\n"));
  EXPECT_THAT(table, HasSubstr("update absl       1  111.111\n"));
  EXPECT_THAT(table, HasSubstr("lookup embank    16    12.50\n"));
  EXPECT_THAT(table, HasSubstr("small  embank     1       64       1,234"));
  EXPECT_THAT(table, HasSubstr("0.75"));
  EXPECT_THAT(table, HasSubstr("0.50"));
  EXPECT_THAT(table, HasSubstr("28.5"));
  for (const char* column : {"T:", "min..max:", "limit:", "rel:", "p99.9:", "tail:", "B/row:",
                             "keys: of one call;", "p99: 99 %"}) {
    EXPECT_THAT(table, HasSubstr(column)) << "explained below the table";
  }
}

TEST(Report, KvJsonHasTheFieldsThatProgramsRead) {
  const auto json =
      nlohmann::json::parse(KvJson(SomeMachine(), KvOptions(), SomeKvReport()), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["machine"]["cores"], 128);
  EXPECT_EQ(json["commit"], embank_build_info("git"));
  EXPECT_EQ(json["parameters"]["rows"], 123'456'789);
  EXPECT_EQ(json["parameters"]["dist"], "uniform");
  EXPECT_EQ(json["parameters"]["trace_is_whole"], true);
  ASSERT_EQ(json["runs"].size(), 11u);
  const nlohmann::json& embank_fill = json["runs"][0];
  EXPECT_EQ(embank_fill["engine"], "embank");
  EXPECT_EQ(embank_fill["phase"], "fill");
  EXPECT_EQ(embank_fill["threads"], 1);
  EXPECT_EQ(embank_fill["rows_per_second"], 246'913'578.0);
  EXPECT_EQ(embank_fill["batch"], 1);
  EXPECT_EQ(embank_fill["fraction_of_limit"], 0.75);
  EXPECT_EQ(embank_fill["batch_p999_over_p50"], 100.0);
  EXPECT_TRUE(embank_fill.at("unique_rows_per_second").is_null());
  EXPECT_TRUE(embank_fill.at("speedup").is_null());
  EXPECT_EQ(json["runs"][6]["unique_rows_per_second"], 111'111'111.0);
  EXPECT_EQ(json["runs"][9]["speedup"], 12.5);
  EXPECT_TRUE(json["runs"][10].at("fraction_of_limit").is_null());
  EXPECT_EQ(json["limits"][1]["phase"], "lookup");
  EXPECT_EQ(json["limits"][1]["rows_per_second"], 329'218'104.0);
  EXPECT_TRUE(embank_fill.at("index_bytes_per_row").is_null());
  EXPECT_EQ(json["runs"][2]["index_bytes_per_row"], 28.5);
  EXPECT_EQ(embank_fill["bytes_per_row"], 16400.25);
  EXPECT_EQ(embank_fill["batch_p50_us"], 99'999.0);
  EXPECT_EQ(embank_fill["batch_p99_us"], 999'999.0);
  EXPECT_EQ(embank_fill["batch_p999_us"], 9'999'999.0);
}

TEST(Report, KvJsonSaysThatATraceWasCutAndReplacesWhatIsNoUtf8) {
  Machine machine = SomeMachine();
  machine.cpu = "Some \xFF Processor";
  KvReport report = SomeKvReport();
  report.trace_is_whole = false;
  KvOptions options;
  options.distribution = {Distribution::Kind::kTrace, 0.0, "keys\xC0.trace"};
  const auto json = nlohmann::json::parse(KvJson(machine, options, report), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["parameters"]["trace_is_whole"], false);
  EXPECT_EQ(json["machine"]["cpu"], "Some \uFFFD Processor");
}

TEST(Report, LimitsTableShowsEveryFigureWithin80Columns) {
  LimitsReport report;
  report.rows_bytes = uint64_t{3} << 30;
  LimitFigure figure;
  figure.probe = LimitProbe::kReadModifyWrite;
  figure.threads = 256;
  figure.bytes = 16384;
  figure.per_second = 12'345'678.0;
  figure.per_second_min = 1'234'567.0;
  figure.per_second_max = 23'456'789.0;
  report.figures.push_back(figure);
  const std::string table = LimitsTable(SomeMachine(), report);
  ExpectFitsATerminal(table);
  EXPECT_THAT(table, HasSubstr("2 MiB read_modify_write    16384 256      12.35"));
  EXPECT_THAT(table, HasSubstr("3.00 GiB of rows"));
  for (const char* column : {"pages: ", "T: ", "M/s:", "ns: ", "GB/s: "}) {
    EXPECT_THAT(table, HasSubstr(column)) << "explained below the table";
  }
}

TEST(Report, ReplayTableShowsWhatWasFoundWithin80Columns) {
  ReplayReport report = SomeReplayReport();
  std::string table = ReplayTable(SomeMachine(), ReplayOptions(), report);
  ExpectFitsATerminal(table);
  for (const char* part :
       {"keys.trace.zst", "1,245,184      2,490,368", "1,500", "distinct keys   258,368",
        "top 1 %: 38.7 %", "top 10 %: 62.1 %", "top 20 %: 73.0 %", "272 in its slab, 294.1 all-in",
        "mismatches      0\n", "crc32c f96bd06a", "rows/s: ", "p99: ", "digest: a"}) {
    EXPECT_THAT(table, HasSubstr(part));
  }
  report.mismatches = 3;
  report.first_mismatch = "key 18446744073709551615: optimizer state";
  table = ReplayTable(SomeMachine(), ReplayOptions(), report);
  ExpectFitsATerminal(table);
  EXPECT_THAT(table, HasSubstr("mismatches      3, the first: key 18446744073709551615"));
}

TEST(Report, ReplayJsonHasTheFigures) {
  const auto json = nlohmann::json::parse(
      ReplayJson(SomeMachine(), ReplayOptions(), SomeReplayReport()), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["runs"][0]["verb"], "lookup");
  EXPECT_EQ(json["runs"][0]["rows_per_second"], 2'490'368.0);
  EXPECT_EQ(json["distinct_keys"], 258'368);
  EXPECT_EQ(json["mismatches"], 0);
  EXPECT_EQ(json["digest"], "f96bd06a");
}

TEST(Report, FilesAreWrittenOrNamed) {
  const TemporaryFile file(".json", "old and longer");
  EXPECT_TRUE(CheckWritable(file.path()).ok());
  EXPECT_EQ(file.Contents(), "old and longer");
  EXPECT_TRUE(WriteFile(file.path(), "new").ok());
  EXPECT_EQ(file.Contents(), "new");
  EXPECT_THAT(std::string(CheckWritable("/no/such/file").message()), HasSubstr("/no/such/file"));
  EXPECT_THAT(std::string(WriteFile("/no/such/file", "x").message()), HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace embank::report_test
