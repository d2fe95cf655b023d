// Stores opened read-only through the C API, on the machine's own files: by other processes, and
// without permission to write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/embank.hpp"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/files_below.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/small_log.h"

namespace embank::test::read_only_c_api_test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSeed = 3;
constexpr uint32_t kDim = 700;
constexpr uint64_t kRows = 500;
constexpr uint64_t kManyRows = 3000;  // 17 MiB with their state, half of which memory holds

embank_status OpenSmall(const std::string& path, uint32_t flags, StorePtr* store,
                        uint64_t hbm_bytes = 0) {
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = flags;
  // A reader takes the store's own.
  options.seed = (flags & EMBANK_OPEN_READ_ONLY) != 0 ? kSeed + 1 : kSeed;
  options.dram_bytes = uint64_t{16} << 20;
  options.worker_threads = 2;
  options.hbm_bytes = hbm_bytes;
  StoreEnvironment environment;
  environment.log = SmallLog();
  embank_store* opened = nullptr;
  const Status status = OpenStoreIn(&options, std::move(environment), &opened);
  store->reset(opened);
  return static_cast<embank_status>(status.code());
}

// A child process that opens a path, says how that went, and has it open until it is killed.
class OtherOpener {
 public:
  OtherOpener(const std::string& path, uint32_t flags) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) {
      StorePtr store;
      const embank_status status = OpenSmall(path, flags, &store);
      if (write(ends[1], &status, sizeof status) != sizeof status) _exit(1);
      while (true) pause();
    }
    EXPECT_EQ(read(ends[0], &status_, sizeof status_), static_cast<ssize_t>(sizeof status_));
    close(ends[0]);
    close(ends[1]);
  }
  ~OtherOpener() {
    kill(child_, SIGKILL);
    EXPECT_EQ(waitpid(child_, nullptr, 0), child_);
  }
  OtherOpener(const OtherOpener&) = delete;
  OtherOpener& operator=(const OtherOpener&) = delete;

  embank_status status() const { return status_; }

 private:
  pid_t child_ = -1;
  embank_status status_ = EMBANK_UNKNOWN;
};

// A closed store, larger than memory, and the contents of its checkpoint.
class ReadOnlyCApi : public testing::Test {
 protected:
  ReadOnlyCApi() : path_(scratch_.path() + "/store"), oracle_(kSeed, "t", OptionsOfTable()) {}

  void Make(uint64_t row_count) {
    StorePtr store;
    EXPECT_EQ(OpenSmall(path_, EMBANK_OPEN_CREATE, &store), EMBANK_OK);
    embank_table* const table = CreateTable(store.get(), "t", OptionsOfTable());
    Random random(kSeed);
    std::vector<float> rows(size_t{500} * kDim);
    for (uint64_t first = 0; first < row_count; first += 500) {
      const std::vector<uint64_t> keys = KeyRange(first, 500);
      for (float& value : rows) value = random.Signed();
      EXPECT_EQ(embank_upsert(table, keys.data(), 500, rows.data(), 0, nullptr), EMBANK_OK);
      oracle_.Upsert(keys.data(), 500, rows.data(), 0, nullptr);
    }
    const std::vector<uint64_t> keys = KeyRange(100, 400);
    EXPECT_EQ(embank_apply_gradients(table, keys.data(), 400, rows.data(), 0, nullptr), EMBANK_OK);
    oracle_.ApplyGradients(keys.data(), 400, rows.data(), 0, nullptr);
    EXPECT_EQ(embank_checkpoint(store.get(), "blob", 4, nullptr), EMBANK_OK);
  }
  static embank_table_options OptionsOfTable() {
    embank_table_options options = TableOptions(kDim, EMBANK_OPT_ADAGRAD);
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_b = 1.0f;
    return options;
  }
  // The store as its oracle has it, rows and states, bit for bit.
  void ExpectIsTheCheckpoint(embank_store* store) {
    embank_table* table = nullptr;
    ASSERT_EQ(embank_table_open(store, "t", &table), EMBANK_OK) << embank_last_error();
    EXPECT_EQ(DifferenceButHeat(table, oracle_), "");
  }

  const ScratchDirectory scratch_;
  const std::string path_;
  oracle::Table oracle_;
};

TEST_F(ReadOnlyCApi, AnswersAsTheOracleAndLeavesAllFilesAsTheyAre) {
  Make(kManyRows);
  const auto before = BytesBelow(path_);
  StorePtr store;
  ASSERT_EQ(OpenSmall(path_, EMBANK_OPEN_READ_ONLY, &store), EMBANK_OK);
  ASSERT_NO_FATAL_FAILURE(ExpectIsTheCheckpoint(store.get()));
  embank_table* table = nullptr;
  ASSERT_EQ(embank_table_open(store.get(), "t", &table), EMBANK_OK);
  Random random(7);
  for (int step = 0; step < 100; ++step) {
    std::vector<uint64_t> keys(random.Between(1, 100));
    for (uint64_t& key : keys) key = random.Below(kManyRows + 500);
    std::vector<float> found(keys.size() * kDim, 9.0f);
    std::vector<float> expected = found;
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint8_t> expected_outcomes(keys.size());
    // To create is to answer the first value.
    const auto missing = static_cast<int32_t>(random.Below(4));
    ASSERT_EQ(
        embank_lookup(table, keys.data(), keys.size(), missing, found.data(), 0, outcomes.data()),
        EMBANK_OK)
        << embank_last_error();
    oracle_.Lookup(keys.data(), keys.size(),
                   missing == EMBANK_MISSING_CREATE ? EMBANK_MISSING_DEFAULT : missing,
                   expected.data(), 0, expected_outcomes.data());
    ASSERT_EQ(outcomes, expected_outcomes);
    ASSERT_EQ(found, expected);
  }
  EXPECT_EQ(RowCount(table), kManyRows);
  EXPECT_EQ(embank_verify(path_.c_str(), nullptr, nullptr, nullptr, 0, nullptr),
            EMBANK_INVALID_ARGUMENT);
  uint64_t needed = 0;
  EXPECT_EQ(embank_verify(path_.c_str(), nullptr, nullptr, nullptr, 0, &needed), EMBANK_OK)
      << embank_last_error();
  char blob[4];
  ASSERT_EQ(embank_checkpoint_blob(store.get(), blob, sizeof blob, &needed), EMBANK_OK);
  EXPECT_EQ(std::string(blob, needed), "blob");
  EXPECT_THAT(Metrics(store.get()), HasSubstr("embank_log_appended_rows_total 0\n"));
  EXPECT_THAT(Metrics(store.get()), HasSubstr("embank_checkpoints_total 0\n"));
  EXPECT_GT(JsonNumber(MemoryReport(store.get()), "live"), 0);
  store.reset();
  EXPECT_TRUE(BytesBelow(path_) == before);
}

TEST_F(ReadOnlyCApi, EveryCallThatChangesIsRefused) {
  Make(kRows);
  const auto before = BytesBelow(path_);
  StorePtr store;
  ASSERT_EQ(OpenSmall(path_, EMBANK_OPEN_READ_ONLY, &store), EMBANK_OK);
  embank_table* table = nullptr;
  ASSERT_EQ(embank_table_open(store.get(), "t", &table), EMBANK_OK);
  const std::vector<uint64_t> keys = KeyRange(kRows - 2, 4);
  const std::vector<float> values(size_t{4} * kDim, 0.5f);
  std::vector<uint8_t> outcomes(4, 0x77);
  uint8_t* const out = outcomes.data();
  const embank_table_options options = TableOptions(4);
  embank_table* made = nullptr;
  uint64_t sequence = 77;
  const std::map<std::string, std::function<embank_status()>> calls = {
      {"upsert", [&] { return embank_upsert(table, keys.data(), 4, values.data(), 0, out); }},
      {"upsert of nothing", [&] { return embank_upsert(table, nullptr, 0, nullptr, 0, nullptr); }},
      {"upsert of whole rows",
       [&] {
         return embank_upsert_full(table, keys.data(), 4, values.data(), 0, nullptr, 0, nullptr,
                                   out);
       }},
      {"gradients",
       [&] { return embank_apply_gradients(table, keys.data(), 4, values.data(), 0, out); }},
      {"erase", [&] { return embank_erase(table, keys.data(), 4, out); }},
      {"state", [&] { return embank_set_state(table, keys.data(), 4, values.data(), 0, out); }},
      {"learning rate", [&] { return embank_set_learning_rate(table, 0.5f); }},
      {"options", [&] { return embank_table_set_options(table, &options, 0); }},
      {"create", [&] { return embank_table_create(store.get(), "new", &options, &made); }},
      {"drop", [&] { return embank_table_drop(store.get(), "t"); }},
      {"checkpoint", [&] { return embank_checkpoint(store.get(), "b", 1, &sequence); }}};
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    EXPECT_EQ(call(), EMBANK_FAILED_PRECONDITION);
    EXPECT_THAT(embank_last_error(), HasSubstr("read-only"));
    EXPECT_EQ(outcomes, std::vector<uint8_t>(4, 0x77));
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(sequence, 77u);
  }
  EXPECT_EQ(embank_upsert(table, nullptr, 4, values.data(), 0, out), EMBANK_INVALID_ARGUMENT);
  ASSERT_NO_FATAL_FAILURE(ExpectIsTheCheckpoint(store.get()));
  store.reset();
  EXPECT_TRUE(BytesBelow(path_) == before);
  // The learning rate has not changed either: the next step is as if there had been no call.
  ASSERT_EQ(OpenSmall(path_, 0, &store), EMBANK_OK);
  ASSERT_EQ(embank_table_open(store.get(), "t", &table), EMBANK_OK);
  ASSERT_EQ(embank_apply_gradients(table, keys.data(), 2, values.data(), 0, nullptr), EMBANK_OK);
  oracle_.ApplyGradients(keys.data(), 2, values.data(), 0, nullptr);
  ExpectIsTheCheckpoint(store.get());
}

TEST_F(ReadOnlyCApi, ProcessesReadTogetherAndChangeAlone) {
  Make(kRows);
  StorePtr store;
  {
    const OtherOpener other(path_, EMBANK_OPEN_READ_ONLY);
    ASSERT_EQ(other.status(), EMBANK_OK);
    const OtherOpener third(path_, EMBANK_OPEN_READ_ONLY);
    EXPECT_EQ(third.status(), EMBANK_OK);
    EXPECT_EQ(OpenSmall(path_, 0, &store), EMBANK_UNAVAILABLE);
    EXPECT_EQ(OpenSmall(path_, EMBANK_OPEN_CREATE, &store), EMBANK_UNAVAILABLE);
    ASSERT_EQ(OpenSmall(path_, EMBANK_OPEN_READ_ONLY, &store), EMBANK_OK);
    ASSERT_NO_FATAL_FAILURE(ExpectIsTheCheckpoint(store.get()));
  }
  // The other readers have ended; one is left.
  StorePtr writer;
  EXPECT_EQ(OpenSmall(path_, 0, &writer), EMBANK_UNAVAILABLE);
  store.reset();
  {
    const OtherOpener other(path_, 0);
    ASSERT_EQ(other.status(), EMBANK_OK);
    EXPECT_EQ(OpenSmall(path_, EMBANK_OPEN_READ_ONLY, &store), EMBANK_UNAVAILABLE);
    uint64_t needed = 0;
    EXPECT_EQ(embank_verify(path_.c_str(), nullptr, nullptr, nullptr, 0, &needed),
              EMBANK_UNAVAILABLE);
  }
  // A killed process no longer has its store open.
  ASSERT_EQ(OpenSmall(path_, EMBANK_OPEN_READ_ONLY, &store), EMBANK_OK);
  ExpectIsTheCheckpoint(store.get());
}

constexpr int kUnreachable = 77;

// Runs in a process without permission to write. Returns 0, or the number of the check that failed.
int ReadWithoutPermission(const std::string& path) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) return kUnreachable;
  if (access((path + "/LOCK").c_str(), R_OK) != 0) return kUnreachable;
  StorePtr store;
  if (OpenSmall(path, 0, &store) != EMBANK_PERMISSION_DENIED) return 1;
  if (OpenSmall(path, EMBANK_OPEN_READ_ONLY, &store) != EMBANK_OK) return 2;
  embank_table* table = nullptr;
  if (embank_table_open(store.get(), "t", &table) != EMBANK_OK) return 3;
  const std::vector<uint64_t> keys = KeyRange(0, kRows);
  std::vector<uint8_t> outcomes(kRows);
  std::vector<float> rows(kRows * kDim);
  if (embank_lookup(table, keys.data(), kRows, EMBANK_MISSING_CREATE, rows.data(), 0,
                    outcomes.data()) != EMBANK_OK) {
    return 4;
  }
  return outcomes == std::vector<uint8_t>(kRows, EMBANK_ROW_FOUND) ? 0 : 5;
}

TEST_F(ReadOnlyCApi, NeedsNoPermissionToWrite) {
  Make(kRows);
  using std::filesystem::perms;
  const auto allow = [&](perms of_directory, perms of_files) {
    std::filesystem::permissions(path_, of_directory);
    for (const auto& file : std::filesystem::directory_iterator(path_)) {
      std::filesystem::permissions(file.path(), of_files);
    }
  };
  constexpr perms kReadAll = perms::owner_read | perms::group_read | perms::others_read;
  constexpr perms kSearchAll = perms::owner_exec | perms::group_exec | perms::others_exec;
  std::filesystem::permissions(scratch_.path(), perms::owner_all | kReadAll | kSearchAll);
  allow(kReadAll | kSearchAll, kReadAll);
  const pid_t child = fork();
  if (child == 0) _exit(ReadWithoutPermission(path_));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  allow(perms::owner_all, perms::owner_read | perms::owner_write);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kUnreachable) GTEST_SKIP() << "nobody else reaches " << path_;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ReadOnlyCApi, ExportsFromAReader) {
  Make(kRows);
  const auto before = BytesBelow(path_);
  StorePtr store;
  ASSERT_EQ(OpenSmall(path_, EMBANK_OPEN_READ_ONLY, &store), EMBANK_OK);
  const std::string copy = scratch_.path() + "/copy";
  ASSERT_EQ(embank_export(store.get(), copy.c_str(), nullptr, nullptr), EMBANK_OK)
      << embank_last_error();
  StorePtr exported;
  ASSERT_EQ(OpenSmall(copy, 0, &exported), EMBANK_OK);
  ASSERT_NO_FATAL_FAILURE(ExpectIsTheCheckpoint(exported.get()));
  EXPECT_TRUE(BytesBelow(path_) == before);
}

TEST_F(ReadOnlyCApi, OpensByTheCppHeader) {
  Make(kRows);
  api::StoreOptions options;
  options.path = path_.c_str();
  options.seed = kSeed;
  options.dram_bytes = uint64_t{32} << 20;
  options.flags = EMBANK_OPEN_READ_ONLY;
  auto store = api::Store::Open(options);
  ASSERT_TRUE(store.ok()) << store.status().message;
  auto beside = api::Store::Open(options);
  EXPECT_TRUE(beside.ok()) << beside.status().message;
  options.seed = kSeed + 1;
  auto with_its_seed = api::Store::Open(options);
  EXPECT_TRUE(with_its_seed.ok()) << with_its_seed.status().message;
  options.flags = 0;
  EXPECT_EQ(api::Store::Open(options).status().code, EMBANK_UNAVAILABLE);
  auto table = store->OpenTable("t");
  ASSERT_TRUE(table.ok()) << table.status().message;
  const std::vector<uint64_t> keys = {1, kRows + 1};
  std::vector<float> rows(size_t{2} * kDim);
  std::vector<uint8_t> outcomes(2);
  EXPECT_TRUE(table->Lookup(keys, rows, EMBANK_MISSING_CREATE, outcomes).ok());
  EXPECT_EQ(outcomes, (std::vector<uint8_t>{EMBANK_ROW_FOUND, EMBANK_ROW_ABSENT}));
  EXPECT_EQ(table->Upsert(keys, rows).code, EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(store->Checkpoint().status().code, EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(*store->CheckpointBlob(), "blob");
  options.flags = EMBANK_OPEN_READ_ONLY | EMBANK_OPEN_PREVIOUS;
  auto previous = api::Store::Open(options);
  ASSERT_TRUE(previous.ok()) << previous.status().message;
  EXPECT_EQ(*previous->TableNames(), "") << "as it was made";
}

embank_table_info InfoOf(embank_table* table) {
  embank_table_info info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(embank_table_get_info(table, &info), EMBANK_OK) << embank_last_error();
  return info;
}

void LookUp(embank_table* table, const std::vector<uint64_t>& keys, int times) {
  std::vector<float> rows(keys.size() * kDim);
  for (int i = 0; i < times; ++i) {
    ASSERT_EQ(embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(), 0,
                            nullptr),
              EMBANK_OK)
        << embank_last_error();
  }
}

// Rows come to device memory and leave it, and nothing is written for them.
TEST_F(ReadOnlyCApi, HottestRowsAreInDeviceMemory) {
  Make(kManyRows);
  const std::map<std::string, std::string> before = BytesBelow(path_);
  {
    StorePtr store;
    StorePtr second;
    ASSERT_EQ(OpenSmall(path_, EMBANK_OPEN_READ_ONLY, &store, uint64_t{1} << 20), EMBANK_OK);
    ASSERT_EQ(OpenSmall(path_, EMBANK_OPEN_READ_ONLY, &second, uint64_t{1} << 20), EMBANK_OK);
    embank_table* table = nullptr;
    ASSERT_EQ(embank_table_open(store.get(), "t", &table), EMBANK_OK);
    int times = 10;
    for (const uint64_t first : {uint64_t{100}, kManyRows - 150, uint64_t{1200}}) {
      const std::vector<uint64_t> keys = KeyRange(first, 150);
      ASSERT_NO_FATAL_FAILURE(LookUp(table, keys, times));
      ASSERT_EQ(embank_flush_hot(store.get()), EMBANK_OK) << embank_last_error();
      EXPECT_GT(InfoOf(table).rows_hbm, 100u);
      const uint64_t answered = InfoOf(table).lookups_hbm;
      ASSERT_NO_FATAL_FAILURE(LookUp(table, keys, 1));
      EXPECT_GT(InfoOf(table).lookups_hbm, answered + 100);
      ASSERT_NO_FATAL_FAILURE(ExpectIsTheCheckpoint(store.get()));
      times *= 4;  // the next rows are hotter than these
    }
    // A call for device memory answers, and one that changes rows there is refused.
    void* memory = nullptr;
    const uint64_t key = 1200;
    ASSERT_EQ(embank_device_allocate(store.get(), kDim * sizeof(float), &memory), EMBANK_OK);
    EXPECT_EQ(
        embank_lookup_device(table, &key, 1, EMBANK_MISSING_CREATE, memory, 0, nullptr, nullptr),
        EMBANK_OK)
        << embank_last_error();
    EXPECT_EQ(embank_upsert_device(table, &key, 1, memory, 0, nullptr, nullptr),
              EMBANK_FAILED_PRECONDITION);
    ASSERT_NO_FATAL_FAILURE(ExpectIsTheCheckpoint(second.get()));
  }
  EXPECT_TRUE(BytesBelow(path_) == before);
}

}  // namespace
}  // namespace embank::test::read_only_c_api_test
