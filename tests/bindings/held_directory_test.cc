// Stores whose path comes to mean another directory while they are open, through the C API and on
// the machine's own files: a store works in the directory that it opened, and in no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/files_below.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/small_log.h"

namespace embank::test::held_directory_test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSeed = 3;
constexpr uint32_t kDim = 1024;
constexpr uint64_t kRows = 3000;  // 12 MiB, more than memory holds beside the log

embank_status OpenSmall(const std::string& path, uint32_t flags, StorePtr* store,
                        const std::string& pmem_path = "") {
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = flags;
  options.seed = kSeed;
  options.dram_bytes = uint64_t{16} << 20;
  options.worker_threads = 2;
  if (!pmem_path.empty()) {
    options.pmem_path = pmem_path.c_str();
    options.pmem_bytes = uint64_t{64} << 20;
  }
  StoreEnvironment environment;
  environment.log = SmallLog();
  embank_store* opened = nullptr;
  const Status status = OpenStoreIn(&options, std::move(environment), &opened);
  store->reset(opened);
  return static_cast<embank_status>(status.code());
}

// Names and contents.
std::map<std::string, std::string> FilesOf(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    files[file.path().filename()] = BytesOf(file.path());
  }
  return files;
}

// The files of checkpoints alone, because rows are written to segments at any time.
std::map<std::string, std::string> CheckpointsOf(const std::string& path) {
  std::map<std::string, std::string> files = FilesOf(path);
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("segment-"); });
  return files;
}

// The row of a key after an upsert with a factor.
std::vector<float> RowOf(uint64_t key, float factor) {
  std::vector<float> row(kDim);
  for (uint32_t i = 0; i < kDim; ++i)
    row[i] = factor * static_cast<float>(key + 1) + static_cast<float>(i);
  return row;
}

void Put(embank_store* store, float factor) {
  embank_table* table = nullptr;
  ASSERT_EQ(embank_table_open(store, "t", &table), EMBANK_OK) << embank_last_error();
  for (uint64_t first = 0; first < kRows; first += 500) {
    const std::vector<uint64_t> keys = KeyRange(first, 500);
    std::vector<float> rows;
    for (const uint64_t key : keys) {
      const std::vector<float> row = RowOf(key, factor);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    ASSERT_EQ(embank_upsert(table, keys.data(), 500, rows.data(), 0, nullptr), EMBANK_OK)
        << embank_last_error();
  }
}

// All rows, bit for bit.
void ExpectHas(embank_store* store, float factor) {
  embank_table* table = nullptr;
  ASSERT_EQ(embank_table_open(store, "t", &table), EMBANK_OK) << embank_last_error();
  ASSERT_EQ(RowCount(table), kRows);
  std::vector<float> row(kDim);
  for (uint64_t key = 0; key < kRows; ++key) {
    ASSERT_EQ(embank_lookup(table, &key, 1, EMBANK_MISSING_SKIP, row.data(), 0, nullptr), EMBANK_OK)
        << embank_last_error();
    ASSERT_EQ(row, RowOf(key, factor)) << key;
  }
}

uint64_t RowsInPmem(embank_store* store) {
  embank_table* table = nullptr;
  EXPECT_EQ(embank_table_open(store, "t", &table), EMBANK_OK) << embank_last_error();
  embank_table_info info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(embank_table_get_info(table, &info), EMBANK_OK) << embank_last_error();
  return info.rows_pmem;
}

void ExpectStoreAt(const std::string& path, float factor, const std::string& pmem_path = "") {
  StorePtr store;
  ASSERT_EQ(OpenSmall(path, 0, &store, pmem_path), EMBANK_OK) << embank_last_error();
  ExpectHas(store.get(), factor);
}

// Two closed stores: mine, whose rows have the factor 1, and another's, of 2.
class HeldDirectory : public testing::Test {
 protected:
  HeldDirectory()
      : mine_(scratch_.path() + "/mine"),
        other_(scratch_.path() + "/other"),
        name_(scratch_.path() + "/name"),
        former_(std::filesystem::current_path()) {
    Make(mine_, 1);
    Make(other_, 2);
    others_files_ = FilesOf(other_);
  }
  ~HeldDirectory() override { std::filesystem::current_path(former_); }

  static void Make(const std::string& path, float factor, const std::string& pmem_path = "") {
    StorePtr store;
    ASSERT_EQ(OpenSmall(path, EMBANK_OPEN_CREATE, &store, pmem_path), EMBANK_OK)
        << embank_last_error();
    ASSERT_NE(CreateTable(store.get(), "t", TableOptions(kDim)), nullptr);
    ASSERT_NO_FATAL_FAILURE(Put(store.get(), factor));
    ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }
  // Changes mine twice, and makes both changes durable; then nothing else has been touched.
  void ChangeAndExpectNothingElseChanged(StorePtr store, const std::string& now) {
    for (const float factor : {3.0f, 4.0f}) {
      ASSERT_NO_FATAL_FAILURE(Put(store.get(), factor));
      ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK)
          << embank_last_error();
    }
    ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 4));
    store.reset();
    ASSERT_NO_FATAL_FAILURE(ExpectOtherUnchanged(other_));
    ExpectStoreAt(now, 4);
  }
  void ExpectOtherUnchanged(const std::string& path) {
    EXPECT_TRUE(FilesOf(path) == others_files_) << path;
    ExpectStoreAt(path, 2);
  }

  const ScratchDirectory scratch_;
  const std::string mine_;
  const std::string other_;
  const std::string name_;
  const std::filesystem::path former_;
  std::map<std::string, std::string> others_files_;
};

TEST_F(HeldDirectory, ARelativePathStaysTheDirectoryThatItWas) {
  std::filesystem::create_directory(scratch_.path() + "/elsewhere");
  std::filesystem::rename(other_, scratch_.path() + "/elsewhere/mine");
  std::filesystem::current_path(scratch_.path());
  StorePtr store;
  ASSERT_EQ(OpenSmall("mine", 0, &store), EMBANK_OK) << embank_last_error();
  std::filesystem::current_path(scratch_.path() + "/elsewhere");
  std::filesystem::create_directory_symlink(scratch_.path() + "/elsewhere/mine", other_);
  ChangeAndExpectNothingElseChanged(std::move(store), mine_);
}

TEST_F(HeldDirectory, ARenamedDirectoryIsStillTheStores) {
  StorePtr store;
  ASSERT_EQ(OpenSmall(mine_, 0, &store), EMBANK_OK) << embank_last_error();
  const std::string moved = scratch_.path() + "/moved";
  std::filesystem::rename(mine_, moved);
  std::filesystem::rename(other_, mine_);
  std::filesystem::create_directory_symlink(mine_, other_);
  ChangeAndExpectNothingElseChanged(std::move(store), moved);
}

TEST_F(HeldDirectory, ALinkThatIsSwappedLeadsNobodyIntoAnotherStore) {
  std::filesystem::create_directory_symlink(mine_, name_);
  StorePtr store;
  ASSERT_EQ(OpenSmall(name_, 0, &store), EMBANK_OK) << embank_last_error();
  std::filesystem::remove(name_);
  std::filesystem::create_directory_symlink(other_, name_);
  ChangeAndExpectNothingElseChanged(std::move(store), mine_);
}

TEST_F(HeldDirectory, AReaderOfASwappedLinkReadsAndExportsWhatItOpened) {
  const auto before = FilesOf(mine_);
  std::filesystem::create_directory_symlink(mine_, name_);
  StorePtr store;
  ASSERT_EQ(OpenSmall(name_, EMBANK_OPEN_READ_ONLY, &store), EMBANK_OK) << embank_last_error();
  std::filesystem::remove(name_);
  std::filesystem::create_directory_symlink(other_, name_);
  const std::string copy = scratch_.path() + "/copy";
  ASSERT_EQ(embank_export(store.get(), copy.c_str(), nullptr, nullptr), EMBANK_OK)
      << embank_last_error();
  ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 1));
  store.reset();
  EXPECT_TRUE(FilesOf(mine_) == before);
  ASSERT_NO_FATAL_FAILURE(ExpectOtherUnchanged(other_));
  ExpectStoreAt(copy, 1);
}

// PMem has a directory of its own: another store's comes to have its name, and it gets another one.
TEST_F(HeldDirectory, ARelativePmemPathStaysTheDirectoryThatItWas) {
  if (embank_build_info("pmem") == nullptr) GTEST_SKIP() << "libpmem1 is not installed";
  const std::string elsewhere = scratch_.path() + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  const std::string others_pmem = elsewhere + "/pmem";
  Make(elsewhere + "/other", 2, others_pmem);
  const auto others_files = FilesOf(others_pmem);
  Make(scratch_.path() + "/with pmem", 1, scratch_.path() + "/pmem");
  std::filesystem::current_path(scratch_.path());
  StorePtr store;
  ASSERT_EQ(OpenSmall("with pmem", 0, &store, "pmem"), EMBANK_OK) << embank_last_error();
  std::filesystem::current_path(elsewhere);
  std::filesystem::rename(scratch_.path() + "/pmem", scratch_.path() + "/moved");
  std::filesystem::create_directory_symlink(others_pmem, scratch_.path() + "/pmem");
  for (const float factor : {3.0f, 4.0f}) {
    ASSERT_NO_FATAL_FAILURE(Put(store.get(), factor));
    ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK)
        << embank_last_error();
  }
  ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 4));
  EXPECT_GT(RowsInPmem(store.get()), 0u);
  store.reset();
  EXPECT_TRUE(FilesOf(others_pmem) == others_files);
  ExpectStoreAt(elsewhere + "/other", 2, others_pmem);
  ExpectStoreAt(scratch_.path() + "/with pmem", 4, scratch_.path() + "/moved");
}

// ---- LOCK ----

TEST_F(HeldDirectory, ACheckpointBehindALockThatWasReplacedIsRefusedAndChangesNothing) {
  StorePtr store;
  ASSERT_EQ(OpenSmall(mine_, 0, &store), EMBANK_OK) << embank_last_error();
  ASSERT_NO_FATAL_FAILURE(Put(store.get(), 3));
  const std::string lock = mine_ + "/LOCK";
  const std::string aside = mine_ + "/aside";
  for (const bool is_replaced : {false, true}) {
    std::filesystem::rename(lock, aside);
    if (is_replaced) std::ofstream(lock).flush();
    const auto before = CheckpointsOf(mine_);
    uint64_t sequence = 77;
    EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, &sequence), EMBANK_UNAVAILABLE);
    EXPECT_THAT(embank_last_error(), HasSubstr(lock));
    EXPECT_EQ(sequence, 77u);
    EXPECT_TRUE(CheckpointsOf(mine_) == before);
    const std::string copy = scratch_.path() + (is_replaced ? "/copy 2" : "/copy 1");
    std::filesystem::copy(mine_, copy);
    ExpectStoreAt(copy, 1);
    std::filesystem::rename(aside, lock);
  }
  // The file is back, and the store goes on.
  EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  store.reset();
  ExpectStoreAt(mine_, 3);
}

TEST_F(HeldDirectory, ALockThatIsRemovedLetsNobodyIn) {
  for (const bool is_replaced : {false, true}) {
    StorePtr store;
    ASSERT_EQ(OpenSmall(mine_, 0, &store), EMBANK_OK) << embank_last_error();
    const std::string lock = mine_ + "/LOCK";
    std::filesystem::remove(lock);
    if (is_replaced) std::ofstream(lock).flush();
    StorePtr second;
    for (const uint32_t flags :
         {uint32_t{0}, uint32_t{EMBANK_OPEN_CREATE}, uint32_t{EMBANK_OPEN_READ_ONLY}}) {
      EXPECT_EQ(OpenSmall(mine_, flags, &second), EMBANK_UNAVAILABLE) << flags;
      EXPECT_EQ(std::filesystem::exists(lock), is_replaced);
    }
    uint64_t needed = 0;
    EXPECT_EQ(embank_verify(mine_.c_str(), nullptr, nullptr, nullptr, 0, &needed),
              EMBANK_UNAVAILABLE);
    ExpectHas(store.get(), 1);
  }
  ExpectStoreAt(mine_, 1);
}

TEST_F(HeldDirectory, AStoreWhoseLockIsMissingOpensAndHasOneAgain) {
  std::filesystem::remove(mine_ + "/LOCK");
  StorePtr store;
  ASSERT_EQ(OpenSmall(mine_, 0, &store), EMBANK_OK) << embank_last_error();
  EXPECT_TRUE(std::filesystem::exists(mine_ + "/LOCK"));
  ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 1));
  EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  store.reset();
  ExpectStoreAt(mine_, 1);
}

TEST_F(HeldDirectory, ReadersWithoutALockReadTogetherAndKeepOutWhoChanges) {
  std::filesystem::remove(mine_ + "/LOCK");
  const auto before = FilesOf(mine_);
  StorePtr reader;
  StorePtr second;
  StorePtr writer;
  ASSERT_EQ(OpenSmall(mine_, EMBANK_OPEN_READ_ONLY, &reader), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(OpenSmall(mine_, EMBANK_OPEN_READ_ONLY, &second), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(OpenSmall(mine_, 0, &writer), EMBANK_UNAVAILABLE);
  ASSERT_NO_FATAL_FAILURE(ExpectHas(reader.get(), 1));
  EXPECT_TRUE(FilesOf(mine_) == before) << "nothing is made";
  reader.reset();
  EXPECT_EQ(OpenSmall(mine_, EMBANK_OPEN_CREATE, &writer), EMBANK_UNAVAILABLE);
  second.reset();
  ExpectStoreAt(mine_, 1);
}

}  // namespace
}  // namespace embank::test::held_directory_test
