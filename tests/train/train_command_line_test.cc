// embank-train from the outside: its output and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "train/models/ffnn.h"

namespace embank::test::train_command_line_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct WrongUse {
  const char* arguments;
  const char* message;
};

constexpr WrongUse kWrongUses[] = {
    {"", "either --data FILE or --generate"},
    {"--data x --generate avazu", "either --data FILE or --generate"},
    {"--data x --eval-samples 5", "--eval-samples needs --generate"},
    {"--generate avazu --checkpoint-every 5", "--checkpoint-every needs --path"},
    {"--generate avazu --resume", "--resume needs --path"},
    {"--generate avazu --json /no/such/file", "--json: cannot write /no/such/file"},
    {"--generate avazu --pack-rule most", "--pack-rule is most; it must be mean or least"},
    {"--generate avazu --ablation --path /tmp", "--ablation makes eight stores"},
    {"--generate avazu --ablation --trace t.svg", "--ablation makes eight runs"},
    {"--generate avazu --trace /no/such/file", "--trace: cannot write /no/such/file"},
    {"--generate avazu --micro-batches 9", "micro_batches is 9"},
    {"--generate avazu --drop-updates 1",
     "--drop-updates: drop_updates is 1; it must be at least 0"},
    {"--generate avazu --drop-updates -0.1", "drop_updates is -0.1; it must be at least 0"},
    {"--generate avazu --staleness 65", "--staleness: staleness is 65; it must be 0 to 64"},
    {"--generate avazu --emulate Gather", "--emulate: \"Gather\" is no NAME=MILLISECONDS"},
    {"--generate avazu --emulate Gather=1,Lookup=2", "\"Lookup=2\" is no NAME=MILLISECONDS"},
    {"--generate avazu --emulate Gather=60001", "from 0 to 60000, of an operation"},
    {"--generate avazu --weights /no/such/file", "--weights: cannot write /no/such/file"},
    {"--data x --write-log y", "--write-log needs --generate"},
    {"--generate avazu --samples 0", "--samples is 0"},
    {"--generate avazu --eval-samples 1", "--eval-samples is 1"},
    {"--generate avazu --epochs 0", "--epochs is 0; it must be 1 to 65536"},
    {"--generate avazu --epochs 65537", "--epochs is 65537; it must be 1 to 65536"},
    {"--generate avazu --shuffle 1048577", "--shuffle is 1048577; it must be at most 1048576"},
    {"--generate avazu --eval-samples 4294967296", "--eval-samples is 4294967296"},
    {"--generate avazu --write-log no.txt", "--data reads logs of 13 and 26"},
    {"--generate criteo-kaggle --copies 2 --write-log no.txt", "52 id features"},
    {"--generate avazu --field-divisor 0", "field divisor and copies are at least 1"},
    {"--generate avazu --copies-up-to 0", "--copies-up-to is 0; it must be 1 to 16"},
    {"--generate avazu --copies-up-to 17", "--copies-up-to is 17; it must be 1 to 16"},
    {"--data x --copies-up-to 2", "--copies-up-to needs --generate"},
    {"--generate avazu --copies-up-to 2 --copies 2", "takes no --ablation, --copies"},
    {"--generate avazu --copies-up-to 2 --path /tmp", "takes no --ablation, --copies, --path"},
    {"--data x --broken-share 1.5", "--broken-share is 1.5; it must be 0 to 1"},
    {"--generate avazu --row-optimizer adamw", "must be one of sgd, adagrad, rowwise-adagrad"},
    {"--generate avazu --dense-optimizer ftrl", "must be one of sgd, adagrad, adam"},
    {"--generate avazu --row-clip -1", "the rule of rows: max_gradient_norm"},
    {"--generate avazu --schedule linear", "must be one of constant, cosine, step"},
    {"--generate avazu --schedule step", "the schedule falls after 0 steps"},
    {"--generate avazu --schedule cosine --schedule-steps 9 --rate-warmup 9",
     "the schedule has 9 steps and a warm-up of 9"},
    {"--generate avazu --schedule cosine --schedule-steps 9 --schedule-factor 2",
     "the factor of the schedule is 2"},
    {"--generate avazu --schedule cosine --schedule-steps 9 --row-optimizer ftrl",
     "one rate for all steps: give neither --schedule nor --rate-warmup"},
    {"--generate avazu --rate-warmup 9 --row-optimizer ftrl", "or another --row-optimizer"},
    {"--generate avazu --dim 1 --model ffnn", "is 1; model ffnn needs"},
    {"--generate avazu --dense-rate -1", "the rule of dense parameters"},
    {"--generate avazu --model dlmr", "model is \"dlmr\""},
    {"--generate avazu --model rmc3 --dim 16", "is 16; model rmc3 has dim 64"},
    {"--generate avazu --batch 0", "batch is 0"},
    {"--generate avazu --dim many", "--dim"},
    {"--generate avazu --dim 0", "dim is 0; it must be 1 to 4096"},
    {"--generate avazu --modle=ffnn", "no option '--modle'. Did you mean '--model'?"},
    {"--generate avazu --completely-else", "there is no option '--completely-else'.\n"},
    {"--generate avazu --hbm-mib 17592186044416", "--hbm-mib is 17592186044416"},
    {"--generate avazu --dram-mib 18446744073709551615", "it must be at most 1099511627776"},
    {"--generate avazu --pmem-mib 17592186044416", "--pmem-mib is 17592186044416"},
    {"--generate avazu --micro-batch-kib 18014398509481984", "--micro-batch-kib is 1801"},
    {"--generate avazu --group-kib 18014398509481984", "--group-kib is 18014398509481984"},
    {"--data /etc/passwd --columns /tmp", "--columns: /tmp: cannot read: Is a directory"},
};

TEST(TrainCommandLine, WrongUseNamesTheOptionAndExitsWith2) {
  for (const WrongUse& one : kWrongUses) {
    const Ended ended = Train(one.arguments);
    EXPECT_EQ(ended.exit_code, 2) << one.arguments << ": " << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(one.message));
  }
}

// A zstd frame of blocks that are not compressed (RFC 8878, 3.1.1).
std::string ZstdFrame(const std::string& text) {
  std::string frame("\x28\xb5\x2f\xfd\x00\x58", 6);
  constexpr size_t kBlockBytes = 60'000;
  for (size_t begin = 0; begin < text.size(); begin += kBlockBytes) {
    const std::string block = text.substr(begin, kBlockBytes);
    const bool is_last = begin + kBlockBytes >= text.size();
    const uint64_t header = block.size() << 3 | (is_last ? 1 : 0);
    for (int i = 0; i < 3; ++i) frame.push_back(static_cast<char>(header >> 8 * i & 0xFF));
    frame += block;
  }
  return frame;
}

TEST(TrainCommandLine, ALogIsEvaluated) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string json = directory.path() + "/figures.json";
  WriteFile(log, CriteoLog(1000));
  const std::string run = "--data " + log + " --dim 4 --batch 100 --json " + json;
  EXPECT_EQ(Train(run).exit_code, 0);
  const std::string without = TextIn(json);
  const Ended ended = Train(run + " --eval " + log);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr(" of 1000 samples"));
  EXPECT_THAT(ended.output, HasSubstr("--eval: " + log + " is a file of --data, too"));
  WriteFile(log + ".other", CriteoLog(1000));
  EXPECT_THAT(Train(run + " --eval " + log + ".other").output,
              Not(HasSubstr("is a file of --data")));
  EXPECT_THAT(TextIn(json), HasSubstr("\"eval_auc\": "));
  // The evaluation is no part of the figures of the steps.
  const auto field = [](const std::string& text, const std::string& name) {
    const size_t begin = text.find("\"" + name + "\"");
    return text.substr(begin, text.find(',', begin) - begin);
  };
  EXPECT_NE(field(without, "operations_per_step"), "\"operations_per_step\": 0");
  for (const char* const name : {"operations_per_step", "weights_crc32c", "logloss"}) {
    EXPECT_EQ(field(TextIn(json), name), field(without, name));
  }
}

TEST(TrainCommandLine, TheFirstModelOfTheDocumentsTrains) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(3000));
  const Ended ended = RunProgram("EMBANK_FIRST_MODEL", log);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(std::count(ended.output.begin(), ended.output.end(), '\n'), 3);
  EXPECT_THAT(ended.output, HasSubstr("loss 0."));
}

TEST(TrainCommandLine, AWrongEvaluationIsFoundBeforeTheTraining) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(100));
  const Ended other = Train("--generate avazu --divisor 1000 --model ffnn --eval " + log);
  EXPECT_EQ(other.exit_code, 2) << other.output;
  EXPECT_THAT(other.output, HasSubstr("have 13 dense features, and the model 1; give a log with"));
  const Ended missing = Train("--data " + log + " --eval /no/such/log --json " + log + ".json");
  EXPECT_EQ(missing.exit_code, 1) << missing.output;
  EXPECT_THAT(missing.output, HasSubstr("/no/such/log"));
  WriteFile(log + ".broken", "no label\n");
  const Ended broken =
      Train("--data " + log + " --eval " + log + ".broken --json " + log + ".json");
  EXPECT_EQ(broken.exit_code, 1) << broken.output;
  EXPECT_THAT(broken.output, HasSubstr("--eval: " + log + ".broken: 1 of 1 lines are broken"));
  EXPECT_EQ(TextIn(log + ".json"), "") << "nothing was trained";
}

TEST(TrainCommandLine, AnEvaluationThatFailsLeavesTheResultsOfTheTraining) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(1000));
  // A part of an evaluation is not reported.
  const std::string frame = ZstdFrame(CriteoLog(3000));
  WriteFile(log + ".zst", frame.substr(0, frame.size() * 2 / 3));
  const Ended cut = Train("--data " + log + " --dim 4 --batch 100 --eval " + log + ".zst --json " +
                          log + ".json");
  EXPECT_EQ(cut.exit_code, 1) << cut.output;
  EXPECT_THAT(TextIn(log + ".json"), HasSubstr("\"steps\": 10,"));
  EXPECT_EQ(TextIn(log + ".json").find("eval_"), std::string::npos);
}

TEST(TrainCommandLine, ACsvFileHasAColumnFile) {
  const ScratchDirectory directory;
  const std::string csv = directory.path() + "/views.csv";
  std::string text = "user,item,price,click\n";
  for (int i = 0; i < 500; ++i) {
    text += std::to_string(i % 40) + ",item" + std::to_string(i % 7) + "," +
            std::to_string(i % 90) + "," + (i % 7 < 2 ? "1" : "0") + "\n";
  }
  WriteFile(csv, text);
  const std::string columns = directory.path() + "/columns.txt";
  WriteFile(columns, "label click\ndense price log\nid user decimal\nid item text\n");
  const std::string run = "--model ffnn --dim 4 --batch 50 --data " + csv + " --columns " + columns;
  const Ended ended = Train(run + " --eval " + csv + " --json " + csv + ".json");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(TextIn(csv + ".json"), HasSubstr("\"samples\": 500,"));
  EXPECT_THAT(TextIn(csv + ".json"), HasSubstr("\"eval_logloss\": "));
  WriteFile(csv, text + "40,item1,5,0\n");
  WriteFile(columns, "label click\nid user decimal below 40\nid item text\n");
  const Ended bounded = Train(run);
  EXPECT_EQ(bounded.exit_code, 0) << bounded.output;
  EXPECT_THAT(bounded.output, HasSubstr("line 502: an id is outside of its vocabulary"));
  EXPECT_THAT(bounded.output, HasSubstr("10, 500 samples in this run"));
  WriteFile(columns, "label click\nid user decimal below 30\nid item text\n");
  const Ended outside = Train(run);
  EXPECT_EQ(outside.exit_code, 1) << outside.output;
  EXPECT_THAT(outside.output, HasSubstr("lines are broken"));
  WriteFile(columns, "label click\nid nobody decimal\n");
  const Ended wrong = Train(run);
  EXPECT_EQ(wrong.exit_code, 1) << wrong.output;
  EXPECT_THAT(wrong.output, HasSubstr("no column 'nobody'"));
}

// Ratings whose header and column file are those of MovieLens, as docs/training.md shows them.
TEST(TrainCommandLine, RatingsOfFilmsAreTrained) {
  const ScratchDirectory directory;
  const std::string ratings = directory.path() + "/ratings.csv";
  std::ostringstream text;
  text << "userId,movieId,rating,timestamp\n";
  for (int i = 0; i < 2000; ++i) {
    text << i % 50 + 1 << ',' << i % 7 + 1 << ',' << (i % 7 < 3 ? "4.5" : "0.5") << ','
         << 964982703 + i << '\n';
  }
  WriteFile(ratings, text.str());
  const std::string columns = directory.path() + "/movielens.txt";
  WriteFile(columns,
            "label rating at-least 4\n"
            "dense timestamp log\n"
            "id userId decimal\n"
            "id movieId decimal\n");
  const Ended ended = Train("--model deep-fm --batch 256 --data " + ratings + " --columns " +
                            columns + " --json " + ratings + ".json");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(NumberOf(TextIn(ratings + ".json"), "samples"), 2000.0);
  EXPECT_EQ(NumberOf(TextIn(ratings + ".json"), "broken_lines"), 0.0);
  EXPECT_GT(NumberOf(TextIn(ratings + ".json"), "auc"), 0.6) << "a film is liked or not";
}

TEST(TrainCommandLine, DataAreFilesAPatternADirectoryOrAPipe) {
  const ScratchDirectory directory;
  const std::string whole = directory.path() + "/whole.txt";
  const std::string parts = directory.path() + "/parts";
  const std::string text = CriteoLog(1000);
  const size_t half = text.find('\n', text.size() / 2) + 1;
  WriteFile(whole, text);
  std::filesystem::create_directory(parts);
  WriteFile(parts + "/day_0", text.substr(0, half));
  WriteFile(parts + "/day_1", text.substr(half));
  const std::string layers = " --dim 4 --batch 100 --model ffnn --weights " + directory.path();
  ASSERT_EQ(Train("--data " + whole + layers + "/w.whole").exit_code, 0);
  EXPECT_EQ(Train("--data '" + parts + "/day_*'" + layers + "/w.pattern").exit_code, 0);
  EXPECT_EQ(Train("--data " + parts + layers + "/w.directory").exit_code, 0);
  EXPECT_EQ(Train("--data " + parts + "/day_0 " + parts + "/day_1" + layers + "/w.files").exit_code,
            0);
  EXPECT_EQ(Train("--data -" + layers + "/w.input <" + whole).exit_code, 0);
  // The same lines in other forms.
  std::string lines_of_windows;
  std::string lines_of_old_macs;
  std::string utf16 = "\xFF\xFE";
  for (const char c : text) {
    lines_of_windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
    lines_of_old_macs += c == '\n' ? '\r' : c;
    utf16 += std::string{c, '\0'};
  }
  for (const auto& [form, bytes] : std::map<std::string, std::string>{
           {"crlf", lines_of_windows},
           {"cr", lines_of_old_macs},
           {"utf16", utf16},
           {"mark", "\xEF\xBB\xBF" + text},
           {"endless", text.substr(0, text.size() - 1)},
           {"blank_end", text + "\n\n"},
           {"zst", ZstdFrame(text.substr(0, half)) + ZstdFrame(text.substr(half))}}) {
    WriteFile(directory.path() + "/" + form, bytes);
    EXPECT_EQ(Train("--data " + directory.path() + "/" + form + layers + "/w." + form).exit_code,
              0);
    EXPECT_EQ(TextIn(directory.path() + "/w." + form), TextIn(directory.path() + "/w.whole"))
        << form;
  }
  for (const char* const run : {"pattern", "directory", "files", "input"}) {
    EXPECT_EQ(TextIn(directory.path() + "/w." + run), TextIn(directory.path() + "/w.whole")) << run;
  }
  const Ended twice = Train("--epochs 2 --data -" + layers + "/w.twice <" + whole);
  EXPECT_EQ(twice.exit_code, 2) << twice.output;
  EXPECT_THAT(twice.output, HasSubstr("standard input gives its lines once"));
  const Ended none = Train("--data '" + parts + "/month_*'" + layers + "/w.none");
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.output, HasSubstr("/month_*: no file fits the pattern"));
}

TEST(TrainCommandLine, ALossThatIsNotFiniteLeavesItsBatch) {
  const ScratchDirectory directory;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const std::string run =
      "--generate criteo-kaggle --divisor 5000 --samples 500 --batch 100 --dim 4 "
      "--dense-rate 1e30";
  const Ended ended = Train(run);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("not finite; its batch is in embank-train-step-2.txt"));
  const std::string batch = TextIn("embank-train-step-2.txt");
  EXPECT_EQ(std::count(batch.begin(), batch.end(), '\n'), 100);
  const Ended replayed = Train(
      "--data embank-train-step-2.txt --columns embank-train-step-2.columns --batch 100 --dim 4 "
      "--weights replayed");
  EXPECT_EQ(replayed.exit_code, 0) << replayed.output;
  EXPECT_THAT(replayed.output, HasSubstr("1, 100 samples in this run"));
  const std::string with_bags = "--generate product-3 --field-divisor 10 --divisor 5000 ";
  const Ended in_bags =
      Train(with_bags + "--model ffnn --samples 300 --batch 50 --dense-rate 1e30");
  EXPECT_EQ(in_bags.exit_code, 1) << in_bags.output;
  EXPECT_THAT(in_bags.output, HasSubstr("its batch is in embank-train-step-2.txt"));
  EXPECT_THAT(TextIn("embank-train-step-2.columns"), HasSubstr("bag 10 decimal\n"));
  const Ended replayed_bags = Train(
      "--data embank-train-step-2.txt --columns embank-train-step-2.columns --batch 50 --dim 4 "
      "--model ffnn");
  EXPECT_EQ(replayed_bags.exit_code, 0) << replayed_bags.output;
  EXPECT_THAT(replayed_bags.output, HasSubstr("1, 50 samples in this run"));
  // Where the batch cannot be saved, its loss is told all the same.
  std::filesystem::remove("embank-train-step-2.txt");
  std::filesystem::create_directory("embank-train-step-2.txt");
  const Ended unsaved = Train(run);
  EXPECT_EQ(unsaved.exit_code, 1);
  EXPECT_THAT(unsaved.output, HasSubstr("not finite; its batch was not saved: "));
  std::filesystem::current_path(before);
}

TEST(TrainCommandLine, ACutOffLogEndsTheRun) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt.zst";
  const std::string frame = ZstdFrame(CriteoLog(3000));
  WriteFile(log, frame);
  const std::string run = "--dim 4 --batch 100 --model ffnn --data " + log;
  const Ended whole = Train(run);
  EXPECT_EQ(whole.exit_code, 0) << whole.output;
  EXPECT_THAT(whole.output, HasSubstr("30, 3000 samples in this run"));
  WriteFile(log, frame.substr(0, frame.size() * 2 / 3));
  const Ended cut = Train(run);
  EXPECT_EQ(cut.exit_code, 1) << cut.output;
  EXPECT_THAT(cut.output, HasSubstr(log));
}

TEST(TrainCommandLine, WrongDataAreNoWrongUse) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  std::string text = CriteoLog(1000);
  for (int line = 0; line < 200; ++line) text += "x\n";
  WriteFile(log, text);
  const Ended ended = Train("--dim 4 --batch 100 --model ffnn --data " + log);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("lines are broken"));
  WriteFile(log, "user,item,click\n1,2,0\n");
  EXPECT_THAT(Train("--data " + log).output, HasSubstr("without --columns FILE"));
}

// A model that is larger than memory is used with the limit of its training.
TEST(TrainCommandLine, TheNextCommandsHaveTheLimitOfMemory) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string path = directory.path() + "/store";
  WriteFile(log, CriteoLog(100));
  const Ended ended = Train("--dim 4 --data " + log + " --dram-mib 48 --path " + path);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  for (const char* const use : {"evaluate", "predict"}) {
    EXPECT_THAT(ended.output, HasSubstr(use + (" --path " + path) + " --dram-mib 48 --data FILE"));
  }
}

// The model up to there is there: more broken lines are allowed, and the run goes on.
TEST(TrainCommandLine, ALogThatBreaksLaterLeavesACheckpoint) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  std::string text = CriteoLog(2000);
  for (int line = 0; line < 50; ++line) text += "x\n";
  WriteFile(log, text + CriteoLog(1000));
  const std::string layers = "--dim 4 --batch 100 --model ffnn --data " + log;
  const std::string run = layers + " --path " + directory.path() + "/store";
  const Ended ended = Train(run);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("at most a share of 0.01 may be (--broken-share)"));
  EXPECT_THAT(ended.output,
              HasSubstr("log.txt, line 2001: its label is no label: \"x\" in column 1"));
  EXPECT_THAT(ended.output,
              HasSubstr("The model is in " + directory.path() + "/store, at step 20"));
  EXPECT_EQ(Train(run + " --resume").exit_code, 1) << "they still are too many";
  const Ended resumed = Train(run + " --resume --broken-share 0.1 --weights " + log + ".parts");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("30, 1000 samples in this run"));
  EXPECT_EQ(Train(layers + " --broken-share 0.1 --weights " + log + ".whole").exit_code, 0);
  EXPECT_EQ(TextIn(log + ".parts"), TextIn(log + ".whole"));
}

// They are seen before the training, and the command is right.
TEST(TrainCommandLine, WrongFilesAreNoWrongUse) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/";
  WriteFile(path + "columns", "label a\nid b decimal\n");
  WriteFile(path + "good", "a,b\n1,2\n");
  WriteFile(path + "parquet", "PAR1\x15\x04");
  WriteFile(path + "empty", "");
  WriteFile(path + "header", "a,\"b\n1,2\n");
  WriteFile(path + "other", "a,c\n1,2\n");
  for (const auto& [name, message] : std::vector<std::pair<std::string, std::string>>{
           {"parquet", " is a Parquet file"},
           {"empty", ": is empty"},
           {"header", ": the first line has an open quotation mark"},
           {"other", ": the file has no column 'b'"},
           {"missing", ": cannot open"}}) {
    const std::string run = "--model ffnn --columns " + path + "columns --data " + path;
    for (const std::string& arguments : {run + name, run + "good --eval " + path + name}) {
      const Ended ended = Train(arguments);
      EXPECT_EQ(ended.exit_code, 1) << arguments << ": " << ended.output;
      EXPECT_THAT(ended.output, HasSubstr(path + name + message)) << arguments;
    }
  }
}

TEST(TrainCommandLine, DataWithoutASampleFailTheRun) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  WriteFile(log, CriteoLog(100));
  WriteFile(log + ".empty", "");
  const std::string layers = "--dim 4 --batch 100 --model ffnn --data " + log;
  const Ended ended = Train(layers + ".empty");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("the data of the training have no sample"));
  const Ended evaluated = Train(layers + " --eval " + log + ".empty");
  EXPECT_EQ(evaluated.exit_code, 1) << evaluated.output;
  EXPECT_THAT(evaluated.output, HasSubstr("the data of the evaluation have no sample"));
  EXPECT_THAT(evaluated.output, HasSubstr("1, 100 samples in this run"));
}

TEST(TrainCommandLine, BrokenLinesAreCountedAndNamed) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const std::string json = directory.path() + "/figures.json";
  WriteFile(log, CriteoLog(1000, 7));
  const Ended ended = Train("--data " + log + " --dim 4 --batch 100 --json " + json);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("1 broken lines were left out"));
  EXPECT_THAT(ended.output, HasSubstr("line 7: "));
  const std::string text = TextIn(json);
  EXPECT_THAT(text, HasSubstr("\"broken_lines\": 1,"));
  EXPECT_THAT(text, HasSubstr("\"samples\": 999,"));
}

TEST(TrainCommandLine, TheSwitchesLeaveTheWeightsAsTheyAre) {
  const ScratchDirectory directory;
  const std::string json = directory.path() + "/figures.json";
  const Ended ended = Train(
      "--generate product-3 --divisor 5000 --model wide-deep --samples 1000 --batch 100 "
      "--warmup-steps 4 --hot-warmup 2 --hot-every 2 --ablation --json " +
      json);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  const std::string text = TextIn(json);
  EXPECT_EQ(CountOf(text, "\"packing\": false, \"interleaving\": true"), 2u);
  EXPECT_EQ(CountOf(text, "weights_crc32c"), 8u);
  EXPECT_EQ(CountOf(text, "\"hbm_hit_ratio_lookups\": 0,"), 4u) << "only without caching";
  EXPECT_EQ(CountOf(text, "\"rows_checksum\": "), 8u);
  const Ended cold = Train("--generate criteo-kaggle --divisor 5000 --samples 400 --ablation");
  EXPECT_EQ(cold.exit_code, 1) << cold.output;
  EXPECT_THAT(cold.output, HasSubstr("than --hot-warmup (100) lookup batches"));
}

TEST(TrainCommandLine, CopiesOfFeaturesAreATable) {
  const ScratchDirectory directory;
  const std::string json = directory.path() + "/figures.json";
  const Ended ended = Train(
      "--generate product-2 --field-divisor 10 --divisor 5000 --model ffnn --samples 200 "
      "--batch 100 --copies-up-to 3 --json " +
      json);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  const std::string text = TextIn(json);
  for (const char* const run :
       {"\"copies\": 1, \"id_features\": 36, ", "\"copies\": 2, \"id_features\": 72, ",
        "\"copies\": 3, \"id_features\": 108, "}) {
    EXPECT_THAT(text, HasSubstr(run));
  }
  EXPECT_THAT(ended.output, HasSubstr("\n       3      108 "));
  EXPECT_EQ(NumberOf(text, "times_copies_by_first"), 1.0) << text;
}

TEST(TrainCommandLine, OneFeatureOfAProductHasItsOwnDim) {
  const ScratchDirectory directory;
  const auto crc32c_with_dim = [&](const char* dim) {
    const std::string json = directory.path() + "/figures.json";
    const Ended ended = Train(
        "--generate product-1 --field-divisor 204 --divisor 5000 --model ffnn --samples 200 "
        "--batch 100 --json " +
        json + " --dim " + dim);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return NumberOf(TextIn(json), "weights_crc32c");
  };
  EXPECT_EQ(crc32c_with_dim("8"), crc32c_with_dim("64"));
}

TEST(TrainCommandLine, ATraceIsAPicture) {
  const ScratchDirectory directory;
  const std::string picture = directory.path() + "/trace.svg";
  const Ended ended = Train(
      "--generate criteo-kaggle --divisor 5000 --samples 1000 --batch 100 --dim 4 "
      "--micro-batches 2 --trace " +
      picture);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  const std::string text = TextIn(picture);
  EXPECT_THAT(text, HasSubstr("Gather, batch 1, pack 0, micro-batch 1"));
  EXPECT_THAT(text, HasSubstr("Update, batch 1, pack 0"));
}

std::vector<float> FloatsIn(const std::string& path) {
  const std::string bytes = TextIn(path);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
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

TEST(TrainCommandLine, APublishedModelHasItsSizes) {
  const ScratchDirectory directory;
  const std::string first = directory.path() + "/first";
  const auto parameters = [&](const std::string& model) {
    const Ended ended = Train("--generate criteo-kaggle --divisor 5000 --samples 100 --steps 0 " +
                              ("--weights " + first) + " --model " + model);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    return FloatsIn(first).size();
  };
  constexpr size_t kPairs = 27 * 26 / 2;
  const size_t rmc2 =
      512 * 14 + 256 * 513 + 64 * 257 + 16 * 65 + 512 * (kPairs + 16 + 1) + 256 * 513 + 257;
  EXPECT_EQ(parameters("dlrm"), rmc2);
  EXPECT_EQ(parameters("rmc2"), rmc2);
  EXPECT_EQ(parameters("dlrm --dim 64"), rmc2 + 48 * 65 + 512 * 48);
  EXPECT_EQ(parameters("syn-m1"), size_t{64 * 14 + 512 * (kPairs + 64 + 1) + 513});
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
  const std::string text = TextIn(json);
  EXPECT_THAT(text, HasSubstr("\"samples\": 500,"));
  EXPECT_THAT(text, HasSubstr("\"samples_per_second\": 0,"));
  EXPECT_THAT(text, HasSubstr("\"lookup\": 0,"));
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
  EXPECT_THAT(again.output, HasSubstr("has a checkpoint of step 5: give --resume"));
  const Ended other = Train(run + " --model ffnn");
  EXPECT_THAT(other.output, HasSubstr("give --resume")) << "it lacks the model, too";
}

}  // namespace
}  // namespace embank::test::train_command_line_test
