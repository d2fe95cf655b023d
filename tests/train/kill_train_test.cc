// embank-train is killed again and again, and goes on each time: its weights, rows and states are
// those of a run without interruption.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "store/batch/state.h"
#include "store/scan/scan.h"
#include "store/store.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::kill_train_test {
namespace {

using Words = std::vector<std::string>;

// Starts embank-train with the options of all runs and these.
pid_t Start(const Words& data, const Words& more) {
  std::vector<std::string> words = {std::getenv("EMBANK_TRAIN"),
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
  words.insert(words.end(), data.begin(), data.end());
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

using TableRows = std::map<Key, std::vector<float>>;

RowSpan SpanOf(std::vector<float>* rows, uint32_t floats) {
  return {reinterpret_cast<std::byte*>(rows->data()), floats * sizeof(float)};
}

// The values of each row, and its optimizer state behind them.
TableRows RowsIn(Table* table) {
  const uint32_t dim = table->layout().dim;
  const uint32_t state_floats = table->layout().state_floats;
  TableRows all;
  Scan scan(table);
  std::vector<Key> keys(1000);
  std::vector<float> rows(keys.size() * dim);
  std::vector<float> states(keys.size() * state_floats);
  for (;;) {
    const StatusOr<uint64_t> count = scan.Next(keys, SpanOf(&rows, dim));
    EXPECT_TRUE(count.ok()) << count.status();
    if (!count.ok() || *count == 0) return all;
    if (state_floats > 0) {
      const KeySpan found = KeySpan(keys).first(*count);
      EXPECT_TRUE(GetState(table, found, SpanOf(&states, state_floats), {}).ok());
    }
    for (uint64_t i = 0; i < *count; ++i) {
      std::vector<float>& row = all[keys[i]];
      row.assign(&rows[i * dim], &rows[i * dim] + dim);
      const auto state = states.begin() + static_cast<ptrdiff_t>(i * state_floats);
      row.insert(row.end(), state, state + state_floats);
    }
  }
}

std::map<std::string, TableRows> TablesIn(const std::string& path) {
  std::map<std::string, TableRows> tables;
  StoreOptions options;
  options.worker_threads = 1;
  options.path = path;
  options.seed = 1;  // that of embank-train
  options.dram_bytes = uint64_t{64} << 20;
  const StatusOr<std::unique_ptr<Store>> store = Store::Open(options, {});
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return tables;
  for (Table* const table : (*store)->catalog().List()) tables[table->name()] = RowsIn(table);
  return tables;
}

void ExpectSameRows(const std::string& path, const std::string& expected_path) {
  const std::map<std::string, TableRows> tables = TablesIn(path);
  const std::map<std::string, TableRows> expected = TablesIn(expected_path);
  EXPECT_EQ(tables.size(), 27u) << "26 id features, and dense parameters";
  ASSERT_EQ(tables.size(), expected.size());
  for (const auto& [name, rows] : expected) {
    EXPECT_GT(rows.size(), 0u) << name;
    EXPECT_TRUE(tables.contains(name) && tables.at(name) == rows) << name;
  }
}

// Kills a run again and again until it was killed so often; then it goes on to its end.
void KillAgainAndAgain(const Words& data, uint32_t kills_wanted) {
  ASSERT_NE(std::getenv("EMBANK_TRAIN"), nullptr) << "ctest names the program";
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &ended, nullptr), 0);
  const ScratchDirectory directory;
  const std::string whole = directory.path() + "/whole.json";
  const std::string killed = directory.path() + "/killed.json";
  ASSERT_TRUE(EndsWell(Start(data, {"--path", directory.path() + "/a", "--json", whole})));
  ASSERT_NE(WeightsIn(whole), "");
  Random random(5);
  uint32_t kills = 0;
  bool has_ended = false;
  while (!has_ended && !testing::Test::HasFailure()) {
    const pid_t child =
        Start(data, {"--path", directory.path() + "/b", "--resume", "--json", killed});
    if (kills < kills_wanted) {
      WaitForAnEnd(random.Between(30, 300));
      kill(child, SIGKILL);
    }
    has_ended = EndsWell(child);
    kills += has_ended ? 0 : 1;
  }
  EXPECT_EQ(WeightsIn(killed), WeightsIn(whole));
  ExpectSameRows(directory.path() + "/b", directory.path() + "/a");
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

}  // namespace
}  // namespace embank::test::kill_train_test
