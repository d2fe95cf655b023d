// embank-train from the outside: its output and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"
#include "tests/support/scratch_directory.h"
#include "train/models/ffnn.h"

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
      {"--generate avazu --ablation --trace t.svg", "--ablation makes eight runs"},
      {"--generate avazu --trace /no/such/file", "--trace: cannot write /no/such/file"},
      {"--generate avazu --micro-batches 9", "micro_batches is 9"},
      {"--generate avazu --weights /no/such/file", "--weights: cannot write /no/such/file"},
      {"--data x --write-log y", "--write-log needs --generate"},
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

std::vector<float> FloatsIn(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path).rdbuf();
  std::vector<float> floats(bytes.str().size() / sizeof(float));
  std::memcpy(floats.data(), bytes.str().data(), floats.size() * sizeof(float));
  return floats;
}

TEST(TrainCommandLine, WeightsOfNoStepsAreTheFirstOnes) {
  const ScratchDirectory directory;
  const std::string first = directory.path() + "/first";
  const std::string run =
      "--generate criteo-kaggle --divisor 5000 --samples 500 --batch 100 --dim 4 --model ffnn ";
  ASSERT_EQ(Train(run + "--steps 0 --weights " + first).exit_code, 0);
  // Inputs and 64, 32 and 1 outputs, with a bias for each output.
  constexpr size_t kInputs = 13 + 26 * 4;
  const std::vector<float> weights = FloatsIn(first);
  ASSERT_EQ(weights.size(), 64 * (kInputs + 1) + 32 * 65 + 33);
  const LayerGraph graph = MakeFfnn({.dense = 13, .feature_dims = std::vector<uint32_t>(26, 4)},
                                    std::vector<uint32_t>{64, 32});
  std::vector<float> expected(graph.parameters());
  graph.Initialize(1, expected);
  EXPECT_EQ(weights, expected);
  const std::string trained = directory.path() + "/trained";
  const Ended ended = Train(run + "--weights " + trained);
  EXPECT_THAT(ended.output, HasSubstr("5, 500 samples in this run"));
  EXPECT_NE(FloatsIn(trained), weights);
  EXPECT_EQ(FloatsIn(trained).size(), weights.size());
}

TEST(TrainCommandLine, AWrittenLogTrainsAsTheGeneratedOne) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string generated = "--generate criteo-kaggle --divisor 5000 --samples 500 ";
  const std::string layers = "--batch 100 --dim 4 --model ffnn ";
  EXPECT_EQ(Train(generated + "--write-log " + log).exit_code, 0);
  EXPECT_EQ(Train(generated + layers + "--weights " + log + ".a").exit_code, 0);
  EXPECT_EQ(Train("--data " + log + " " + layers + "--weights " + log + ".b").exit_code, 0);
  EXPECT_EQ(FloatsIn(log + ".a"), FloatsIn(log + ".b"));
}

TEST(TrainCommandLine, FiguresOfSpeedLeaveUntimedStepsOut) {
  const ScratchDirectory directory;
  const std::string json = directory.path() + "/figures.json";
  const std::string run =
      "--generate criteo-kaggle --divisor 5000 --samples 500 --batch 100 --dim 4 --json " + json;
  EXPECT_EQ(Train(run + " --untimed-steps 5").exit_code, 0);
  std::ostringstream text;
  text << std::ifstream(json).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"samples\": 500,"));
  EXPECT_THAT(text.str(), HasSubstr("\"samples_per_second\": 0,"));
  EXPECT_THAT(text.str(), HasSubstr("\"lookup\": 0,"));
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
