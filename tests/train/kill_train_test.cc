// embank-train is killed again and again, and goes on each time: its weights are those of a run
// without interruption.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test {
namespace {

constexpr uint32_t kKills = 20;

// Starts embank-train with the options of all runs and these.
pid_t Start(const std::vector<std::string>& more) {
  std::vector<std::string> words = {std::getenv("EMBANK_TRAIN"),
                                    "--generate",
                                    "criteo-kaggle",
                                    "--divisor",
                                    "3000",
                                    "--samples",
                                    "60000",
                                    "--batch",
                                    "100",
                                    "--dim",
                                    "8",
                                    "--threads",
                                    "2",
                                    "--dram-mib",
                                    "48",
                                    "--checkpoint-every",
                                    "7"};
  words.insert(words.end(), more.begin(), more.end());
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (std::freopen("/dev/null", "w", stderr) != nullptr) execv(arguments[0], arguments.data());
  _exit(127);
}

// Waits until a child has ended, and no longer than so many milliseconds.
void WaitForAnEnd(uint64_t milliseconds_max) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  const timespec limit = {.tv_sec = 0, .tv_nsec = static_cast<long>(milliseconds_max * 1'000'000)};
  sigtimedwait(&ended, nullptr, &limit);
}

// Waits for the end; returns whether the program ended well by itself.
bool EndsWell(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string WeightsIn(const std::string& json_path) {
  std::ostringstream text;
  text << std::ifstream(json_path).rdbuf();
  const std::string json = text.str();
  const size_t at = json.find("\"weights_crc32c\"");
  return at == std::string::npos ? "" : json.substr(at, json.find_first_of(",}", at) - at);
}

TEST(KillTrain, WeightsAreThoseOfARunWithoutInterruption) {
  ASSERT_NE(std::getenv("EMBANK_TRAIN"), nullptr) << "ctest names the program";
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  const std::string whole = directory.path() + "/whole.json";
  const std::string killed = directory.path() + "/killed.json";
  ASSERT_TRUE(EndsWell(Start({"--path", directory.path() + "/a", "--json", whole})));
  ASSERT_NE(WeightsIn(whole), "");
  Random random(5);
  uint32_t kills = 0;
  bool has_ended = false;
  while (!has_ended) {
    const pid_t child = Start({"--path", directory.path() + "/b", "--resume", "--json", killed});
    if (kills < kKills) {
      WaitForAnEnd(random.Between(30, 300));
      kill(child, SIGKILL);
    }
    has_ended = EndsWell(child);
    kills += has_ended ? 0 : 1;
  }
  EXPECT_EQ(WeightsIn(killed), WeightsIn(whole));
  EXPECT_EQ(kills, kKills) << "it ended before it was killed";
}

}  // namespace
}  // namespace embank::test
