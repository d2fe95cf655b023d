#include "bench/traces_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/threads/clock.h"
#include "bench/report.h"
#include "tests/support/scratch_directory.h"

namespace embank::traces_run_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TracesRun : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& contents) {
    const std::filesystem::path path = std::filesystem::path(directory_.path()) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << contents;
  }
  StatusOr<TracesReport> Run() {
    Progress progress(stderr, SteadyClock());
    return RunTraces(options(), &progress);
  }
  TracesOptions options() const {
    TracesOptions options;
    options.directory = directory_.path();
    options.fractions = {0.1, 0.5};
    return options;
  }

 private:
  const test::ScratchDirectory directory_;
};

// Ten keys, each twice in a row.
const char kPairs[] = "0\n0\n1\n1\n2\n2\n3\n3\n4\n4\n5\n5\n6\n6\n7\n7\n8\n8\n9\n9\n";

TEST_F(TracesRun, FindsTheTracesAndMeasuresEachPolicy) {
  Write("pairs.txt", kPairs);
  Write("below/three.trace", std::string("\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1", 24));
  Write("README.md", "no trace");
  const StatusOr<TracesReport> report = Run();
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->results.size(), 4u);
  const TraceResult& three = report->results[1];
  EXPECT_EQ(three.file, "below/three.trace");
  EXPECT_EQ(three.accesses, 3u);
  EXPECT_EQ(three.distinct_keys, 2u);
  EXPECT_EQ(three.fraction, 0.5);
  EXPECT_EQ(three.capacity, 1u);
  EXPECT_EQ(three.optimum, 0.0);
  const TraceResult& pairs = report->results[3];
  EXPECT_EQ(pairs.file, "pairs.txt");
  EXPECT_EQ(pairs.capacity, 5u);
  EXPECT_TRUE(pairs.is_whole);
  EXPECT_DOUBLE_EQ(pairs.optimum, 0.5);
  ASSERT_EQ(pairs.figures.size(), 4u);
  const char* const policies[] = {"lru", "clock", "lfu", "lfu-cold"};
  for (size_t i = 0; i < 4; ++i) {
    const PolicyFigure& figure = pairs.figures[i];
    EXPECT_EQ(figure.policy, policies[i]);
    EXPECT_DOUBLE_EQ(figure.hit_ratio, 0.5);
    EXPECT_GT(figure.accesses_per_second_min, 0.0);
    EXPECT_LE(figure.accesses_per_second_min, figure.accesses_per_second);
    EXPECT_LE(figure.accesses_per_second, figure.accesses_per_second_max);
  }
  EXPECT_TRUE(report->left_out.empty());
}

TEST_F(TracesRun, NamesTheFilesThatOnlyLookLikeTraces) {
  Write("pairs.txt", kPairs);
  Write("empty.txt", "");
  Write("words.txt", "user,item\n");
  const StatusOr<TracesReport> report = Run();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->results.size(), 2u);
  ASSERT_EQ(report->left_out.size(), 2u);
  EXPECT_EQ(report->left_out[0].file, "empty.txt");
  EXPECT_THAT(report->left_out[0].reason, HasSubstr("no keys"));
  EXPECT_EQ(report->left_out[1].file, "words.txt");
  EXPECT_THAT(report->left_out[1].reason, HasSubstr("words.txt:1: 'u' in column 1"));
}

TEST_F(TracesRun, ATraceThatBreaksOffIsAnError) {
  Write("broken.txt", "1\n2\nx\n");
  const Status status = Run().status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("broken.txt:3: 'x' in column 1"));
}

TEST_F(TracesRun, ADirectoryWithoutTracesNamesTheOption) {
  Write("README.md", "no trace");
  EXPECT_EQ(Run().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Run().status().message()), HasSubstr("--traces: "));
  Progress progress(stderr, SteadyClock());
  TracesOptions nowhere = options();
  nowhere.directory += "/nowhere";
  EXPECT_THAT(std::string(RunTraces(nowhere, &progress).status().message()),
              AllOf(HasSubstr("--traces: "), HasSubstr("nowhere: No such file")));
}

TEST_F(TracesRun, TableAndJsonHaveWhatWasMeasured) {
  Write("below/pairs.trc.txt", kPairs);
  Write("words.txt", "user,item\n");
  const StatusOr<TracesReport> report = Run();
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string table = TracesTable(DescribeMachine(), options(), *report);
  EXPECT_THAT(table, AllOf(HasSubstr("  pairs                           10%   0.5000   0.5000"),
                           HasSubstr("  pairs                                    20            10"),
                           HasSubstr("left out: "), HasSubstr("lfu-cold  optimum")));
  const auto json =
      nlohmann::json::parse(TracesJson(DescribeMachine(), options(), *report), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_TRUE(json.at("machine").contains("cpu"));
  EXPECT_TRUE(json.contains("commit"));
  EXPECT_EQ(json.at("parameters").at("fractions"), nlohmann::json({0.1, 0.5}));
  ASSERT_EQ(json.at("runs").size(), 8u);
  const nlohmann::json& run = json["runs"][5];
  EXPECT_EQ(run.at("trace"), "below/pairs.trc.txt");
  EXPECT_EQ(run.at("accesses"), 20);
  EXPECT_EQ(run.at("distinct_keys"), 10);
  EXPECT_EQ(run.at("trace_is_whole"), true);
  EXPECT_EQ(run.at("fraction"), 0.5);
  EXPECT_EQ(run.at("capacity_rows"), 5);
  EXPECT_EQ(run.at("policy"), "clock");
  EXPECT_EQ(run.at("hit_ratio"), 0.5);
  EXPECT_EQ(run.at("optimal_hit_ratio"), 0.5);
  for (const char* field :
       {"accesses_per_second", "accesses_per_second_min", "accesses_per_second_max"}) {
    EXPECT_GT(run.at(field), 0.0) << field;
  }
  EXPECT_EQ(json.at("left_out").at(0).at("file"), "words.txt");
}

}  // namespace
}  // namespace embank::traces_run_test
