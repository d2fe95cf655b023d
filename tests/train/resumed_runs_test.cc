// Trainings in several runs have the bits of one run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "train/data/click_reader.h"
#include "train/data/click_text.h"
#include "train/samples/shuffled_samples.h"

namespace embank::test::resumed_runs_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The order of an epoch follows from the seed and its number.
TEST(ResumedRuns, HaveTheEpochsOfOneRun) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(900));
  const auto weights = [&](const std::string& path, const std::string& options) {
    const std::string json = directory.path() + "/figures.json";
    const Ended ended = Train("--data " + log + " --dim 4 --batch 100 --seed 5 --path " +
                              directory.path() + path + " --json " + json + options);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_EQ(NumberOf(TextIn(json), "steps"),
              options.find("--epochs 3") != std::string::npos ? 27 : 9);
    return NumberOf(TextIn(json), "weights_crc32c");
  };
  const double whole = weights("/whole", " --shuffle 250 --epochs 3");
  const double one = weights("/parts", " --shuffle 250");
  EXPECT_NE(one, whole);
  EXPECT_EQ(weights("/parts", " --epochs 3 --resume"), whole) << "with the order of the first run";
  EXPECT_NE(weights("/plain", " --epochs 3"), whole) << "the order of the file";
  const Ended other = Train("--data " + log + " --dim 4 --batch 100 --seed 5 --resume --path " +
                            directory.path() + "/parts --epochs 4 --shuffle 300");
  EXPECT_EQ(other.exit_code, 2) << other.output;
  EXPECT_THAT(other.output, HasSubstr("--shuffle is 300, and the checkpoint is in the same data "
                                      "with --shuffle 250: leave it out"));
}

// The samples of a source, as the lines of a batch.
std::vector<std::string> LinesIn(ClickSource* source, uint32_t samples) {
  ClickBatch batch;
  EXPECT_EQ(*source->Next(samples, &batch), samples);
  std::istringstream text(TextOf(batch));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// A training of a log whose lines are those of two epochs, in their orders.
TEST(ResumedRuns, EachEpochHasAnOrderOfItsOwn) {
  constexpr uint32_t kLines = 900;
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string ordered = directory.path() + "/ordered.txt";
  const std::string json = directory.path() + "/figures.json";
  WriteFile(log, CriteoLog(kLines));
  std::map<std::string, std::string> lines_of_log;  // by their samples
  std::istringstream text(CriteoLog(kLines));
  for (const std::string& sample : LinesIn(ClickReader::OpenCriteo(log)->get(), kLines)) {
    std::getline(text, lines_of_log[sample]);
  }
  std::string lines;
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    ShuffledSamples samples(*ClickReader::OpenCriteo(log), 250, HashKey(5, epoch));
    for (const std::string& sample : LinesIn(&samples, kLines)) {
      lines += lines_of_log.at(sample) + "\n";
    }
  }
  EXPECT_NE(lines.substr(0, lines.size() / 2), lines.substr(lines.size() / 2));
  WriteFile(ordered, lines);
  const auto weights = [&](const std::string& options) {
    const Ended ended = Train("--dim 4 --batch 100 --seed 5 --json " + json + " --data " + options);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_EQ(NumberOf(TextIn(json), "steps"), 18);
    return NumberOf(TextIn(json), "weights_crc32c");
  };
  EXPECT_EQ(weights(log + " --shuffle 250 --epochs 2"), weights(ordered));
}

// A schedule counts the steps of all runs, also those with other data.
TEST(ResumedRuns, GoOnInTheirSchedule) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string lines = CriteoLog(1200);
  WriteFile(log, lines);
  size_t half = 0;
  for (int line = 0; line < 600; ++line) half = lines.find('\n', half) + 1;
  const std::string days[] = {directory.path() + "/monday", directory.path() + "/tuesday"};
  WriteFile(days[0], lines.substr(0, half));
  WriteFile(days[1], lines.substr(half));
  const auto weights_of = [&](const std::string& data, const std::string& path,
                              const std::string& options) {
    const std::string json = directory.path() + "/figures.json";
    const Ended ended = Train("--data " + data + " --dim 4 --batch 100 --path " + directory.path() +
                              path + " --json " + json + options);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return NumberOf(TextIn(json), "weights_crc32c");
  };
  const auto weights = [&](const std::string& path, const std::string& options) {
    return weights_of(log, path, options);
  };
  const double constant = weights("/constant", "");
  int i = 0;
  for (const std::string schedule :
       {" --rate-warmup 9", " --schedule cosine --schedule-steps 12",
        " --schedule step --schedule-steps 4 --schedule-factor 0.5",
        " --row-optimizer adam --dense-optimizer adam --row-rate 0.001 --dense-rate 0.001"
        " --schedule cosine --schedule-steps 10 --schedule-factor 0.1 --rate-warmup 3"
        " --row-decay 0.001 --dense-decay 0.001 --row-clip 0.1 --dense-clip 0.5"}) {
    const std::string whole = "/whole" + std::to_string(i);
    const std::string parts = "/parts" + std::to_string(i++);
    const double expected = weights(whole, schedule);
    EXPECT_NE(expected, constant) << schedule;
    EXPECT_NE(weights(parts, schedule + " --steps 6"), expected);
    EXPECT_EQ(weights(parts, " --resume"), expected) << schedule << " of the checkpoint";
    EXPECT_NE(weights_of(days[0], parts + "days", schedule), expected);
    EXPECT_EQ(weights_of(days[1], parts + "days", " --resume"), expected) << schedule;
  }
}

// The next day's data must not be trained at rates of 0 in silence.
TEST(ResumedRuns, TellThatTheirScheduleHasEnded) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string json = directory.path() + "/figures.json";
  WriteFile(log, CriteoLog(1200));
  const auto train = [&](const std::string& path, const std::string& options) {
    const Ended ended = Train("--data " + log + " --dim 4 --batch 100 --path " + directory.path() +
                              path + " --json " + json + options);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return ended.output;
  };
  const auto weights = [&] { return NumberOf(TextIn(json), "weights_crc32c"); };
  const std::string cosine = " --schedule cosine --schedule-steps 6";
  const std::string zero = "after step 6 both learning rates are 0";
  EXPECT_THAT(train("/run", cosine + " --steps 6"), Not(HasSubstr("rates are 0")));
  const double of_six_steps = weights();
  EXPECT_EQ(CountOf(train("/run", " --resume --steps 9"), zero), 1u);
  EXPECT_EQ(weights(), of_six_steps);
  EXPECT_THAT(train("/run", " --resume --schedule constant"), Not(HasSubstr("rates are 0")));
  EXPECT_NE(weights(), of_six_steps);
  EXPECT_EQ(CountOf(train("/whole", cosine), zero), 1u);
}

}  // namespace
}  // namespace embank::test::resumed_runs_test
