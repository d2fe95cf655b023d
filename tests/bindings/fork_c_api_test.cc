// Stores in a process that forks, as data loaders do: the child is refused everything that its
// parent opened, at once, and the parent goes on as if there were no child.
#include <gtest/gtest.h>
#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/threads/log.h"
#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/child_process.h"
#include "tests/support/oracle.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/small_log.h"

namespace embank::test::fork_c_api_test {
namespace {

constexpr uint32_t kDim = 700;
constexpr uint64_t kKeys = 3'000;  // 17 MiB with their state, half of which memory holds
constexpr uint64_t kBatch = 500;

embank_store_options Options(const std::string& path) {
  embank_store_options options = StoreOptions();
  options.dram_bytes = (path.empty() ? uint64_t{64} : uint64_t{16}) << 20;
  options.worker_threads = 2;
  if (path.empty()) return options;
  options.path = path.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  return options;
}

embank_status OpenAt(const std::string& path, embank_store** store, uint64_t hbm_bytes = 0) {
  embank_store_options options = Options(path);
  options.hbm_bytes = hbm_bytes;
  StoreEnvironment environment;
  environment.log = SmallLog();
  const Status status = OpenStoreIn(&options, std::move(environment), store);
  return static_cast<embank_status>(status.code());
}

// The objects of a parent's store that its child inherits.
struct Inherited {
  embank_store* store = nullptr;
  embank_table* table = nullptr;
  embank_scan* scan = nullptr;
};

// In a child. Whether a call is refused as it should be; says which one is not.
int IsRefused(const char* call, embank_status status) {
  const std::string message = embank_last_error();
  const std::string parent = "opened by process " + std::to_string(getppid());
  if (status == EMBANK_FAILED_PRECONDITION && message.find(parent) != std::string::npos) {
    return true;
  }
  std::fprintf(stderr, "%s in a child: %s: %s\n", call, embank_status_name(status),
               message.c_str());
  return false;
}

int StoreCallsAreRefused(embank_store* store) {
  const embank_table_options options = TableOptions(4);
  embank_table* table = nullptr;
  uint64_t needed = 0;
  uint64_t sequence = 0;
  bool all = true;
  all = IsRefused("table_create", embank_table_create(store, "u", &options, &table)) && all;
  all = IsRefused("table_open", embank_table_open(store, "t", &table)) && all;
  all = IsRefused("table_drop", embank_table_drop(store, "t")) && all;
  all = IsRefused("table_names", embank_table_names(store, nullptr, 0, &needed)) && all;
  all = IsRefused("checkpoint", embank_checkpoint(store, nullptr, 0, &sequence)) && all;
  all = IsRefused("checkpoint_start", embank_checkpoint_start(store, nullptr, 0)) && all;
  all = IsRefused("checkpoint_finish", embank_checkpoint_finish(store, &sequence)) && all;
  all = IsRefused("checkpoint_blob", embank_checkpoint_blob(store, nullptr, 0, &needed)) && all;
  embank_checkpoint_info info = {};
  info.struct_size = sizeof info;
  all = IsRefused("get_checkpoint_info", embank_get_checkpoint_info(store, &info)) && all;
  embank_store_options store_options = StoreOptions();
  all = IsRefused("get_options", embank_store_get_options(store, &store_options)) && all;
  all = IsRefused("export", embank_export(store, "never_made", nullptr, nullptr)) && all;
  all = IsRefused("metrics", embank_metrics(store, nullptr, 0, &needed)) && all;
  all = IsRefused("memory_report", embank_memory_report(store, nullptr, 0, &needed)) && all;
  all = IsRefused("flush_hot", embank_flush_hot(store)) && all;
  void* memory = nullptr;
  all = IsRefused("device_allocate", embank_device_allocate(store, 256, &memory)) && all;
  all = IsRefused("device_copy", embank_device_copy(store, &needed, &sequence, 8, nullptr)) && all;
  all = IsRefused("device_free", embank_device_free(store, &sequence)) && all;
  return all;
}

int TableCallsAreRefused(embank_table* table) {
  const std::vector<uint64_t> keys = KeyRange(0, 20);
  std::vector<float> rows(20 * 2 * kDim, 1.0f);
  std::vector<uint32_t> heat(20);
  uint8_t outcomes[20];
  embank_table_info info = {};
  info.struct_size = sizeof info;
  embank_scan* scan = nullptr;
  embank_table_options options = TableOptions(kDim);
  const uint64_t* const k = keys.data();
  return IsRefused("get_info", embank_table_get_info(table, &info)) &
         IsRefused("lookup",
                   embank_lookup(table, k, 20, EMBANK_MISSING_CREATE, rows.data(), 0, outcomes)) &
         IsRefused("lookup of nothing",
                   embank_lookup(table, nullptr, 0, EMBANK_MISSING_ZERO, nullptr, 0, nullptr)) &
         IsRefused("upsert", embank_upsert(table, k, 20, rows.data(), 0, outcomes)) &
         IsRefused("upsert_full", embank_upsert_full(table, k, 20, rows.data(), 0, rows.data(), 0,
                                                     heat.data(), outcomes)) &
         IsRefused("apply_gradients",
                   embank_apply_gradients(table, k, 20, rows.data(), 0, outcomes)) &
         IsRefused("erase", embank_erase(table, k, 20, outcomes)) &
         IsRefused("contains", embank_contains(table, k, 20, outcomes)) &
         IsRefused("prefetch", embank_prefetch(table, k, 20)) &
         IsRefused("get_state", embank_get_state(table, k, 20, rows.data(), 0, outcomes)) &
         IsRefused("set_state", embank_set_state(table, k, 20, rows.data(), 0, outcomes)) &
         IsRefused("get_heat", embank_get_heat(table, k, 20, heat.data(), outcomes)) &
         IsRefused("set_learning_rate", embank_set_learning_rate(table, 0.5f)) &
         IsRefused("get_options", embank_table_get_options(table, &options)) &
         IsRefused("set_options", embank_table_set_options(table, &options, 0)) &
         IsRefused("scan_open", embank_scan_open(table, &scan));
}

int DeviceCallsAreRefused(embank_table* table) {
  const uint64_t key = 1;
  float row[kDim] = {};
  return IsRefused("lookup_device", embank_lookup_device(table, &key, 1, EMBANK_MISSING_ZERO, row,
                                                         0, nullptr, nullptr)) &
         IsRefused("upsert_device",
                   embank_upsert_device(table, &key, 1, row, 0, nullptr, nullptr)) &
         IsRefused("apply_gradients_device",
                   embank_apply_gradients_device(table, &key, 1, row, 0, nullptr, nullptr));
}

// Like IsRefused, and the message has the number of the feature in front of a whole sentence.
int IsRefusedOfFeature(const char* call, embank_status status) {
  const std::string message = embank_last_error();
  if (!IsRefused(call, status)) return false;
  if (message.starts_with("features[0]: the store was opened by process ")) return true;
  std::fprintf(stderr, "%s in a child: %s\n", call, message.c_str());
  return false;
}

int PackedCallsAreRefused(embank_table* table) {
  const uint64_t key = 1;
  float row[kDim] = {};
  embank_feature feature = {};
  feature.struct_size = sizeof feature;
  feature.table = table;
  feature.keys = &key;
  feature.n = 1;
  feature.rows = row;
  return IsRefusedOfFeature("lookup_packed",
                            embank_lookup_packed(&feature, 1, EMBANK_MISSING_ZERO, nullptr)) &
         IsRefusedOfFeature("apply_gradients_packed",
                            embank_apply_gradients_packed(&feature, 1, nullptr)) &
         IsRefusedOfFeature("prefetch_packed", embank_prefetch_packed(&feature, 1));
}

int ScanCallsAreRefused(embank_scan* scan) {
  uint64_t key = 0;
  uint64_t n = 0;
  std::vector<float> row(kDim);
  return IsRefused("scan_next", embank_scan_next(scan, &key, row.data(), 0, 1, &n)) &
         IsRefused("scan_next_full",
                   embank_scan_next_full(scan, &key, row.data(), 0, nullptr, 0, nullptr, 1, &n));
}

// A child's exit status: 0 when everything is refused, and closing ends.
int CallAll(const Inherited& inherited) {
  const bool refused = StoreCallsAreRefused(inherited.store) &
                       TableCallsAreRefused(inherited.table) &
                       DeviceCallsAreRefused(inherited.table) &
                       PackedCallsAreRefused(inherited.table) & ScanCallsAreRefused(inherited.scan);
  embank_scan_close(inherited.scan);
  const bool closed = embank_store_close(inherited.store) == EMBANK_OK;
  return refused && closed ? 0 : 1;
}

// A store whose rows are partly in its log, its oracle, and a trainer's batches.
class ForkCApi : public testing::Test {
 protected:
  void Open(const std::string& path, uint64_t hbm_bytes = 0) {
    path_ = path;
    embank_store* store = nullptr;
    ASSERT_EQ(OpenAt(path_, &store, hbm_bytes), EMBANK_OK) << embank_last_error();
    store_.reset(store);
    embank_table_options options = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_b = 1.0f;
    twin_ = std::make_unique<Twin>(CreateTwin(store, Options(path_).seed, "t", options));
    for (uint64_t first = 0; first < kKeys; first += kBatch) Train(KeyRange(first, kBatch));
  }
  void Train(const std::vector<uint64_t>& keys) { TrainTwin(twin_.get(), keys, kDim, &random_); }
  void TrainSome() {
    for (int i = 0; i < 3; ++i) Train(KeyRange(random_.Below(kKeys), kBatch));
  }
  void ExpectRight() { EXPECT_EQ(DifferenceButHeat(twin_->table, twin_->oracle), ""); }
  void Reopen() {
    store_.reset();
    embank_store* store = nullptr;
    ASSERT_EQ(OpenAt(path_, &store), EMBANK_OK) << embank_last_error();
    store_.reset(store);
    ASSERT_EQ(embank_table_open(store, "t", &twin_->table), EMBANK_OK) << embank_last_error();
  }
  std::string DirectoryOf(const char* name) { return scratch_.path() + "/" + name; }

  const ScratchDirectory scratch_;
  Random random_{7};
  std::string path_;
  StorePtr store_;
  std::unique_ptr<Twin> twin_;
};

TEST_F(ForkCApi, AChildIsRefusedEverythingAndItsParentGoesOnOnDisk) {
  ASSERT_NO_FATAL_FAILURE(Open(DirectoryOf("store")));
  ASSERT_EQ(embank_checkpoint(store_.get(), "a", 1, nullptr), EMBANK_OK) << embank_last_error();
  ScanPtr scan = OpenScan(twin_->table);
  const Inherited inherited = {store_.get(), twin_->table, scan.get()};
  for (int child = 0; child < 3; ++child) {
    EXPECT_EQ(InChild([&] { return CallAll(inherited); }), "exit 0");
    TrainSome();
    EXPECT_EQ(embank_checkpoint(store_.get(), "b", 1, nullptr), EMBANK_OK) << embank_last_error();
  }
  ExpectRight();
  scan.reset();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRight();
}

TEST_F(ForkCApi, AChildIsRefusedEverythingAndItsParentGoesOnInMemory) {
  ASSERT_NO_FATAL_FAILURE(Open(""));
  const ScanPtr scan = OpenScan(twin_->table);
  const Inherited inherited = {store_.get(), twin_->table, scan.get()};
  EXPECT_EQ(InChild([&] { return CallAll(inherited); }), "exit 0");
  TrainSome();
  ExpectRight();
}

TEST_F(ForkCApi, AChildIsRefusedEverythingAndItsParentGoesOnWithDeviceMemory) {
  ASSERT_NO_FATAL_FAILURE(Open("", uint64_t{1} << 20));
  ASSERT_EQ(embank_flush_hot(store_.get()), EMBANK_OK) << embank_last_error();
  const ScanPtr scan = OpenScan(twin_->table);
  const Inherited inherited = {store_.get(), twin_->table, scan.get()};
  EXPECT_EQ(InChild([&] { return CallAll(inherited); }), "exit 0");
  TrainSome();
  EXPECT_EQ(embank_flush_hot(store_.get()), EMBANK_OK) << embank_last_error();
  ExpectRight();
}

// The children come while threads of the parent, its own and the library's, are anywhere.
TEST_F(ForkCApi, ChildrenOfAProcessThatTrainsEndAndChangeNothing) {
  ASSERT_NO_FATAL_FAILURE(Open(DirectoryOf("store")));
  ScanPtr scan = OpenScan(twin_->table);
  const Inherited inherited = {store_.get(), twin_->table, scan.get()};
  std::atomic<bool> over{false};
  std::atomic<int> checkpoints{0};
  std::thread trainer([&] {
    while (!over) TrainSome();
  });
  std::thread checkpointer([&] {
    while (!over) {
      EXPECT_EQ(embank_checkpoint(store_.get(), "c", 1, nullptr), EMBANK_OK) << embank_last_error();
      ++checkpoints;
    }
  });
  for (int child = 0; child < 15 || checkpoints < 3; ++child) {
    EXPECT_EQ(InChild([&] { return CallAll(inherited); }), "exit 0");
  }
  over = true;
  trainer.join();
  checkpointer.join();
  EXPECT_EQ(embank_checkpoint(store_.get(), "d", 1, nullptr), EMBANK_OK) << embank_last_error();
  ExpectRight();
  scan.reset();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRight();
}

TEST_F(ForkCApi, AChildOpensStoresOfItsOwnWhichItsChildIsRefused) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer lets no child start threads";
#endif
  ASSERT_NO_FATAL_FAILURE(Open(DirectoryOf("store")));
  const std::string other = DirectoryOf("other");
  EXPECT_EQ(InChild([&] {
              embank_store* store = nullptr;
              if (OpenAt(path_, &store) != EMBANK_UNAVAILABLE) return 2;  // the parent has it
              if (OpenAt(other, &store) != EMBANK_OK) return 3;
              const Twin twin = CreateTwin(store, 0, "t", TableOptions(kDim, EMBANK_OPT_ADAGRAD));
              const ScanPtr scan = OpenScan(twin.table);
              const Inherited inherited = {store, twin.table, scan.get()};
              if (InChild([&] { return CallAll(inherited); }) != "exit 0") return 4;
              uint64_t needed = 0;
              if (embank_metrics(store_.get(), nullptr, 0, &needed) == EMBANK_OK) return 5;
              if (embank_checkpoint(store, nullptr, 0, nullptr) != EMBANK_OK) return 6;
              return 0;
            }),
            "exit 0");
  TrainSome();
  ExpectRight();
}

// The lock of the directory is the parent's alone, whichever of the two closes first.
TEST_F(ForkCApi, AChildNeitherGivesTheParentsLockUpNorKeepsIt) {
  ASSERT_NO_FATAL_FAILURE(Open(DirectoryOf("store")));
  ASSERT_EQ(embank_checkpoint(store_.get(), "a", 1, nullptr), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(InChild([&] { return embank_store_close(store_.get()); }), "exit 0");
  embank_store* second = nullptr;
  EXPECT_EQ(OpenAt(path_, &second), EMBANK_UNAVAILABLE) << "the child gave the lock up";

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    while (true) pause();
  }
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRight();
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

void CountLine(int32_t, const char*, void* lines) { ++*static_cast<int*>(lines); }

TEST_F(ForkCApi, AChildHasNoLogSinkUntilItSetsOne) {
  int lines = 0;
  embank_set_log_sink(&CountLine, &lines);
  ASSERT_NO_FATAL_FAILURE(Open(DirectoryOf("store")));
  lines = 0;
  EXPECT_EQ(InChild([&] {
              Log(LogLevel::kInfo, "to nobody");
              if (lines != 0) return 1;
              embank_set_log_sink(&CountLine, &lines);
              Log(LogLevel::kInfo, "to the child's sink");
              return lines == 1 ? 0 : 2;
            }),
            "exit 0");
  Log(LogLevel::kInfo, "to the parent's sink");
  EXPECT_EQ(lines, 1);
  embank_set_log_sink(nullptr, nullptr);
}

}  // namespace
}  // namespace embank::test::fork_c_api_test
