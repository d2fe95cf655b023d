// embank-train --resume: what a run takes from its checkpoint, what may change, and what may not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "tests/train/trained_rows.h"

namespace embank::test::train_resume_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Options of a small model, which a checkpoint has.
constexpr const char* kModel = " --model ffnn --dim 4 --batch 100 --slices 4 --seed 9";

TEST(TrainResume, ARunTakesItsModelFromTheCheckpoint) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(1000, 7));
  const std::string run = "--dram-mib 48 --path " + directory.path() + "/store --data " + log;
  EXPECT_EQ(
      Train("--data " + log + kModel + " --row-rate 0.03 --weights " + log + ".whole").exit_code,
      0);
  EXPECT_EQ(Train(run + kModel + " --row-rate 0.03 --steps 4").exit_code, 0);
  for (const auto& [option, theirs, ours, left_out] : std::vector<std::array<std::string, 4>>{
           {"--model mmoe", "model ffnn", "model mmoe", "--model"},
           {"--dim 8", "id feature C1 dim 4", "id feature C1 dim 8", "--dim or --columns"},
           {"--slices 8", "slices 4", "slices 8", "--slices"}}) {
    const Ended refused = Train(run + " --resume " + option);
    EXPECT_EQ(refused.exit_code, 1) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("it has \"" + theirs + "\", and this one \"" + ours +
                                          "\"; leave " + left_out + " out, or give another"));
  }
  const Ended resumed = Train(run + " --resume --weights " + log + ".resumed");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("goes on behind step 4\n"));
  EXPECT_THAT(resumed.output, Not(HasSubstr(" -> ")));
  EXPECT_THAT(resumed.output, HasSubstr("line 7: "));
  EXPECT_EQ(TextIn(log + ".resumed"), TextIn(log + ".whole"));
}

// Both rates have the same first six digits.
TEST(TrainResume, ChangedSettingsAreTold) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(1000));
  const std::string run =
      "--dram-mib 48 --path " + directory.path() + "/store --data " + log + " --row-rate ";
  ASSERT_EQ(Train(run + "0.1234567 --steps 2" + kModel).exit_code, 0);
  const Ended changed = Train(run + "0.1234571 --resume --batch 50 --dense-rate 0.5 --steps 4");
  EXPECT_EQ(changed.exit_code, 0) << changed.output;
  EXPECT_THAT(changed.output, HasSubstr("\nbatch 100 -> 50\n"
                                        "learning rate of rows 0.1234567 -> 0.1234571\n"
                                        "learning rate of dense parameters 0.01 -> 0.5\n"));
  EXPECT_THAT(changed.output, HasSubstr("4, 100 samples in this run"));
  const Ended again = Train(run + "0.1234571 --resume");
  EXPECT_THAT(again.output, Not(HasSubstr(" -> "))) << "the checkpoint has the new ones";
  EXPECT_THAT(again.output, HasSubstr("18, 700 samples in this run"));
}

TEST(TrainResume, ARunHasTheSameColumnFile) {
  const ScratchDirectory directory;
  const std::string csv = directory.path() + "/ratings.csv";
  std::string text = "user,item,age,rating\n";
  for (int i = 0; i < 500; ++i) {
    text += std::to_string(i % 40) + "," + std::to_string(i % 7) + "," + std::to_string(i % 90) +
            "," + std::to_string(i % 6) + "\n";
  }
  WriteFile(csv, text);
  const std::string columns = directory.path() + "/columns.txt";
  const std::string run = "--model ffnn --dim 4 --batch 50 --dram-mib 48 --path " +
                          directory.path() + "/store --data " + csv + " --columns " + columns;
  const std::string label = "label rating at-least 4\n";
  const std::string ids = "id user decimal\nid item decimal\n";
  WriteFile(columns, label + "dense age\n" + ids);
  ASSERT_EQ(Train(run + " --steps 4").exit_code, 0);
  for (const auto& [other, theirs, ours] : std::vector<std::array<std::string, 3>>{
           {"label rating at-least 3\ndense age\n" + ids, "label rating at-least 4",
            "label rating at-least 3"},
           {label + "dense age log\n" + ids, "dense age", "dense age log"},
           {label + "dense item\nid user decimal\n", "id features 2", "id features 1"},
           {label + "dense age\nid user hex\nid item decimal\n", "id user decimal",
            "id user hex"}}) {
    WriteFile(columns, other);
    const Ended refused = Train(run + " --resume");
    EXPECT_EQ(refused.exit_code, 1) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("it has \"" + theirs + "\", and this one \"" + ours +
                                          "\"; leave --columns out"));
  }
  WriteFile(columns, "# a remark\n" + label + "dense  age\n" + ids);
  EXPECT_EQ(Train(run + " --resume").exit_code, 0);
}

// Line 3 is broken by the first rules, and a sample by the second ones.
TEST(TrainResume, AModelGoesOnByTheRulesOfItsTraining) {
  const ScratchDirectory directory;
  const std::string csv = directory.path() + "/log.csv";
  std::string text = "label,age,user\n1,30,5\n0,20,7.0\n";
  for (int i = 0; i < 498; ++i) {
    text += std::to_string(i % 2) + "," + std::to_string(i % 90) + "," + std::to_string(i) + "\n";
  }
  WriteFile(csv, text);
  const std::string columns = "label label\ndense age\nid user decimal\n";
  WriteFile(csv + ".new", columns);
  WriteFile(csv + ".old", "rules 1\n" + columns);
  const std::string run =
      "--model ffnn --dim 4 --batch 50 --dram-mib 48 --data " + csv + " --columns " + csv;
  const std::string store = " --path " + directory.path() + "/";
  ASSERT_EQ(Train(run + ".old --weights " + csv + ".w.old").exit_code, 0);
  ASSERT_EQ(Train(run + ".new --weights " + csv + ".w.new").exit_code, 0);
  ASSERT_NE(TextIn(csv + ".w.old"), TextIn(csv + ".w.new"));
  for (const char* const rules : {".old", ".new"}) {
    ASSERT_EQ(Train(run + rules + " --steps 4" + store + rules).exit_code, 0);
    const Ended resumed =
        Train(run + ".new --resume" + store + rules + " --weights " + csv + ".resumed");
    EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
    EXPECT_EQ(TextIn(csv + ".resumed"), TextIn(csv + ".w" + rules)) << rules;
  }
}

// A log in two parts, of whole batches, each for a run of its own.
TEST(TrainResume, TheNextDayGoesOnAsOneRunOverBoth) {
  const ScratchDirectory directory;
  const std::string path = directory.path();
  const std::string text = CriteoLog(1200);
  size_t end = 0;
  for (int line = 0; line < 700; ++line) end = text.find('\n', end) + 1;
  WriteFile(path + "/both", text);
  WriteFile(path + "/monday", text.substr(0, end));
  WriteFile(path + "/tuesday", text.substr(end));
  const std::string both = "--path " + path + "/one --data " + path + "/both" + kModel;
  EXPECT_EQ(Train(both + " --weights " + path + "/weights").exit_code, 0);
  const std::string run = "--path " + path + "/two --data " + path;
  EXPECT_EQ(Train(run + "/monday" + kModel).exit_code, 0);
  const Ended next = Train(run + "/tuesday --resume --weights " + path + "/weights2");
  EXPECT_EQ(next.exit_code, 0) << next.output;
  EXPECT_THAT(next.output,
              HasSubstr("goes on behind step 7, at the beginning of the data\ndata a log"));
  EXPECT_THAT(next.output, HasSubstr("12, 500 samples in this run"));
  EXPECT_EQ(TextIn(path + "/weights2"), TextIn(path + "/weights"));
  ExpectSameRows(path + "/two", path + "/one", 27);
}

// Also where the log was shorter than what tells it from others.
TEST(TrainResume, LinesThatWereAppendedAreTrainedAlone) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string text = CriteoLog(700);
  size_t end = 0;
  for (int line = 0; line < 200; ++line) end = text.find('\n', end) + 1;
  ASSERT_LT(end, 65536u);
  WriteFile(log, text.substr(0, end));
  const std::string run = "--path " + directory.path() + "/store --data " + log;
  ASSERT_EQ(Train(run + kModel).exit_code, 0);
  for (const auto& [lines, steps] : std::vector<std::pair<int, int>>{{500, 5}, {700, 7}}) {
    WriteFile(log, CriteoLog(lines));
    const Ended next = Train(run + " --resume");
    EXPECT_THAT(next.output, Not(HasSubstr(" -> ")));
    EXPECT_THAT(next.output,
                HasSubstr(std::to_string(steps) + ", " + std::to_string(lines == 500 ? 300 : 200) +
                          " samples in this run"));
  }
}

// The place of each line in the second file has changed.
TEST(TrainResume, AppendedLinesOfAFileBeforeTheLastMakeOtherData) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/";
  const std::string run = "--path " + path + "store --data " + path + "a " + path + "b";
  WriteFile(path + "a", CriteoLog(500));
  WriteFile(path + "b", CriteoLog(500, 9));
  ASSERT_GT(std::filesystem::file_size(path + "a"), 65536u);
  ASSERT_EQ(Train(run + kModel).exit_code, 0);
  WriteFile(path + "b", CriteoLog(600, 9));
  const Ended last = Train(run + " --resume");
  EXPECT_THAT(last.output, HasSubstr("11, 100 samples in this run"));
  EXPECT_THAT(last.output, Not(HasSubstr(" -> ")));
  WriteFile(path + "a", CriteoLog(600));
  const Ended other = Train(run + " --resume");
  EXPECT_THAT(other.output, HasSubstr("at the beginning of the data\ndata a log of 2 files"));
  EXPECT_THAT(other.output, HasSubstr("1199 samples in this run"));
}

// All days have one header.
TEST(TrainResume, DaysWithALongHeaderAreToldApart) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/";
  const std::string header = "click,user," + std::string(70'000, 'x') + "\n";
  for (const char day : {'1', '2'}) {
    std::string text = header;
    for (int i = 0; i < 300; ++i) text += "1," + std::to_string(i % 7 * (day - '0')) + ",\n";
    WriteFile(path + day, text);
  }
  WriteFile(path + "columns", "label click\nid user decimal\n");
  const std::string run = "--path " + path + "store --data " + path;
  ASSERT_EQ(Train(run + "1 --columns " + path + "columns" + kModel).exit_code, 0);
  const Ended next = Train(run + "2 --resume");
  EXPECT_THAT(next.output, HasSubstr("6, 300 samples in this run"));
}

// It may be one that is still being written. The whole line is trained, and one that has not grown
// is not trained again.
TEST(TrainResume, ALastLineWithoutAnEndIsTrainedAgainWhenItHasGrown) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string text = CriteoLog(500);
  const std::string run = "--path " + directory.path() + "/store --data " + log;
  const size_t line = text.find('\n', text.size() / 2) + 1;
  const auto lines = static_cast<int>(CountOf(text.substr(0, line), "\n"));
  // Within the last id, and within the integers, where the line is broken.
  for (const size_t cut : {text.find('\n', line) - 3, line + 9}) {
    WriteFile(log, text.substr(0, cut));
    ASSERT_EQ(Train(run + kModel).exit_code, 0);
    const Ended same = Train(run + " --resume");
    EXPECT_THAT(same.output, HasSubstr("all of the data have been trained"));
    WriteFile(log, text);
    const Ended grown = Train(run + " --resume");
    EXPECT_THAT(grown.output, HasSubstr(std::to_string(500 - lines) + " samples in this run"));
    std::filesystem::remove_all(directory.path() + "/store");
  }
  WriteFile(log, text.substr(0, text.find('\n', line)));
  ASSERT_EQ(Train(run + kModel).exit_code, 0);
  WriteFile(log, text);
  const Ended ended = Train(run + " --resume");
  EXPECT_THAT(ended.output, HasSubstr(std::to_string(499 - lines) + " samples in this run"))
      << "it has got an end alone";
}

// Standard input is read once.
TEST(TrainResume, AColumnFileIsReadOnceForAllEpochsAndEvaluations) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.csv";
  std::string text = "click,user\n";
  for (int i = 0; i < 300; ++i) text += std::to_string(i % 2) + "," + std::to_string(i % 7) + "\n";
  WriteFile(log, text);
  WriteFile(log + ".columns", "label click\nid user decimal\n");
  const std::string path = directory.path() + "/store";
  const Ended ended = Train("--data " + log + " --eval " + log + " --eval-every 2 --epochs 3" +
                            kModel + " --columns - --path " + path + " <" + log + ".columns");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("9, 900 samples in this run"));
  const Ended evaluated =
      Train("evaluate --path " + path + " --data " + log + " --columns - <" + log + ".columns");
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.output;
}

// The last window is given to its end in the order of the first run, and the lines behind it in one
// of their own: whether that run ended within the window or with it.
TEST(TrainResume, LinesThatWereAppendedAreShuffledAlone) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const auto weights = [&](const std::string& first) {
    const std::string run = "--path " + directory.path() + "/" + first + " --data " + log;
    WriteFile(log, CriteoLog(200));
    const Ended begun =
        Train(run + " --model ffnn --dim 4 --batch 25 --shuffle 150 --steps " + first);
    EXPECT_EQ(begun.exit_code, 0) << begun.output;
    WriteFile(log, CriteoLog(500));
    const Ended next = Train(run + " --resume --json " + log + ".json");
    EXPECT_EQ(next.exit_code, 0) << next.output;
    EXPECT_EQ(NumberOf(TextIn(log + ".json"), "steps"), 20);
    return NumberOf(TextIn(log + ".json"), "weights_crc32c");
  };
  const double whole = weights("8");
  EXPECT_EQ(weights("7"), whole);
  EXPECT_NE(weights("6"), whole) << "a window that begins with the larger log";
}

// Spark writes an empty first part, and days may have their first part in common.
TEST(TrainResume, ALogIsKnownByAllItsFiles) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/";
  const std::string text = CriteoLog(1200);
  size_t end = 0;
  for (int line = 0; line < 700; ++line) end = text.find('\n', end) + 1;
  WriteFile(path + "empty", "");
  WriteFile(path + "a", CriteoLog(100));
  WriteFile(path + "b", text.substr(0, end));
  WriteFile(path + "c", text.substr(end));
  const auto files = [&](const std::string& names) {
    std::string words = "--data";
    for (const char name : names) words += " " + path + (name == '0' ? "empty" : std::string{name});
    return words + " --path " + path + "store";
  };
  ASSERT_EQ(Train(files("0ab") + kModel).exit_code, 0);
  const Ended more = Train(files("0abc") + " --resume");
  EXPECT_EQ(more.exit_code, 0) << more.output;
  EXPECT_THAT(more.output, Not(HasSubstr(" -> ")));
  EXPECT_THAT(more.output, HasSubstr("skips the first 800 lines of " + path + "empty and 3 more"));
  EXPECT_THAT(more.output, HasSubstr("13, 500 samples in this run"));
  int steps = 13;
  for (const auto& [names, samples] : std::vector<std::pair<std::string, int>>{
           {"0c", 500}, {"0b", 700}, {"ac", 600}, {"ab", 800}}) {
    const Ended other = Train(files(names) + " --resume");
    EXPECT_EQ(other.exit_code, 0) << other.output;
    EXPECT_THAT(other.output, HasSubstr("at the beginning of the data\ndata a log of "));
    steps += samples / 100;
    EXPECT_THAT(other.output, HasSubstr(std::to_string(steps) + ", " + std::to_string(samples) +
                                        " samples in this run"))
        << names;
  }
}

TEST(TrainResume, APipeIsKnownByItsBegin) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/";
  WriteFile(path + "monday", CriteoLog(500));
  WriteFile(path + "tuesday", CriteoLog(500, 7));
  WriteFile(path + "both", CriteoLog(800));
  const std::string run = "--data - --path " + path + "store";
  ASSERT_EQ(Train(run + kModel + " <" + path + "monday").exit_code, 0);
  const Ended more = Train(run + " --resume <" + path + "both");
  EXPECT_THAT(more.output, HasSubstr("skips the first 500 lines of standard input"));
  EXPECT_THAT(more.output, HasSubstr("8, 300 samples in this run"));
  const Ended same = Train("--path " + path + "store --resume --data " + path + "both");
  EXPECT_THAT(same.output, HasSubstr("all of the data have been trained")) << "now a file";
  const Ended next = Train(run + " --resume <" + path + "tuesday");
  EXPECT_THAT(next.output, HasSubstr("at the beginning of the data\ndata a log of 1 file"));
  EXPECT_THAT(next.output, HasSubstr("13, 499 samples in this run"));
}

// The store is a directory among the data as soon as there is one.
TEST(TrainResume, APatternIsReadOnce) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/";
  WriteFile(path + "day_1", CriteoLog(300));
  const Ended ended = Train("--data '" + path + "*' --epochs 2 --path " + path + "store" + kModel);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("6, 600 samples in this run"));
}

// Generated data have no format, and their model goes on with a log.
TEST(TrainResume, ALogFollowsGeneratedData) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(300));
  const std::string path = " --path " + directory.path() + "/store";
  EXPECT_EQ(
      Train("--generate criteo-kaggle --divisor 5000 --samples 200" + path + kModel).exit_code, 0);
  const Ended next = Train("--resume --data " + log + path);
  EXPECT_EQ(next.exit_code, 0) << next.output;
  EXPECT_THAT(next.output, HasSubstr("5, 300 samples in this run"));
}

TEST(TrainResume, ANewTrainingIsTold) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(300));
  const std::string run = "--resume --data " + log + kModel + " --path " + directory.path() + "/s";
  const std::string told = directory.path() + "/s has no checkpoint: a new training of model ffnn";
  EXPECT_THAT(Train(run + " --steps 2").output, HasSubstr(told));
  EXPECT_THAT(Train(run).output, Not(HasSubstr(told)));
}

// The step that fails has changed nothing, so that the ones before it are not lost. Its line is
// behind the part by which a log is known, and is mended.
TEST(TrainResume, ALossThatIsNotFiniteLeavesACheckpointBeforeItsStep) {
  const ScratchDirectory directory;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  WriteFile("columns", "label click\ndense price\nid user decimal\nid item decimal\n");
  const auto write = [](const char* price) {
    std::string text = "user,item,price,click\n";
    for (int i = 0; i < 12'000; ++i) {
      text += std::to_string(i % 40) + "," + std::to_string(i % 7) + "," +
              (i == 11'700 ? price : "1") + "," + std::to_string(i % 2) + "\n";
    }
    ASSERT_GT(text.find(price, 65536), 65536u);
    WriteFile("log", text);
  };
  const std::string layers =
      "--data log --columns columns --model ffnn --dim 4 --batch 1000 --dense-rate 10 --dram-mib "
      "48 ";
  write("3e38");
  for (const char* const more : {"", "--resume "}) {
    const Ended ended = Train(layers + more + "--path run");
    EXPECT_EQ(ended.exit_code, 1) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("the loss of step 12 is not finite; its batch is in"));
    EXPECT_THAT(ended.output, HasSubstr("The model is in run, at step 11."));
  }
  write("2");
  const Ended resumed = Train(layers + "--resume --path run --weights parts");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("12, 1000 samples in this run"));
  EXPECT_EQ(Train(layers + "--weights whole").exit_code, 0);
  EXPECT_EQ(TextIn("parts"), TextIn("whole"));
  std::filesystem::current_path(before);
}

// Its first lines come at once, and the others later.
TEST(TrainResume, SkippedLinesAreToldMeanwhile) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log";
  const std::string pipe = directory.path() + "/pipe";
  WriteFile(log, CriteoLog(3000));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string run = "--data " + pipe + " --path " + directory.path() + "/store" + kModel;
  const auto train = [&](const std::string& more, const std::string& seconds) {
    const Ended ended = Train(run + more + " 2>&1 & (head -n 1500 " + log + "; sleep " + seconds +
                              "; tail -n 1500 " + log + ") > " + pipe + "; wait $!");
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return ended.output;
  };
  EXPECT_THAT(train("", "0"), Not(HasSubstr("skipped")));
  EXPECT_THAT(
      train(" --resume", "2.2"),
      ContainsRegex(
          "[0-9]+.[0-9] %, 0:0[0-9] left  [0-9]+ trained lines skipped, [0-9]+ per second"));
}

TEST(TrainResume, AStoreOfAnotherProgramIsRefused) {
  const ScratchDirectory directory;
  StoreOptions options;
  options.path = directory.path() + "/store";
  options.worker_threads = 1;
  {
    const auto store = Store::Open(options, {});
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->checkpoints()->Make({}).ok());
  }
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(100));
  const Ended refused = Train("--resume --data " + log + " --path " + options.path);
  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("the store is of no trainer"));
}

}  // namespace
}  // namespace embank::test::train_resume_test
