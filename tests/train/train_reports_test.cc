// The figures that embank-train reports of its store and its steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"

namespace embank::test::train_reports_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TrainReports, LookupsAreCountedInTheTierOfTheirRow) {
  const ScratchDirectory directory;
  const std::string json = directory.path() + "/figures.json";
  const std::string run =
      "--generate criteo-kaggle --divisor 50 --samples 16000 --batch 40 --model ffnn --dim 128 "
      "--dram-mib 40 --hbm-mib 4 --pmem-mib 16 --json " +
      json + " --path " + directory.path() + "/store --pmem " + directory.path() + "/pmem";
  const auto ratios = [&] {
    const std::string text = TextIn(json);
    const std::string part = text.substr(std::min(text.find("\"hit_ratio\": {"), text.size()));
    std::vector<double> all;
    for (const char* const tier : {"hbm", "dram", "pmem", "ssd", "created"}) {
      all.push_back(NumberOf(part, tier));
    }
    return all;
  };
  EXPECT_EQ(Train(run + " --steps 200").exit_code, 0);
  // Most rows are on PMem and SSD when it begins.
  const Ended ended = Train(run + " --resume");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("hit ratio      HBM 0.[0-9]+, DRAM 0.[0-9]+, PMem 0."));
  const std::vector<double> shares = ratios();
  EXPECT_GT(shares[0], 0.001) << ended.output;
  EXPECT_GT(shares[1], 0.001) << ended.output;
  EXPECT_GT(shares[4], 0.01) << ended.output;
  // Those that were found and those that were created are counted by outcome; the shares, by tier.
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1.0, 1e-4);
  const std::string text = TextIn(json);
  const std::string prefetched =
      text.substr(std::min(text.find("\"prefetched_rows\""), text.size()));
  EXPECT_GT(NumberOf(prefetched, "pmem"), 100.0) << text;
  EXPECT_GT(NumberOf(prefetched, "ssd"), 100.0) << text;
  EXPECT_GT(NumberOf(TextIn(json), "lookups"), 26.0 * 8'000 / 4);
  EXPECT_LE(NumberOf(TextIn(json), "lookups"), 26.0 * 8'000);
  // It reads dense parameters, and looks nothing up.
  const Ended idle = Train(run + " --resume --steps 1");
  EXPECT_EQ(idle.exit_code, 0) << idle.output;
  EXPECT_THAT(ratios(), ::testing::Each(0.0));
  EXPECT_EQ(NumberOf(TextIn(json), "lookups"), 0.0);
}

TEST(TrainReports, TiersAreThoseOfTheStore) {
  const ScratchDirectory directory;
  const std::string run =
      "--generate criteo-kaggle --divisor 5000 --samples 1000 --batch 100 --dim 4 --model ffnn";
  const std::string in_memory = Train(run).output;
  EXPECT_THAT(in_memory, ContainsRegex("\n  rows           [0-9]+\n"));
  EXPECT_THAT(in_memory,
              ContainsRegex("\n  hit ratio      0.[0-9]+ of [0-9]+ lookups; 0.[0-9]+ new"));
  const std::string on_disk =
      Train(run + " --dram-mib 48 --path " + directory.path() + "/store").output;
  EXPECT_THAT(on_disk, ContainsRegex("\n  rows           DRAM [0-9]+, SSD [0-9]+\n"));
  EXPECT_THAT(on_disk, Not(HasSubstr("PMem")));
  EXPECT_THAT(on_disk, ContainsRegex("\n  hit ratio      DRAM 0.[0-9]+, SSD 0.[0-9]+ of"));
}

// A sample whose dense feature is huge: its loss is finite, and the gradients of its rows are, too,
// but the squares of these are not.
TEST(TrainReports, StepsThatWouldNotBeFiniteAreLeftOutAndCounted) {
  const ScratchDirectory directory;
  const std::string csv = directory.path() + "/views.csv";
  std::ostringstream text;
  text << "user,item,price,click\n";
  for (int i = 0; i < 400; ++i) {
    text << i % 40 << "," << i % 7 << "," << (i == 250 ? "1e25" : "1") << "," << i % 2 << "\n";
  }
  WriteFile(csv, text.str());
  WriteFile(csv + ".columns", "label click\ndense price\nid user decimal\nid item decimal\n");
  const std::string json = csv + ".json";
  const Ended ended =
      Train("--dim 4 --batch 50 --data " + csv + " --columns " + csv + ".columns --json " + json);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  const std::string figures = TextIn(json);
  EXPECT_EQ(NumberOf(figures, "steps"), 8.0);
  const std::string left_out =
      figures.substr(std::min(figures.find("\"not_finite\""), figures.size()));
  // Its item is in each of the 8 slices of its batch, and its user in two.
  EXPECT_EQ(NumberOf(left_out, "rows"), 10.0) << figures;
  EXPECT_EQ(NumberOf(left_out, "dense_steps"), 0.0) << figures;
  EXPECT_THAT(ended.output, HasSubstr("not finite     10 steps of rows and 0 of dense parameters"));
}

TEST(TrainReports, LostUpdatesAreCounted) {
  const ScratchDirectory directory;
  const std::string json = directory.path() + "/figures.json";
  const Ended ended = Train(
      "--generate criteo-kaggle --divisor 5000 --samples 1000 --batch 100 --dim 4 --model ffnn "
      "--drop-updates 0.25 --json " +
      json);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("\n  lost updates   [0-9]+ of rows, on purpose: "
                                          "--drop-updates 0.25\n"));
  EXPECT_GT(NumberOf(TextIn(json), "lost_updates"), 100.0);
}

// A run that ends in its second epoch, before the broken line.
TEST(TrainReports, BrokenLinesAreThoseOfAllEpochs) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(1000, 900));
  const Ended ended = Train("--model ffnn --dim 4 --batch 100 --epochs 2 --steps 12 --data " + log +
                            " --json " + log + ".json");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(NumberOf(TextIn(log + ".json"), "broken_lines"), 1);
  EXPECT_THAT(ended.output, HasSubstr("line 900: "));
}

// Turns a bit of the first record of a segment.
void TurnBit(const std::string& segment) {
  constexpr std::streamoff kByte = 4096 + 33;
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(kByte);
  const int was = file.get();
  file.seekp(kByte);
  file.put(static_cast<char>(was ^ 4));
}

// Damages a record of an id's row: that of a row of dense parameters stops a run, and which of both
// a segment has depends on threads.
void DamageARowOfIds(const std::string& store) {
  std::set<std::string> segments;
  for (const auto& entry : std::filesystem::directory_iterator(store)) {
    if (entry.path().filename().string().starts_with("segment-")) segments.insert(entry.path());
  }
  for (const std::string& segment : segments) {
    TurnBit(segment);
    const std::string report = RunProgram("EMBANK_COMMAND", "verify " + store).output;
    const size_t newest = report.find("tables of checkpoint 2");
    const std::string dense = report.substr(std::min(report.find("dense", newest), report.size()));
    const std::string line = dense.substr(0, dense.find('\n'));
    if (report.find("newest): can be opened, 1 of") != std::string::npos && line.ends_with(" 0"))
      return;
    TurnBit(segment);
  }
  FAIL() << "no segment has such a row";
}

// A store that embank repair has made of a damaged one has lost a row, and the next run says so.
TEST(TrainReports, AResumedRunTellsThatRowsWereLost) {
  const ScratchDirectory directory;
  const std::string store = directory.path() + "/store";
  const std::string run =
      "--generate criteo-kaggle --divisor 5000 --samples 1000 --batch 100 --dim 4 ";
  EXPECT_EQ(Train(run + "--steps 5 --path " + store).exit_code, 0);
  const Ended whole = Train(run + "--steps 6 --resume --path " + store);
  EXPECT_EQ(whole.exit_code, 0) << whole.output;
  EXPECT_EQ(whole.output.find("were lost"), std::string::npos) << whole.output;
  ASSERT_NO_FATAL_FAILURE(DamageARowOfIds(store));
  const Ended repaired = RunProgram("EMBANK_COMMAND", "repair " + store + " --to " + store + "2");
  EXPECT_EQ(repaired.exit_code, 1) << repaired.output;
  const Ended resumed = Train(run + "--resume --path " + store + "2");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("goes on behind step 6"));
  EXPECT_THAT(resumed.output, HasSubstr("1 rows of the store were lost before that step"));
}

}  // namespace
}  // namespace embank::test::train_reports_test
