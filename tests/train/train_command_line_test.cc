// embank-train from the outside: its output and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/program.h"
#include "tests/support/scratch_directory.h"

namespace embank::test {
namespace {

using ::testing::HasSubstr;

Ended Train(const std::string& arguments) { return RunProgram("EMBANK_TRAIN", arguments); }

TEST(TrainCommandLine, WrongUseNamesTheOptionAndExitsWith2) {
  struct Case {
    const char* arguments;
    const char* message;
  };
  const Case cases[] = {
      {"", "either --data FILE or --generate"},
      {"--data x --generate avazu", "either --data FILE or --generate"},
      {"--data x --eval-samples 5", "--eval-samples needs --generate"},
      {"--generate avazu --checkpoint-every 5", "--checkpoint-every needs --path"},
      {"--generate avazu --resume", "--resume needs --path"},
      {"--generate avazu --json /no/such/file", "--json: cannot write /no/such/file"},
      {"--generate avazu --ablation --path /tmp", "--ablation makes eight stores"},
      {"--generate avazu --micro-batches 9", "micro_batches is 9"},
      {"--generate avazu --model dlmr", "model is \"dlmr\""},
      {"--generate avazu --batch 0", "batch is 0"},
      {"--generate avazu --dim many", "--dim"},
  };
  for (const Case& one : cases) {
    const Ended ended = Train(one.arguments);
    EXPECT_EQ(ended.exit_code, 2) << one.arguments << ": " << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(one.message));
  }
}

TEST(TrainCommandLine, BrokenLinesAreCountedAndNamed) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string json = directory.path() + "/figures.json";
  {
    std::ofstream file(log);
    for (int line = 1; line <= 1000; ++line) {
      file << (line == 7 ? "neither" : line % 3 == 0 ? "1" : "0");
      for (int i = 0; i < 13; ++i) file << '\t' << (line + i) % 9;
      for (int i = 0; i < 26; ++i) file << "\t0000000" << (line * 31 + i) % 10;
      file << '\n';
    }
  }
  const Ended ended = Train("--data " + log + " --dim 4 --batch 100 --json " + json);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("1 broken lines were left out"));
  EXPECT_THAT(ended.output, HasSubstr("line 7: "));
  std::ostringstream text;
  text << std::ifstream(json).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"broken_lines\": 1,"));
  EXPECT_THAT(text.str(), HasSubstr("\"samples\": 999,"));
}

TEST(TrainCommandLine, TheSwitchesLeaveTheWeightsAsTheyAre) {
  const ScratchDirectory directory;
  const std::string json = directory.path() + "/figures.json";
  const Ended ended = Train(
      "--generate product-3 --divisor 5000 --model wide-deep --samples 1000 --batch 100 "
      "--warmup-steps 4 --ablation --json " +
      json);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  std::ostringstream text;
  text << std::ifstream(json).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"packing\": false, \"interleaving\": true"));
  size_t runs = 0;
  for (size_t at = 0; (at = text.str().find("weights_crc32c", at)) != std::string::npos; ++at) {
    ++runs;
  }
  EXPECT_EQ(runs, 8u);
}

TEST(TrainCommandLine, ATraceIsAPicture) {
  const ScratchDirectory directory;
  const std::string picture = directory.path() + "/trace.svg";
  const Ended ended = Train(
      "--generate criteo-kaggle --divisor 5000 --samples 1000 --batch 100 --dim 4 "
      "--micro-batches 2 --trace " +
      picture);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  std::ostringstream text;
  text << std::ifstream(picture).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("Gather, pack 0, micro-batch 1"));
  EXPECT_THAT(text.str(), HasSubstr("Update, pack 0"));
}

TEST(TrainCommandLine, AStoreWithACheckpointIsNotTrainedAnewByAccident) {
  const ScratchDirectory directory;
  const std::string run =
      "--generate criteo-kaggle --divisor 5000 --samples 500 --batch 100 --dim 4 "
      "--dram-mib 48 --path " +
      directory.path() + "/store";
  EXPECT_EQ(Train(run).exit_code, 0);
  const Ended again = Train(run);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.output, HasSubstr("--resume"));
}

}  // namespace
}  // namespace embank::test
