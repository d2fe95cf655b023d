// The library's threads take no signals: those of the process are for the application's threads.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/child_process.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::signals_test {
namespace {

// The system's line `name` about a thread of this process; "" if there is none.
std::string StatusOf(const std::string& thread, const std::string& name) {
  std::ifstream file("/proc/self/task/" + thread + "/status");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t at = text.find("\n" + name + ":\t");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 3;
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::set<std::string> ThreadsOfThisProcess() {
  std::set<std::string> threads;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(thread.path().filename());
  }
  return threads;
}

// The kernel's own workers of a ring are listed too.
bool IsOfTheKernel(const std::string& thread) {
  std::ifstream file("/proc/self/task/" + thread + "/comm");
  std::string name;
  std::getline(file, name);
  return name.rfind("iou-", 0) == 0;
}

class Signals : public testing::Test {
 protected:
  // A store with workers and background work, which has done some.
  StorePtr OpenAndUse() {
    path_ = scratch_.path() + "/store";
    embank_store_options options = StoreOptions();
    options.path = path_.c_str();
    options.flags = EMBANK_OPEN_CREATE;
    options.dram_bytes = uint64_t{32} << 20;
    options.worker_threads = 4;
    StorePtr store = OpenStore(options);
    embank_table* const table = CreateTable(store.get(), "t", TableOptions(16, EMBANK_OPT_ADAGRAD));
    const std::vector<uint64_t> keys = KeyRange(0, 20'000);
    std::vector<float> rows(20'000 * 16);
    EXPECT_EQ(embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(), 0,
                            nullptr),
              EMBANK_OK);
    EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK)
        << embank_last_error();
    return store;
  }

  const ScratchDirectory scratch_;
  std::string path_;
};

TEST_F(Signals, EveryThreadOfTheLibraryBlocksThem) {
  const std::set<std::string> before = ThreadsOfThisProcess();
  const std::string own_thread = std::to_string(getpid());
  const std::string own_mask = StatusOf(own_thread, "SigBlk");
  const StorePtr store = OpenAndUse();
  EXPECT_EQ(StatusOf(own_thread, "SigBlk"), own_mask) << "the caller's mask changed";
  int seen = 0;
  for (const std::string& thread : ThreadsOfThisProcess()) {
    if (before.contains(thread) || IsOfTheKernel(thread)) continue;
    ++seen;
    const uint64_t blocked = std::stoull(StatusOf(thread, "SigBlk"), nullptr, 16);
    for (int signal = 1; signal <= 64; ++signal) {
      const std::set<int> faults = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
      const std::set<int> of_the_system = {SIGKILL, SIGSTOP, 32, 33};  // nobody blocks them
      if (faults.contains(signal) || of_the_system.contains(signal)) continue;
      EXPECT_NE(blocked >> (signal - 1) & 1, 0u) << "thread " << thread << " takes " << signal;
    }
  }
  EXPECT_GE(seen, 4) << "three workers and compaction";
}

// It blocks a signal in its threads behind the opening, as it did not know of ours.
TEST_F(Signals, AnApplicationReadsItsSignalsFromADescriptor) {
  EXPECT_EQ(InChild([this] {
              const StorePtr store = OpenAndUse();
              sigset_t signals;
              sigemptyset(&signals);
              sigaddset(&signals, SIGTERM);
              if (pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return 1;
              const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
              if (descriptor < 0 || kill(getpid(), SIGTERM) != 0) return 2;
              signalfd_siginfo about;
              if (read(descriptor, &about, sizeof about) != sizeof about) return 3;
              return about.ssi_signo == SIGTERM ? 0 : 4;
            }),
            "exit 0");
}

}  // namespace
}  // namespace embank::test::signals_test
