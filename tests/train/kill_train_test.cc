// embank-train is killed again and again, and goes on each time: its weights, rows and states are
// those of a run without interruption.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/environment.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/train/train_program.h"
#include "tests/train/trained_rows.h"

namespace embank::test::kill_train_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

// embank-train as it runs, and what it writes to its standard error.
struct Training {
  pid_t child = -1;
  int output = -1;
};

// Starts embank-train.
Training StartWords(Words words) {
  words.insert(words.begin(), std::getenv("EMBANK_TRAIN"));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  return {child, ends[0]};
}

// Starts it with the options of all trainings and these.
Training Start(const Words& data, const Words& more) {
  Words words = {"--batch", "100", "--dim", "8", "--threads", "2", "--dram-mib", "48"};
  words.insert(words.end(), data.begin(), data.end());
  words.insert(words.end(), more.begin(), more.end());
  return StartWords(std::move(words));
}

// Waits until a resumed run begins to train, or has ended.
void WaitForSteps(const Training& run) {
  std::string output;
  char part[256];
  while (output.find("goes on behind step") == std::string::npos) {
    const ssize_t size = read(run.output, part, sizeof(part));
    if (size <= 0) return;
    output.append(part, static_cast<size_t>(size));
  }
}

sigset_t EndsOfChildren() {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  return ended;
}

// The end of an earlier child is no end of a later one.
void ForgetEnds() {
  const sigset_t ended = EndsOfChildren();
  const timespec none = {};
  while (sigtimedwait(&ended, nullptr, &none) == SIGCHLD) continue;
}

// Waits until a child has ended, and no longer than so many milliseconds; returns whether it has.
bool WaitForAnEnd(uint64_t milliseconds_max) {
  const sigset_t ended = EndsOfChildren();
  const timespec limit = {.tv_sec = static_cast<time_t>(milliseconds_max / 1000),
                          .tv_nsec = static_cast<long>(milliseconds_max % 1000 * 1'000'000)};
  return sigtimedwait(&ended, nullptr, &limit) == SIGCHLD;
}

// Waits until a run has worked so long, in milliseconds, or has ended. Other programs on the
// machine change how long that takes, and not how far it gets.
void WaitForWork(const Training& run, uint64_t milliseconds) {
  const double end = UserSeconds(run.child) + static_cast<double>(milliseconds) * 1e-3;
  while (UserSeconds(run.child) < end && !WaitForAnEnd(1)) continue;
}

// The work of all children that have ended, in milliseconds.
uint64_t WorkOfEnded() {
  rusage use = {};
  getrusage(RUSAGE_CHILDREN, &use);
  return static_cast<uint64_t>(use.ru_utime.tv_sec) * 1000 +
         static_cast<uint64_t>(use.ru_utime.tv_usec) / 1000;
}

// Waits for the end of a run, and returns its status.
int EndOf(const Training& run) {
  int status = 0;
  EXPECT_EQ(waitpid(run.child, &status, 0), run.child);
  close(run.output);
  return status;
}

// Waits for the end; returns whether the program ended well by itself.
bool EndsWell(const Training& run) {
  const int status = EndOf(run);
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return true;
  }
  EXPECT_EQ(WTERMSIG(status), SIGKILL) << "it crashed";
  return false;
}

std::string WeightsIn(const std::string& json_path) {
  std::ostringstream text;
  text << std::ifstream(json_path).rdbuf();
  const std::string json = text.str();
  const size_t at = json.find("\"weights_crc32c\"");
  return at == std::string::npos ? "" : json.substr(at, json.find_first_of(",}", at) - at);
}

// The number behind a name in the JSON of a run; -1: there is none.
double NumberIn(const std::string& json_path, const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(json_path).rdbuf();
  const size_t at = text.str().find("\"" + name + "\": ");
  return at == std::string::npos ? -1.0 : std::stod(text.str().substr(at + name.size() + 4));
}

// The most milliseconds of work from the first step of a run to its kill or stop, so that about
// `count` of them come before the training is at its end, by the work of the whole training.
uint64_t WorkMax(uint64_t of_whole, uint64_t count) { return 1 + of_whole * 12 / (10 * count); }

// Kills a run again and again until it was killed so often; then it goes on to its end.
void KillAgainAndAgain(Words data, uint32_t kills_wanted) {
  data.insert(data.end(), {"--checkpoint-every", "7"});
  ASSERT_NE(std::getenv("EMBANK_TRAIN"), nullptr) << "ctest names the program";
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  const std::string whole = directory.path() + "/whole.json";
  const std::string killed = directory.path() + "/killed.json";
  const uint64_t before = WorkOfEnded();
  ASSERT_TRUE(EndsWell(Start(data, {"--path", directory.path() + "/a", "--json", whole})));
  ASSERT_NE(WeightsIn(whole), "");
  const uint64_t work_max = WorkMax(WorkOfEnded() - before, kills_wanted);
  ASSERT_TRUE(EndsWell(Start(data, {"--path", directory.path() + "/b", "--steps", "7"})));
  Random random(5);
  uint32_t kills = 0;
  bool has_ended = false;
  while (!has_ended && !testing::Test::HasFailure()) {
    ForgetEnds();
    const Training run =
        Start(data, {"--path", directory.path() + "/b", "--resume", "--json", killed});
    if (kills < kills_wanted) {
      const bool is_at_start = kills % 4 == 3;
      if (!is_at_start) WaitForSteps(run);
      WaitForWork(run, random.Between(0, is_at_start ? 60 : work_max));
      kill(run.child, SIGKILL);
    }
    has_ended = EndsWell(run);
    kills += has_ended ? 0 : 1;
  }
  EXPECT_EQ(WeightsIn(killed), WeightsIn(whole));
  // 26 id features, and dense parameters.
  ExpectSameRows(directory.path() + "/b", directory.path() + "/a", 27);
  EXPECT_EQ(kills, kills_wanted) << "it ended before it was killed";
}

TEST(KillTrain, WeightsAreThoseOfARunWithoutInterruption) {
  KillAgainAndAgain({"--generate", "criteo-kaggle", "--divisor", "3000", "--samples", "60000"}, 20);
}

// Some lines of the log are broken.
TEST(KillTrain, ALogGoesOnWhereItsCheckpointWas) {
  const ScratchDirectory directory;
  const std::string log = directory.path() + "/log.txt";
  const Words data = {"--data", log};
  ASSERT_TRUE(EndsWell(Start({"--generate", "criteo-kaggle", "--divisor", "3000", "--samples",
                              "60000", "--path", directory.path() + "/unused"},
                             {"--write-log", log})));
  std::string text;
  {
    std::ostringstream written;
    written << std::ifstream(log).rdbuf();
    text = written.str();
  }
  uint64_t line = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (++line % 500 == 3) text[at] = 'x';
  }
  std::ofstream(log) << text;
  KillAgainAndAgain(data, 8);
}

// Each stop is a checkpoint, of which there are no others. A signal that comes before the first
// step ends the program, and is no stop.
TEST(KillTrain, ARunThatIsStoppedBySignalsGoesOnAtEachOfThem) {
  const uint64_t stops_wanted = TestScale() > 1 ? 20 : 5;
  const uint64_t steps = 120 * stops_wanted;
  const Words data = {"--generate", "criteo-kaggle", "--divisor",
                      "3000",       "--samples",     std::to_string(steps * 100)};
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  const std::string whole = directory.path() + "/whole.json";
  const std::string stopped = directory.path() + "/stopped.json";
  const Words path = {"--path", directory.path() + "/b", "--json", stopped};
  const uint64_t before = WorkOfEnded();
  ASSERT_TRUE(EndsWell(Start(data, {"--path", directory.path() + "/a", "--json", whole})));
  const uint64_t work_max = WorkMax(WorkOfEnded() - before, stops_wanted);
  Words first = path;
  first.insert(first.end(), {"--steps", "3"});
  ASSERT_TRUE(EndsWell(Start(data, first)));
  double last_step = 3.0;
  double loss = NumberIn(stopped, "logloss") * 300.0;
  Words next = path;
  next.emplace_back("--resume");
  Random random(7);
  uint64_t stops = 0;
  uint32_t ends = 0;
  while (last_step < static_cast<double>(steps) && !testing::Test::HasFailure()) {
    ForgetEnds();
    std::ofstream(stopped) << "";
    const Training run = Start(data, next);
    WaitForSteps(run);
    if (stops < stops_wanted) {
      WaitForWork(run, random.Between(0, work_max));
      kill(run.child, stops % 2 == 0 ? SIGTERM : SIGINT);
    }
    const int status = EndOf(run);
    if (WIFSIGNALED(status)) {
      ASSERT_LT(++ends, 100u) << "it never stops in a checkpoint";
      continue;
    }
    ASSERT_EQ(WEXITSTATUS(status), 0);
    const double samples = NumberIn(stopped, "samples");
    EXPECT_EQ(NumberIn(stopped, "steps"), last_step + samples / 100) << "it went on elsewhere";
    last_step = NumberIn(stopped, "steps");
    loss += NumberIn(stopped, "logloss") * samples;
    if (last_step < static_cast<double>(steps)) ++stops;
  }
  EXPECT_EQ(stops, stops_wanted) << "it ended before it was stopped";
  EXPECT_NEAR(loss / static_cast<double>(steps * 100), NumberIn(whole, "logloss"), 1e-5);
  EXPECT_EQ(WeightsIn(stopped), WeightsIn(whole));
  ExpectSameRows(directory.path() + "/b", directory.path() + "/a", 27);
}

// A named pipe, through which lines come while a program reads them.
class PipedLog {
 public:
  explicit PipedLog(const std::string& path) : path_(path) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
  }
  // Waits for the reader.
  void Write(const std::string& lines) {
    if (writer_ < 0) writer_ = open(path_.c_str(), O_WRONLY);
    EXPECT_EQ(write(writer_, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
  }
  // Writes to a reader that may have ended, or may end meanwhile.
  void WriteIfRead(const std::string& lines) {
    const auto former = ::signal(SIGPIPE, SIG_IGN);
    if (write(writer_, lines.data(), lines.size()) < 0) {
      EXPECT_EQ(errno, EPIPE);
    }
    ::signal(SIGPIPE, former);
  }
  void Close() { close(std::exchange(writer_, -1)); }

 private:
  const std::string path_;
  int writer_ = -1;
};

// The steps of the model in a directory; -1: there is none yet.
double StepsOf(const std::string& path) {
  return NumberOf(Train("describe --path " + path).output, "steps");
}

// More than the 256 KiB by which a piped log is known, and a batch that needs more lines.
constexpr int kLinesRead = 1200;
constexpr const char* kMoreThanRead = "2000";

// Ctrl-C also ends the program that reads the output, and a terminal that hangs up reads no more.
TEST(KillTrain, AStoppedRunNeedsNoReaderOfItsOutput) {
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string path = directory.path() + "/run" + std::to_string(signal);
    ASSERT_TRUE(EndsWell(Start(
        {"--generate", "criteo-kaggle", "--divisor", "3000", "--samples", "300", "--path", path},
        {})));
    PipedLog data(path + ".log");
    Training run =
        StartWords({"--data", path + ".log", "--path", path, "--resume", "--batch", kMoreThanRead});
    data.Write(CriteoLog(kLinesRead));
    WaitForSteps(run);
    while (!CatchesSignals(run.child)) WaitForAnEnd(5);
    close(std::exchange(run.output, -1));
    // Before the signal, after which the program may close the pipe at any time.
    data.Write(CriteoLog(kLinesRead));
    kill(run.child, signal);
    data.Close();
    const int status = EndOf(run);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(StepsOf(path), 4.0) << signal;
  }
}

// Whether a run has made its second step of lines that were written after it was told to stop. It
// waits up to a second for them, and may also end without.
bool ReadsLinesAfterTheSignal(const std::string& path) {
  PipedLog data(path + ".log");
  const Training run =
      StartWords({"--data", path + ".log", "--path", path, "--batch", kMoreThanRead});
  data.Write(CriteoLog(2 * kLinesRead));
  while (!CatchesSignals(run.child)) WaitForAnEnd(5);
  ForgetEnds();
  // Until it waits for the rest of its second batch.
  WaitForAnEnd(300);
  kill(run.child, SIGTERM);
  data.WriteIfRead(CriteoLog(2 * kLinesRead));
  data.Close();
  const int status = EndOf(run);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  const double steps = StepsOf(path);
  EXPECT_THAT(steps, AnyOf(1.0, 2.0));
  return steps == 2.0;
}

TEST(KillTrain, AStoppedRunReadsTheRestOfItsBatch) {
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  bool has_read = false;
  for (int run = 0; run < 20 && !has_read && !testing::Test::HasFailure(); ++run) {
    has_read = ReadsLinesAfterTheSignal(directory.path() + "/run" + std::to_string(run));
  }
  EXPECT_TRUE(has_read);
}

// Stops a run that waits for the lines of a pipe.
void StopAtASilentPipe(const Words& more) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/run";
  PipedLog data(path + ".log");
  Words words = {"--data", path + ".log", "--path", path, "--batch", "100"};
  words.insert(words.end(), more.begin(), more.end());
  const Training run = StartWords(words);
  data.Write(CriteoLog(kLinesRead + 50));
  while (!CatchesSignals(run.child)) WaitForAnEnd(5);
  ForgetEnds();
  // The steps of what was written take no longer.
  WaitForAnEnd(1000);
  kill(run.child, SIGTERM);
  WaitForAnEnd(20'000);
  kill(run.child, SIGKILL);
  const int status = EndOf(run);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_GT(StepsOf(path), 0.0);
  data.Close();
  // The lines of the batch that did not come are not skipped.
  const double trained = StepsOf(path) * 100;
  WriteFile(path + ".log.whole", CriteoLog(kLinesRead + 50));
  EXPECT_THAT(
      Train("--resume --data " + path + ".log.whole --path " + path + " --json " + path + ".json")
          .output,
      HasSubstr("goes on behind step"));
  EXPECT_EQ(NumberIn(path + ".json", "samples"), kLinesRead + 50 - trained);
}

// The writer of a pipe may be silent for hours.
TEST(KillTrain, AStoppedRunDoesNotWaitForASilentPipe) {
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  StopAtASilentPipe({});
  StopAtASilentPipe({"--roles", "1,1,1"});
}

// By threads of one process, and by ranks.
TEST(KillTrain, RolesThatAreStoppedGoOn) {
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  const std::string whole = directory.path() + "/whole.json";
  const std::string stopped = directory.path() + "/stopped.json";
  const std::string log = directory.path() + "/log";
  WriteFile(log, CriteoLog(20'000));
  const Words data = {"--data", log};
  const uint64_t before = WorkOfEnded();
  ASSERT_TRUE(EndsWell(Start(data, {"--path", directory.path() + "/a", "--json", whole})));
  const uint64_t work = WorkOfEnded() - before;
  const Words ways[] = {{"--roles", "1,2,2"}, {"--roles", "1,1,1", "--ranks", "3"}};
  for (size_t i = 0; i < std::size(ways); ++i) {
    const std::string path = directory.path() + "/b" + std::to_string(i);
    Words words = {"--path", path, "--json", stopped};
    words.insert(words.end(), ways[i].begin(), ways[i].end());
    const Training run = Start(data, words);
    while (!CatchesSignals(run.child)) WaitForAnEnd(5);
    WaitForWork(run, work / 2);
    kill(run.child, SIGTERM);
    const int status = EndOf(run);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_GT(StepsOf(path), 0.0);
    EXPECT_LT(StepsOf(path), 200.0) << "it ended before it was stopped";
    EXPECT_THAT(TextIn(stopped), HasSubstr("\"stopped_by\""));
    ASSERT_TRUE(EndsWell(Start(data, {"--path", path, "--resume", "--json", stopped})));
    EXPECT_EQ(WeightsIn(stopped), WeightsIn(whole));
  }
}

// It may take long: what was trained is in a checkpoint, and a signal ends the evaluation alone.
TEST(KillTrain, TheLastEvaluationComesAfterTheCheckpoint) {
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  const std::string json = directory.path() + "/json";
  WriteFile(directory.path() + "/log", CriteoLog(500));
  for (const int signal : {SIGKILL, SIGTERM}) {
    const std::string path = directory.path() + "/run" + std::to_string(signal);
    PipedLog others(path + ".eval");
    const Training run = Start({"--data", directory.path() + "/log", "--path", path},
                               {"--eval", path + ".eval", "--json", json});
    others.Write(CriteoLog(150));
    for (int looks = 0; looks < 1000 && StepsOf(path) < 5.0; ++looks) WaitForAnEnd(20);
    EXPECT_EQ(StepsOf(path), 5.0) << signal;
    if (signal == SIGTERM) others.Write(CriteoLog(100));
    kill(run.child, signal);
    others.Close();
    const int status = EndOf(run);
    if (signal == SIGKILL) continue;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_THAT(TextIn(json), HasSubstr("\"stopped_by\": \"SIGTERM\""));
    EXPECT_EQ(NumberIn(json, "eval_logloss"), -1.0);
  }
}

TEST(KillTrain, AStoppedPredictionLeavesNoPart) {
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/run";
  ASSERT_TRUE(EndsWell(Start(
      {"--generate", "criteo-kaggle", "--divisor", "3000", "--samples", "300", "--path", path},
      {})));
  PipedLog data(directory.path() + "/log");
  const std::string scores = directory.path() + "/scores.csv";
  const Training run =
      StartWords({"predict", "--path", path, "--data", directory.path() + "/log", "--out", scores});
  // More than what is read to tell a log with labels from one without.
  data.Write(CriteoLog(6000));
  while (!CatchesSignals(run.child)) WaitForAnEnd(5);
  EXPECT_TRUE(std::filesystem::exists(scores + ".part"));
  data.Write(CriteoLog(100));
  kill(run.child, SIGINT);
  data.Close();
  const int status = EndOf(run);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_FALSE(std::filesystem::exists(scores + ".part"));
  EXPECT_FALSE(std::filesystem::exists(scores));
}

// Whichever it is: a person who wants a program to end presses what comes to hand.
TEST(KillTrain, ASecondSignalEndsItAtOnce) {
  const sigset_t ended = EndsOfChildren();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  // One step, for which the first signal waits, takes seconds; its lines are read in much less.
  constexpr int kLines = 30'000;
  constexpr double kInStepSeconds = 0.5;
  const std::string log = directory.path() + "/log";
  WriteFile(log, CriteoLog(kLines));
  for (const auto& [first, second] : {std::pair{SIGINT, SIGTERM}, {SIGTERM, SIGTERM}}) {
    const Training run = StartWords({"--model", "dlrm", "--data", log, "--path",
                                     directory.path() + "/run" + std::to_string(first), "--batch",
                                     std::to_string(kLines)});
    while (UserSeconds(run.child) < kInStepSeconds) WaitForAnEnd(5);
    ASSERT_TRUE(CatchesSignals(run.child));
    kill(run.child, first);
    WaitForAnEnd(50);
    ForgetEnds();
    EXPECT_EQ(waitpid(run.child, nullptr, WNOHANG), 0) << "the first signal is a wish";
    kill(run.child, second);
    const int status = EndOf(run);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == second) << status;
  }
}

}  // namespace
}  // namespace embank::test::kill_train_test
