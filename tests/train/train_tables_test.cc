// embank-train with features that share a table, and with tables that forget.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "tests/train/trained_rows.h"

namespace embank::test::train_tables_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// An item, and those that the user has seen before.
std::string Views(int lines) {
  std::ostringstream text;
  text << "item,history,age,click\n";
  for (int i = 0; i < lines; ++i) {
    text << i * 7 % 50 << ',';
    for (int k = 0; k < i % 4; ++k) text << (k > 0 ? "|" : "") << (i * 3 + k) % 50;
    text << ',' << i % 90 << ',' << (i % 5 < 2 ? 1 : 0) << '\n';
  }
  return text.str();
}

class SharedTables : public testing::Test {
 protected:
  void SetUp() override {
    WriteFile(At("log"), Views(1500));
    const std::string label = "label click\ndense age log\n";
    WriteFile(At("shared"), label + "id item decimal\nbag history decimal table item\n");
    WriteFile(At("apart"), label + "id item decimal\nbag history decimal\n");
  }

  std::string At(const std::string& name) const { return directory_.path() + "/" + name; }

  double Weights(const std::string& columns, const std::string& options = "") const {
    const Ended ended =
        Train("--data " + At("log") + " --columns " + At(columns) +
              " --dim 8 --batch 100 --model deep-fm --json " + At("json") + " " + options);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return NumberOf(TextIn(At("json")), "weights_crc32c");
  }

  const ScratchDirectory directory_;
};

TEST_F(SharedTables, HaveARowForEachIdWhicheverFeatureHasIt) {
  Weights("shared");
  const std::string rows = TextIn(At("json"));
  EXPECT_EQ(NumberOf(rows.substr(rows.find("\"rows\"")), "dram"), 2 * 50);
  Weights("apart");
  const std::string apart = TextIn(At("json"));
  EXPECT_EQ(NumberOf(apart.substr(apart.find("\"rows\"")), "dram"), 4 * 50);
}

TEST_F(SharedTables, HaveTheBitsOfAnyPacksAndThreads) {
  const double weights = Weights("shared");
  EXPECT_NE(Weights("apart"), weights);
  for (const char* const how : {"--no-packing", "--micro-batches 4", "--threads 1", "--groups 3",
                                "--warmup-steps 2 --pack-rule least", "--exclude history"}) {
    EXPECT_EQ(Weights("shared", how), weights) << how;
  }
}

TEST_F(SharedTables, AreThoseOfAResumedRunAndOfAPrediction) {
  const double whole = Weights("shared", "--path " + At("whole"));
  Weights("shared", "--steps 6 --path " + At("parts"));
  EXPECT_EQ(Weights("shared", "--resume --path " + At("parts")), whole);
  ExpectSameRows(At("parts"), At("whole"), 3);
  const Ended apart = Train("--resume --path " + At("parts") + " --data " + At("log") +
                            " --columns " + At("apart"));
  EXPECT_EQ(apart.exit_code, 1) << apart.output;
  EXPECT_THAT(apart.output, HasSubstr("it has \"id table 1 item\""));
  const Ended described = Train("describe --path " + At("parts"));
  EXPECT_EQ(CountOf(described.output, "\"table\": \"id item\""), 2u) << described.output;
  const Ended scored =
      Train("predict --path " + At("parts") + " --data " + At("log") + " --out " + At("scores"));
  EXPECT_EQ(scored.exit_code, 0) << scored.output;
  EXPECT_EQ(CountOf(TextIn(At("scores")), "\n"), 1501u);
}

// ---- tables that forget ----

TEST(TablesThatForget, AreTrainedWhereOthersAreFull) {
  const ScratchDirectory directory;
  const std::string run =
      "--generate criteo-kaggle --divisor 20 --samples 40000 --batch 500 --dim 64 --model ffnn "
      "--dram-mib 16 --json " +
      directory.path() + "/json ";
  const Ended full = Train(run);
  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_THAT(full.output, HasSubstr("--forget"));
  const Ended ended = Train(run + "--forget");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(NumberOf(TextIn(directory.path() + "/json"), "steps"), 80);
}

// A log that is full loses rows when it is compacted; dense parameters, in a table that refuses,
// stay.
TEST(TablesThatForget, AreTrainedWhereTheLogIsFull) {
  const ScratchDirectory directory;
  const std::string json = directory.path() + "/json";
  const std::string run =
      "--generate criteo-kaggle --divisor 5 --samples 50000 --batch 200 --dim 32 --model ffnn "
      "--dram-mib 16 --checkpoint-every 2 --json " +
      json + " --path " + directory.path() + "/";
  const Ended full = Train(run + "refuses --ssd-mib 64");
  EXPECT_EQ(full.exit_code, 1) << full.output;
  EXPECT_THAT(full.output, HasSubstr("; give more --ssd-mib, or a smaller --checkpoint-every"));
  const Ended ended = Train(run + "forgets --forget --steps 230 --ssd-mib 64");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  const std::string figures = TextIn(json);
  const double created = NumberOf(figures, "created") * NumberOf(figures, "lookups");
  const std::string rows = figures.substr(figures.find("\"rows\""));
  EXPECT_LT(NumberOf(rows, "dram") + NumberOf(rows, "ssd"), 0.9 * created) << figures;
  // The rows of two checkpoints may have all of the space until the next one.
  const Ended resumed = Train(run + "forgets --resume --ssd-mib 96");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(NumberOf(TextIn(json), "steps"), 250);
}

TEST(TablesThatForget, StaySoInResumedRuns) {
  const ScratchDirectory directory;
  const std::string data = "--generate criteo-kaggle --divisor 5000 --samples 2000 --dram-mib 48 ";
  const std::string path = "--path " + directory.path() + "/";
  const std::string layers = "--batch 100 --dim 4 --model ffnn ";
  ASSERT_EQ(Train(data + layers + path + "forgets --forget --steps 5").exit_code, 0);
  const Ended resumed = Train(data + path + "forgets --resume");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  ASSERT_EQ(Train(data + layers + path + "refuses --steps 5").exit_code, 0);
  const Ended other = Train(data + path + "refuses --resume --forget");
  EXPECT_EQ(other.exit_code, 1) << other.output;
  EXPECT_THAT(other.output, HasSubstr("it has \"full tables refuse\""));
}

}  // namespace
}  // namespace embank::test::train_tables_test
