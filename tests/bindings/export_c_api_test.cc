// Exports through the C API, on real file systems: linked within one, copied to another.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::export_c_api_test {
namespace {

constexpr uint64_t kRows = 300;
constexpr uint32_t kDim = 1024;

// Small segments, so that some are full.
StorePtr OpenSmall(const std::string& path, uint32_t flags) {
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = flags;
  options.dram_bytes = uint64_t{32} << 20;
  StoreEnvironment environment;
  RowLogOptions& log = environment.log.emplace();
  log.segment_bytes = uint64_t{256} << 10;
  log.buffer_bytes = uint64_t{64} << 10;
  log.buffers = 3;
  log.read_bytes = uint64_t{256} << 10;
  log.read_lists = 2;
  embank_store* store = nullptr;
  const Status opened = OpenStoreIn(&options, std::move(environment), &store);
  EXPECT_TRUE(opened.ok()) << opened;
  return StorePtr(store);
}

class ExportCApi : public testing::Test {
 protected:
  ExportCApi() : store_(OpenSmall(source_.path() + "/store", EMBANK_OPEN_CREATE)) {
    table_ = CreateTable(store_.get(), "t", TableOptions(kDim));
    Put(1.0f);
    EXPECT_EQ(embank_checkpoint(store_.get(), "blob", 4, nullptr), EMBANK_OK);
    Put(2.0f);
  }

  void Put(float value) {
    const std::vector<uint64_t> keys = KeyRange(1, kRows);
    const std::vector<float> rows(kRows * kDim, value);
    EXPECT_EQ(embank_upsert(table_, keys.data(), kRows, rows.data(), 0, nullptr), EMBANK_OK)
        << embank_last_error();
  }
  static void ExpectExport(const std::string& path) {
    const StorePtr store = OpenSmall(path, 0);
    embank_table* table = nullptr;
    ASSERT_EQ(embank_table_open(store.get(), "t", &table), EMBANK_OK) << embank_last_error();
    const std::vector<uint64_t> keys = KeyRange(1, kRows);
    std::vector<float> rows(kRows * kDim);
    ASSERT_EQ(
        embank_lookup(table, keys.data(), kRows, EMBANK_MISSING_ZERO, rows.data(), 0, nullptr),
        EMBANK_OK);
    EXPECT_EQ(rows, std::vector<float>(kRows * kDim, 1.0f));
    char blob[4];
    uint64_t needed = 0;
    ASSERT_EQ(embank_checkpoint_blob(store.get(), blob, sizeof blob, &needed), EMBANK_OK);
    EXPECT_EQ(std::string(blob, needed), "blob");
  }
  // Files that have another name elsewhere.
  static size_t LinkedFiles(const std::string& path) {
    size_t linked = 0;
    for (const auto& file : std::filesystem::directory_iterator(path)) {
      linked += file.hard_link_count() > 1 ? 1 : 0;
    }
    return linked;
  }

  const ScratchDirectory source_;
  StorePtr store_;
  embank_table* table_ = nullptr;
};

TEST_F(ExportCApi, LinksWithinAFileSystem) {
  const std::string path = source_.path() + "/export";
  ASSERT_EQ(embank_export(store_.get(), path.c_str(), nullptr, nullptr), EMBANK_OK)
      << embank_last_error();
  EXPECT_GT(LinkedFiles(path), 2u);
  Put(3.0f);
  ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
  Put(4.0f);
  ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK);
  ExpectExport(path);
  store_.reset();
  std::filesystem::remove_all(source_.path() + "/store");
  ExpectExport(path);
}

TEST_F(ExportCApi, CopiesToAnotherFileSystem) {
  const std::string path = "/dev/shm/embank_export_test_" + std::to_string(getpid());
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm to write to";
  const embank_status exported = embank_export(store_.get(), path.c_str(), nullptr, nullptr);
  EXPECT_EQ(exported, EMBANK_OK) << embank_last_error();
  const bool is_linked = exported == EMBANK_OK && LinkedFiles(path) > 0;
  if (exported == EMBANK_OK) ExpectExport(path);
  std::filesystem::remove_all(path);
  if (is_linked) GTEST_SKIP() << "one file system";
}

struct Told {
  uint64_t calls = 0;
  uint64_t calls_max = UINT64_MAX;
  uint64_t done = 0;
  uint64_t total = 0;
};

int32_t Tell(uint64_t done, uint64_t total, void* user) {
  auto* const told = static_cast<Told*>(user);
  ++told->calls;
  told->done = done;
  told->total = total;
  return told->calls == told->calls_max ? -1 : 0;
}

TEST_F(ExportCApi, TellsHowFarItIsAndCanBeCancelled) {
  const std::string path = source_.path() + "/export";
  Told cancelled;
  cancelled.calls_max = 3;
  EXPECT_EQ(embank_export(store_.get(), path.c_str(), Tell, &cancelled), EMBANK_CANCELLED);
  EXPECT_EQ(cancelled.calls, 3u);
  EXPECT_NE(std::string(embank_last_error()).find("progress"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path));
  Told told;
  ASSERT_EQ(embank_export(store_.get(), path.c_str(), Tell, &told), EMBANK_OK);
  EXPECT_GT(told.calls, 3u);
  EXPECT_GT(told.total, kRows * kDim * sizeof(float));
  EXPECT_EQ(told.done, told.total);
  ExpectExport(path);
  EXPECT_EQ(embank_export(store_.get(), path.c_str(), Tell, &told), EMBANK_ALREADY_EXISTS);
  EXPECT_NE(std::string(embank_last_error()).find(path), std::string::npos);
}

TEST_F(ExportCApi, NeedsACheckpoint) {
  const StorePtr empty = OpenSmall(source_.path() + "/empty", EMBANK_OPEN_CREATE);
  const std::string path = source_.path() + "/export";
  EXPECT_EQ(embank_export(empty.get(), path.c_str(), nullptr, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace embank::test::export_c_api_test
