// embank-bench from the outside: its output and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "tests/bench/temporary_file.h"
#include "tests/support/program.h"
#include "tests/support/scratch_directory.h"

namespace embank::command_line_test {
namespace {

using test::Ended;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Ended RunProgram(const std::string& arguments) {
  return test::RunProgram("EMBANK_BENCH", arguments);
}

TEST(CommandLine, WrongUseNamesTheOptionAndExitsWith2) {
  struct Case {
    const char* arguments;
    const char* message;
  };
  const Case cases[] = {
      {"", "name a command."},
      {"replya --dim 8", "there is no command 'replya'. Did you mean 'replay'?\nCommands:\n  kv "},
      {"survive", "--path"},
      {"survive --path /tmp --kills 1001", "--kills"},
      {"survive --path /no/such", "--path: /no/such"},
      {"kv --rows 0", "--rows"},
      {"kv --rows -4", "--rows"},
      {"kv --rows many", "--rows"},
      {"kv --rows 1e6", "--rows"},
      {"kv --rows 1099511627776", "--rows"},
      {"kv --dim 4097", "--dim"},
      {"kv --type f64", "--type"},
      {"kv --optimizer lamb", "--optimizer"},
      {"kv --optimizer none", "--phases"},
      {"kv --dist zipf:-1", "--dist"},
      {"kv --dist trace:/no/such.txt", "--dist: /no/such.txt"},
      {"kv --id-mode none", "--id-mode"},
      {"kv --phases fill,scan", "--phases: 'scan'"},
      {"kv --engines embank,redis", "--engines: 'redis'"},
      {"kv --batch 0", "--batch"},
      {"kv --threads 0", "--threads"},
      {"kv --threads 1,x", "--threads"},
      {"kv --threads 1,-2", "--threads"},
      {"kv --threads 1,2,1", "--threads: names one twice"},
      {"limits --rows-bytes 66", "--rows-bytes: 66"},
      {"limits --seconds 0", "--seconds"},
      {"limits --json /no/such/file", "--json: /no/such/file"},
      {"traces", "--traces is required"},
      {"traces --traces /no/such", "--traces: /no/such"},
      {"traces --traces /etc --fractions 0", "--fractions: 0"},
      {"traces --traces /etc --fractions 0.1,1.5", "--fractions: 1.5"},
      {"traces --traces /etc --fractions 0.1,0.1", "--fractions: names one twice"},
      {"traces --traces /etc --json /no/such/file", "--json: /no/such/file"},
      {"kv --seconds -1", "--seconds"},
      {"kv --rounds 0", "--rounds"},
      {"kv --json /no/such/file", "--json: /no/such/file"},
      {"kv --nonsense", "--nonsense"},
      {"ssd", "--path is required"},
      {"ssd --path /no/such", "--path: /no/such"},
      {"ssd --path /etc --rows 0", "--rows"},
      {"ssd --path /etc --rows 1000000000000", "--rows: 1000000000000 rows"},
      {"ssd --path /etc --engines embank,libcuckoo", "--engines: 'libcuckoo'"},
      {"ssd --path /etc --phases fill,update", "--phases: 'update'"},
      {"ssd --path /etc --dist zipf:x", "--dist"},
      {"ssd --path /etc --dram-fraction 0", "--dram-fraction"},
      {"ssd --path /etc --utilisation 2", "--utilisation"},
      {"ssd --path /etc --threads 0", "--threads"},
      {"ssd --path /etc --peer-threads 2,2", "--peer-threads: names one twice"},
      {"ssd --path /etc --overwrites 1.5", "--overwrites"},
      {"ssd --path /etc --pmem /tmp --pmem-bytes 4000000", "--pmem-bytes: 4000000"},
      {"ssd --path /tmp --rows 1000 --pmem /no/such", "--pmem: /no/such"},
      {"ssd --path /etc --json /no/such/file", "--json: /no/such/file"},
      {"replay --trace /no/such.txt", "--trace: /no/such.txt"},
      {"replay --trace /etc/passwd", "--trace-format"},
      {"replay --trace x.txt --trace-format csv", "--trace-format: 'csv'"},
      {"replay --dim 0", "--dim"},
      {"replay --threads -1", "--threads"},
  };
  for (const Case& wrong : cases) {
    const Ended ended = RunProgram(wrong.arguments);
    EXPECT_EQ(ended.exit_code, 2) << wrong.arguments << "\n" << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(wrong.message)) << wrong.arguments;
  }
}

TEST(CommandLine, WrongUseOfABudgetNamesTheOption) {
  const std::pair<const char*, const char*> cases[] = {
      {"kv --dram-fraction 0.2 --eviction lru", "--on-full"},
      {"kv --dram-fraction 0.2 --on-full forget", "--eviction: is empty"},
      {"kv --dram-fraction 0.2 --on-full forget --eviction lru,mru", "--eviction: 'mru'"},
      {"kv --dram-fraction 2000 --on-full forget --eviction lru", "--dram-fraction: 2000"},
      {"kv --eviction lru", "need a --dram-fraction"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended ended = RunProgram(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.output, HasSubstr(message)) << arguments;
  }
}

TEST(CommandLine, WrongUseOfPackedCallsNamesTheOption) {
  const std::pair<const char*, const char*> cases[] = {
      {"packed --tables 0", "--tables: 0"},
      {"packed --rows 0", "--rows: 0"},
      {"packed --dims 16,5000", "--dims: 5000"},
      {"packed --dims 16,16", "--dims: names one twice"},
      {"packed --batches 0", "--batches: 0"},
      {"packed --zipf 101", "--zipf: 101"},
      {"packed --threads 0", "--threads: 0"},
      {"packed --seconds 0", "--seconds: 0"},
      {"packed --rounds 0", "--rounds: 0"},
      {"packed --json /no/such/file", "--json: /no/such/file"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended ended = RunProgram(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.output, HasSubstr(message)) << arguments;
  }
}

TEST(CommandLine, WrongUseOfDeviceCallsNamesTheOption) {
  const std::pair<const char*, const char*> cases[] = {
      {"device --cuda-device -2", "--cuda-device: -2"},
      {"device --cuda-device -1 --hits 2", "--hits: 2"},
      {"device --rows 1000 --batch 501", "--batch: 501"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended ended = RunProgram(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.output, HasSubstr(message)) << arguments;
  }
}

TEST(CommandLine, WrongUseOfAHotSetNamesTheOption) {
  const std::pair<const char*, const char*> cases[] = {
      {"hot --rows 9", "--rows: 9"},
      {"hot --k 1.5", "--k: 1.5"},
      {"hot --preset most", "--preset: most"},
      {"hot --iters 500 --drift-at 500", "--drift-at: must be between"},
      {"hot --trace /no/such.txt --all", "--all: "},
      {"hot --trace /no/such.txt", "--trace: /no/such.txt"},
      {"hot --curve /no/such/a /no/such/b", "--curve: /no/such/a"},
      {"hot --json /no/such/file", "--json: /no/such/file"},
  };
  for (const auto& [arguments, message] : cases) {
    const Ended ended = RunProgram(arguments);
    EXPECT_EQ(ended.exit_code, 2) << arguments;
    EXPECT_THAT(ended.output, HasSubstr(message)) << arguments;
  }
}

TEST(CommandLine, HelpExitsWith0) {
  EXPECT_EQ(RunProgram("--help").exit_code, 0);
  const Ended kv = RunProgram("kv --help");
  EXPECT_EQ(kv.exit_code, 0);
  EXPECT_THAT(kv.output, AllOf(HasSubstr("--engines"), HasSubstr("--id-mode")));
}

TEST(CommandLine, BrokenTraceIsNamedAndExitsWith1) {
  const TemporaryFile broken(".txt", "1\n2\nx\n");
  const Ended ended = RunProgram("replay --trace " + broken.path());
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr(broken.path() + ":3: 'x' in column 1"));
}

TEST(CommandLine, ReplayPrintsItsTableAndWritesItsFigures) {
  const TemporaryFile trace(".txt", "1\n2\n1\n3\n");
  const TemporaryFile json(".json");
  const Ended ended = RunProgram("replay --trace " + trace.path() +
                                 " --dim 8 --optimizer adam --json " + json.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(StartsWith("embank-bench replay"), HasSubstr("digest"),
                                  HasSubstr("distinct keys   3")));
  EXPECT_THAT(json.Contents(), AllOf(StartsWith("{"), HasSubstr("\"mismatches\": 0")));
}

TEST(CommandLine, APageThatCannotBeAddedToIsNamedBeforeTheRun) {
  for (const char* arguments : {"replay --report /no/such/page.html", "replay --report /etc/passwd",
                                "survive --path /etc --report /etc"}) {
    const Ended ended = RunProgram(arguments);
    EXPECT_NE(ended.exit_code, 0) << arguments;
    EXPECT_THAT(ended.output, HasSubstr("embank-bench: --report: /")) << arguments;
    EXPECT_THAT(ended.output, Not(HasSubstr("mismatches"))) << arguments;
  }
}

constexpr const char* kTrainingFigures =
    R"({"model": "dlrm", "steps": 20, "samples": 20000, "samples_per_second": 5980.02,
        "logloss": 0.7673, "auc": 0.5878, "eval_auc": 0.725264, "best_auc": 0.797037,
        "seconds": {"lookup": 0.1, "dense": 2.9, "gradients": 0.1, "all": 3.3},
        "rows": {"hbm": 1, "dram": 2, "pmem": 3, "ssd": 4},
        "hit_ratio": {"hbm": 0.1, "dram": 0.5, "pmem": 0.1, "ssd": 0.1, "created": 0.2}})";

TEST(CommandLine, FiguresThatAreNoTrainingsAreRefused) {
  const test::ScratchDirectory directory;
  const std::string page = directory.path() + "/report.html";
  const std::string figures = kTrainingFigures;
  for (const std::string& contents : {std::string(), std::string("{\"model\": \"dlrm\"}"),
                                      figures.substr(0, figures.size() / 2)}) {
    const TemporaryFile file(".json", contents);
    const Ended ended = RunProgram("training --json " + file.path() + " --report " + page);
    EXPECT_EQ(ended.exit_code, 2) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("--json: " + file.path()));
    EXPECT_FALSE(std::filesystem::exists(page));
  }
}

TEST(CommandLine, RunsAddToOnePage) {
  const test::ScratchDirectory directory;
  const TemporaryFile trace(".txt", "1\n2\n1\n3\n");
  const std::string page = directory.path() + "/report.html";
  const std::string options = " --trace " + trace.path() + " --dim 8 --report " + page;
  const Ended replay = RunProgram("replay" + options);
  EXPECT_EQ(replay.exit_code, 0) << replay.output;
  const Ended survive = RunProgram("survive --kills 0 --path " + directory.path() + options);
  EXPECT_EQ(survive.exit_code, 0) << survive.output;
  const Ended tiers = RunProgram("tiers --path " + directory.path() + options);
  EXPECT_EQ(tiers.exit_code, 0) << tiers.output;
  const TemporaryFile figures(".json", kTrainingFigures);
  const Ended training = RunProgram("training --json " + figures.path() +
                                    " --command 'embank-train --data log' --report " + page);
  EXPECT_EQ(training.exit_code, 0) << training.output;
  // A training without held-out samples and without a hidden model.
  std::string fewer_figures = kTrainingFigures;
  const size_t evaluation = fewer_figures.find(", \"eval_auc\"");
  fewer_figures.erase(evaluation, fewer_figures.find(",\n", evaluation) - evaluation);
  const TemporaryFile fewer(".json", fewer_figures);
  const Ended plain = RunProgram("training --json " + fewer.path() + " --report " + page);
  EXPECT_EQ(plain.exit_code, 0) << plain.output;
  std::ifstream file(page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t first = text.find("<h2>Replay");
  const size_t second = text.find("<h2>Survive");
  ASSERT_NE(first, std::string::npos) << text;
  ASSERT_NE(second, std::string::npos) << text;
  EXPECT_LT(first, second);
  EXPECT_THAT(text,
              AllOf(HasSubstr("<li><a href=\"#run-3\">Tiers"), HasSubstr("<td>HBM</td>"),
                    HasSubstr("<section id=\"run-4\">"), HasSubstr("had not seen is 0.7253, where"),
                    HasSubstr("before its step is 0.5878."), HasSubstr("embank-train --data log")));
  EXPECT_THAT(text, AllOf(HasSubstr("embank-bench replay --trace " + trace.path()),
                          HasSubstr("embank-bench survive --kills 0 --path " + directory.path())));
}

TEST(CommandLine, KvPrintsItsTableAndWritesItsFigures) {
  const TemporaryFile json(".json");
  const Ended ended = RunProgram(
      "kv --rows 1000 --dim 4 --rounds 1 --seconds 0.01 --engines absl,embank "
      "--phases lookup,update,small --threads 1,2 --dist zipf:1.05 --id-mode hashed --type bf16 "
      "--json " +
      json.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(StartsWith("embank-bench kv"), HasSubstr("lookup absl       2 "),
                                  HasSubstr("update embank     1 "), HasSubstr("update limit")));
  EXPECT_THAT(json.Contents(),
              AllOf(HasSubstr("\"engine\": \"absl\""), HasSubstr("\"dist\": \"zipf:1.05\"")));
}

TEST(CommandLine, SsdPrintsItsTableAndWritesItsFigures) {
  const test::ScratchDirectory directory;
  const TemporaryFile json(".json");
  const Ended ended = RunProgram(
      "ssd --rows 20000 --dim 256 --rounds 1 --seconds 0.05 --warmup 0 --engines embank "
      "--phases fill,lookup --threads 1 --dist zipf:0.99 --utilisation 0.5 --path " +
      directory.path() + " --json " + json.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(StartsWith("embank-bench ssd"), HasSubstr("lookup         T"),
                                  HasSubstr("embank         1")));
  EXPECT_THAT(json.Contents(), AllOf(HasSubstr("\"cpu_us_per_miss\""), HasSubstr("\"fio_iops\""),
                                     HasSubstr("\"dist\": \"zipf:0.99\"")));
}

// A file that is no library stands in front of libpmem, as if it were not installed.
TEST(CommandLine, SsdWithoutLibpmemSaysSoAndGoesOn) {
  const test::ScratchDirectory directory;
  std::ofstream(directory.path() + "/libpmem.so.1") << "no library";
  ASSERT_EQ(setenv("LD_LIBRARY_PATH", directory.path().c_str(), 1), 0);
  const Ended ended = RunProgram(
      "ssd --rows 20000 --dim 256 --rounds 1 --seconds 0.05 --warmup 0 --engines embank "
      "--phases lookup --threads 1 --path " +
      directory.path() + " --pmem " + directory.path());
  ASSERT_EQ(unsetenv("LD_LIBRARY_PATH"), 0);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("lookup         T"), Not(HasSubstr("pmem           T")),
                                  HasSubstr("note: the phase pmem is left out: "),
                                  HasSubstr("libpmem.so.1 (package libpmem1)")));
}

TEST(CommandLine, LimitsPrintsItsTableAndWritesItsFigures) {
  const TemporaryFile json(".json");
  const Ended ended =
      RunProgram("limits --rows-bytes 64,512 --threads 1,2 --seconds 0.05 --memory-mib 4 --json " +
                 json.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(StartsWith("embank-bench limits"), HasSubstr("random_lines"),
                                  HasSubstr("gather                 512   2")));
  EXPECT_THAT(json.Contents(), AllOf(HasSubstr("\"limits\""), HasSubstr("stream_write")));
}

TEST(CommandLine, TracesPrintsItsTableAndWritesItsFigures) {
  const test::ScratchDirectory directory;
  std::ofstream(directory.path() + "/keys.txt") << "1\n2\n1\n3\n1\n";
  const TemporaryFile json(".json");
  const Ended ended = RunProgram("traces --traces " + directory.path() +
                                 " --fractions 0.34,0.67 --json " + json.path());
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(StartsWith("embank-bench traces"), HasSubstr("optimum"),
                                  HasSubstr("keys                            67%   0.4000")));
  EXPECT_THAT(json.Contents(),
              AllOf(HasSubstr("\"policy\": \"clock\""), HasSubstr("\"fraction\": 0.34")));
}

}  // namespace
}  // namespace embank::command_line_test
