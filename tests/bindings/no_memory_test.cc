// Calls in a process to which the system gives no more memory: new threads, which meet at the locks
// of the store, get statuses, and the statuses are true.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/child_process.h"
#include "tests/support/refused_mappings.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::no_memory_test {
namespace {

// The exit codes of a child.
enum Verdict { kRight = 0, kWrongStatus = 1, kWrongRows = 2, kNotOpened = 3, kNoFilters = 77 };

constexpr uint32_t kDim = 8;
constexpr uint64_t kKeys = 2'000;
constexpr uint64_t kThreads = 8;
constexpr int kRounds = 40;

bool IsAnswer(embank_status status) {
  return status == EMBANK_OK || status == EMBANK_RESOURCE_EXHAUSTED || status == EMBANK_UNAVAILABLE;
}

// The arguments of a thread's calls.
struct Buffers {
  std::vector<uint64_t> keys = KeyRange(0, kKeys);
  std::vector<uint64_t> scanned = std::vector<uint64_t>(100);
  std::vector<float> rows = std::vector<float>(kKeys * kDim, 1.0f);
  std::vector<float> state = std::vector<float>(kKeys * kDim);
  std::vector<uint32_t> heat = std::vector<uint32_t>(kKeys);
  std::vector<uint8_t> outcomes = std::vector<uint8_t>(kKeys);
};

// Every kind of call, on the same keys as the other threads.
bool CallAll(embank_store* store, embank_table* table, bool has_path, Buffers* buffers) {
  auto& [keys, scanned, rows, state, heat, outcomes] = *buffers;
  bool right = true;
  for (int round = 0; round < kRounds; ++round) {
    uint64_t needed = 0;
    embank_scan* scan = nullptr;
    right &= IsAnswer(embank_lookup(table, keys.data(), kKeys, EMBANK_MISSING_CREATE, rows.data(),
                                    0, outcomes.data()));
    right &= IsAnswer(
        embank_apply_gradients(table, keys.data(), kKeys, rows.data(), 0, outcomes.data()));
    right &= IsAnswer(embank_get_state(table, keys.data(), kKeys, state.data(), 0, nullptr));
    right &= IsAnswer(embank_set_state(table, keys.data(), kKeys, state.data(), 0, nullptr));
    right &= IsAnswer(embank_get_heat(table, keys.data(), kKeys, heat.data(), nullptr));
    right &= IsAnswer(embank_contains(table, keys.data(), kKeys, outcomes.data()));
    right &= IsAnswer(embank_prefetch(table, keys.data(), kKeys));
    right &= IsAnswer(embank_metrics(store, nullptr, 0, &needed));
    right &= IsAnswer(embank_scan_open(table, &scan));
    if (scan != nullptr) {
      uint64_t n = 0;
      right &= IsAnswer(embank_scan_next(scan, scanned.data(), rows.data(), 0, scanned.size(), &n));
      embank_scan_close(scan);
    }
    if (has_path && round % 8 == 0) right &= IsAnswer(embank_checkpoint(store, "b", 1, nullptr));
  }
  return right;
}

int RunWithoutMemory(const char* path) {
  embank_store_options options = StoreOptions();
  options.path = path;
  options.flags = path == nullptr ? 0 : EMBANK_OPEN_CREATE;
  options.dram_bytes = uint64_t{32} << 20;
  options.ssd_bytes = path == nullptr ? 0 : uint64_t{256} << 20;
  options.worker_threads = 2;
  embank_store* store = nullptr;
  embank_table* table = nullptr;
  const embank_table_options table_options = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
  if (embank_store_open(&options, &store) != EMBANK_OK ||
      embank_table_create(store, "t", &table_options, &table) != EMBANK_OK) {
    return kNotOpened;
  }
  // All elements of a row are equal, and stay so in every order of the calls.
  const std::vector<uint64_t> keys = KeyRange(0, kKeys);
  std::vector<float> rows(kKeys * kDim, 2.0f);
  if (embank_upsert(table, keys.data(), kKeys, rows.data(), 0, nullptr) != EMBANK_OK) {
    return kNotOpened;
  }
  std::atomic<int> begun{0};
  std::atomic<bool> may_go{false};
  std::atomic<bool> right{true};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Buffers buffers;
      ++begun;
      while (!may_go) sched_yield();
      if (!CallAll(store, table, path != nullptr, &buffers)) right = false;
    });
  }
  while (begun < static_cast<int>(kThreads)) sched_yield();
  if (!RefuseMappings(Threads::kAll)) return kNoFilters;
  may_go = true;
  for (std::thread& thread : threads) thread.join();
  if (!right) return kWrongStatus;
  if (embank_lookup(table, keys.data(), kKeys, EMBANK_MISSING_ZERO, rows.data(), 0, nullptr) !=
      EMBANK_OK) {
    return kWrongStatus;
  }
  for (uint64_t i = 0; i < kKeys * kDim; ++i) {
    if (rows[i] != rows[i / kDim * kDim] || rows[i] == 2.0f) return kWrongRows;
  }
  embank_store_close(store);
  return kRight;
}

class NoMemory : public testing::Test {
 protected:
  void ExpectAnswers(const char* path) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer itself needs memory";
#endif
    const std::string end = InChild([&] { return RunWithoutMemory(path); });
    if (end == EndOf(kNoFilters << 8)) GTEST_SKIP() << "the system has no seccomp filters";
    EXPECT_EQ(end, "exit 0");
  }
};

TEST_F(NoMemory, ThreadsThatMeetInAStoreInMemoryGetStatuses) { ExpectAnswers(nullptr); }

TEST_F(NoMemory, ThreadsThatMeetInAStoreOnDiskGetStatuses) {
  const ScratchDirectory scratch;
  ExpectAnswers((scratch.path() + "/store").c_str());
}

}  // namespace
}  // namespace embank::test::no_memory_test
