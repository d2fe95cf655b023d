// The PMem tier through the C API, with libpmem and the files of the system.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/child_process.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::pmem_c_api_test {
namespace {

using testing::ElementsAre;
using testing::MatchesRegex;

constexpr uint32_t kDim = 512;
constexpr uint64_t kRows = 8000;  // 16 MiB; memory holds about a third of them

class PmemStore {
 public:
  explicit PmemStore(const std::string& directory) : PmemStore(directory, directory + "/pmem") {}
  PmemStore(const std::string& directory, const std::string& pmem_path)
      : path_(directory + "/store"), pmem_path_(pmem_path) {}

  const std::string& pmem_path() const { return pmem_path_; }

  embank_status Open(uint32_t flags = EMBANK_OPEN_CREATE, bool with_pmem = true,
                     uint64_t hbm_bytes = 0) {
    embank_store_options options = StoreOptions();
    options.flags = flags;
    options.path = path_.c_str();
    options.pmem_path = with_pmem ? pmem_path_.c_str() : nullptr;
    options.pmem_bytes = with_pmem ? uint64_t{64} << 20 : 0;
    options.dram_bytes = uint64_t{16} << 20;
    options.hbm_bytes = hbm_bytes;
    embank_store* store = nullptr;
    const embank_status status = embank_store_open(&options, &store);
    store_.reset(store);
    return status;
  }
  void Close() { store_.reset(); }
  void Fill() {
    table_ = CreateTable(store_.get(), "t", TableOptions(kDim, EMBANK_OPT_NONE));
    ForEachBatch([&](const std::vector<uint64_t>& keys, std::vector<float>* rows) {
      for (size_t i = 0; i < rows->size(); ++i) (*rows)[i] = ValueOf(keys[i / kDim]);
      return embank_upsert(table_, keys.data(), keys.size(), rows->data(), 0, nullptr);
    });
    Checkpoint();
  }
  void EraseAll() {
    const std::vector<uint64_t> keys = KeyRange(0, kRows);
    ASSERT_EQ(embank_erase(table_, keys.data(), kRows, nullptr), EMBANK_OK) << embank_last_error();
    Checkpoint();
  }
  void Checkpoint() {
    ASSERT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), EMBANK_OK)
        << embank_last_error();
  }
  std::string MemoryReport() { return test::MemoryReport(store_.get()); }
  std::string Metrics() { return test::Metrics(store_.get()); }
  // All rows are there, and some of them in PMem.
  void ExpectRows(bool in_pmem = true) {
    ASSERT_EQ(embank_table_open(store_.get(), "t", &table_), EMBANK_OK);
    ForEachBatch([&](const std::vector<uint64_t>& keys, std::vector<float>* rows) {
      const embank_status status = embank_lookup(table_, keys.data(), keys.size(),
                                                 EMBANK_MISSING_SKIP, rows->data(), 0, nullptr);
      for (size_t i = 0; i < rows->size(); ++i) {
        if ((*rows)[i] != ValueOf(keys[i / kDim])) return embank_status{EMBANK_INTERNAL};
      }
      return status;
    });
    embank_table_info info = {};
    info.struct_size = sizeof info;
    ASSERT_EQ(embank_table_get_info(table_, &info), EMBANK_OK);
    EXPECT_EQ(info.rows_pmem > 0, in_pmem);
    EXPECT_EQ(info.rows_dram + info.rows_pmem + info.rows_ssd, kRows);
  }

 private:
  static float ValueOf(uint64_t key) { return static_cast<float>(key) + 0.5f; }

  template <typename Do>
  void ForEachBatch(const Do& action) {
    constexpr uint64_t kBatch = 500;
    std::vector<uint64_t> keys(kBatch);
    std::vector<float> rows(kBatch * kDim);
    for (uint64_t first = 0; first < kRows; first += kBatch) {
      for (uint64_t i = 0; i < kBatch; ++i) keys[i] = first + i;
      ASSERT_EQ(action(keys, &rows), EMBANK_OK) << first << ": " << embank_last_error();
    }
  }

  const std::string path_;
  const std::string pmem_path_;
  StorePtr store_;
  embank_table* table_ = nullptr;
};

bool IsLibpmemLoaded() {
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  return text.find("libpmem") != std::string::npos;
}

// The first of the tests: the library stays loaded.
TEST(PmemCApi, AReaderNeedsNoLibpmem) {
  const ScratchDirectory directory;
  const std::string made = InChild([&] {
    PmemStore store(directory.path());
    if (store.Open() != EMBANK_OK) return 2;
    store.Fill();
    return testing::Test::HasFailure() || !IsLibpmemLoaded() ? 1 : 0;
  });
  ASSERT_EQ(made, "exit 0");
  ASSERT_FALSE(IsLibpmemLoaded());
  const std::string read = InChild([&] {
    PmemStore store(directory.path());
    if (store.Open(EMBANK_OPEN_READ_ONLY) != EMBANK_OK) return 2;
    store.ExpectRows();
    if (testing::Test::HasFailure()) return 1;
    return IsLibpmemLoaded() ? 3 : 0;
  });
  EXPECT_EQ(read, "exit 0");
}

// Opens a store in a process whose loader has `library` for libpmem. Describes the end: "exit 0"
// where the status is the given one, and the message has the text.
std::string OpenWithLibrary(const char* library, embank_status expected, const char* text) {
  const ScratchDirectory directory;
  return InChild([&] {
    if (dlopen(library, RTLD_NOW | RTLD_LOCAL) == nullptr) return 2;
    PmemStore store(directory.path());
    const embank_status status = store.Open();
    EXPECT_EQ(status, expected) << embank_last_error();
    EXPECT_NE(std::string(embank_last_error()).find(text), std::string::npos)
        << embank_last_error();
    return testing::Test::HasFailure() ? 1 : 0;
  });
}

TEST(PmemCApi, ALibpmemWithoutItsFunctionsIsRefusedByTheNameOfThePackage) {
  EXPECT_EQ(
      OpenWithLibrary(EMBANK_LIBPMEM_WITHOUT_FUNCTIONS, EMBANK_UNAVAILABLE, "package libpmem1"),
      "exit 0");
}

TEST(PmemCApi, AFileSystemThatMapsNoFilesIsUnimplemented) {
  EXPECT_EQ(OpenWithLibrary(EMBANK_LIBPMEM_WITHOUT_MAPS, EMBANK_UNIMPLEMENTED,
                            "; pmem_path must be on a file system whose files can be mapped"),
            "exit 0");
}

// Opens a new store with a pmem_path, and expects INVALID_ARGUMENT and a message about it.
void ExpectInvalid(const std::string& pmem_path, const std::string& text) {
  const ScratchDirectory directory;
  PmemStore store(directory.path(), pmem_path);
  EXPECT_EQ(store.Open(), EMBANK_INVALID_ARGUMENT);
  const std::string message = embank_last_error();
  EXPECT_EQ(message.find("pmem_path: "), 0u) << message;
  EXPECT_NE(message.find(text), std::string::npos) << message;
}

TEST(PmemCApi, APmemPathThatIsNoDirectoryForFilesIsInvalid) {
  const ScratchDirectory directory;
  const std::string file = directory.path() + "/file";
  std::ofstream(file) << "x";
  ExpectInvalid(file, file + " is not a directory");
  ExpectInvalid(file + "/pmem", file + "/pmem");
  ExpectInvalid(directory.path() + "/none/pmem", directory.path() + "/none/pmem");
  ExpectInvalid("/proc/1", "/proc/1/LOCK");
}

// Everything below a directory.
std::vector<std::string> AllBelow(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    names.push_back(entry.path());
  }
  std::ranges::sort(names);
  return names;
}

TEST(PmemCApi, ARefusedOpenLeavesNothing) {
  const ScratchDirectory directory;
  const std::string file = directory.path() + "/file";
  std::ofstream(file) << "x";
  std::filesystem::create_directory(directory.path() + "/one");
  PmemStore other(directory.path() + "/one");
  ASSERT_EQ(other.Open(), EMBANK_OK) << embank_last_error();
  const std::vector<std::string> before = AllBelow(directory.path());
  const std::string vacant = directory.path() + "/vacant";
  for (const std::string& pmem_path :
       {file, std::string(directory.path() + "/" + std::string(300, 'p')), vacant + "/pmem",
        other.pmem_path(), std::string(directory.path() + "/one/store")}) {
    PmemStore store(directory.path(), pmem_path);
    EXPECT_EQ(store.Open(), EMBANK_INVALID_ARGUMENT) << pmem_path << embank_last_error();
    EXPECT_EQ(std::string(embank_last_error()).find("pmem_path: "), 0u) << embank_last_error();
    EXPECT_EQ(AllBelow(directory.path()), before) << pmem_path;
  }
  // Nor does one that is refused when its PMem is made already.
  PmemStore store(directory.path(), vacant);
  EXPECT_EQ(store.Open(EMBANK_OPEN_CREATE, true, uint64_t{1} << 60), EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_EQ(AllBelow(directory.path()), before) << embank_last_error();
}

// The first segment in a directory of PMem.
std::filesystem::path SegmentIn(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().find("segment-") == 0) return entry.path();
  }
  ADD_FAILURE() << "no segment in " << directory;
  return {};
}

TEST(PmemCApi, ASegmentThatBecameALinkOrADirectoryIsDataLoss) {
  const ScratchDirectory directory;
  PmemStore store(directory.path());
  ASSERT_EQ(store.Open(), EMBANK_OK) << embank_last_error();
  store.Fill();
  store.Close();
  const std::filesystem::path segment = SegmentIn(store.pmem_path());
  const std::string aside = directory.path() + "/aside";
  std::filesystem::rename(segment, aside);
  const std::vector<std::function<void()>> replacements = {
      [&] { std::filesystem::create_directory(segment); },
      [&] { std::filesystem::create_symlink(aside, segment); },
      [&] { std::filesystem::create_symlink(segment, segment); },
      [&] { std::filesystem::create_symlink(directory.path() + "/none", segment); }};
  for (const auto& replace : replacements) {
    replace();
    for (const uint32_t flags : {uint32_t{0}, uint32_t{EMBANK_OPEN_READ_ONLY}}) {
      EXPECT_EQ(store.Open(flags), EMBANK_DATA_LOSS) << embank_last_error();
      EXPECT_NE(std::string(embank_last_error()).find(segment), std::string::npos)
          << embank_last_error();
    }
    std::filesystem::remove(segment);
  }
  std::filesystem::rename(aside, segment);
  ASSERT_EQ(store.Open(0), EMBANK_OK) << embank_last_error();
  store.ExpectRows();
}

TEST(PmemCApi, ALockThatBecameADirectoryIsNamedByTheOpeningAndByVerify) {
  const ScratchDirectory directory;
  PmemStore store(directory.path());
  ASSERT_EQ(store.Open(), EMBANK_OK) << embank_last_error();
  store.Fill();
  store.Close();
  const std::string lock = store.pmem_path() + "/LOCK";
  std::filesystem::remove(lock);
  std::filesystem::create_directory(lock);
  for (const uint32_t flags : {uint32_t{0}, uint32_t{EMBANK_OPEN_READ_ONLY}}) {
    EXPECT_EQ(store.Open(flags), EMBANK_FAILED_PRECONDITION);
    EXPECT_NE(std::string(embank_last_error()).find(lock + " is a directory"), std::string::npos)
        << embank_last_error();
  }
  std::string report(size_t{1} << 16, ' ');
  uint64_t needed = 0;
  EXPECT_EQ(embank_verify((directory.path() + "/store").c_str(), nullptr, nullptr, report.data(),
                          report.size(), &needed),
            EMBANK_DATA_LOSS);
  EXPECT_NE(report.find("\"opens\":false"), std::string::npos) << report;
  std::filesystem::remove(lock);
  ASSERT_EQ(store.Open(0), EMBANK_OK) << embank_last_error();
  store.ExpectRows();
}

TEST(PmemCApi, ADirectoryThatIsRemovedUnderAnOpenStoreCostsNoRow) {
  const ScratchDirectory directory;
  PmemStore store(directory.path());
  ASSERT_EQ(store.Open(), EMBANK_OK) << embank_last_error();
  store.Fill();
  store.ExpectRows();
  std::filesystem::remove_all(store.pmem_path());
  store.ExpectRows();
  std::vector<std::string> errors;
  const auto keep = [](int32_t level, const char* line, void* user) {
    if (level == EMBANK_LOG_ERROR) static_cast<std::vector<std::string>*>(user)->push_back(line);
  };
  embank_set_log_sink(keep, &errors);
  store.Checkpoint();
  store.Checkpoint();
  embank_set_log_sink(nullptr, nullptr);
  EXPECT_THAT(errors, ElementsAre(MatchesRegex("PMem is lost: .*/pmem.* removed.*"),
                                  MatchesRegex("the log takes no more rows.*")));
  EXPECT_NE(store.Metrics().find("embank_pmem_is_lost 1\n"), std::string::npos);
  EXPECT_NE(store.Metrics().find("embank_rows_lost 0\n"), std::string::npos);
  store.ExpectRows(/*in_pmem=*/false);
  store.Close();
  ASSERT_EQ(store.Open(), EMBANK_OK) << embank_last_error();
  store.ExpectRows(/*in_pmem=*/false);
}

TEST(PmemCApi, TheMemoryReportSaysHowWritesBecomeDurable) {
  const ScratchDirectory directory;
  PmemStore store(directory.path());
  ASSERT_EQ(store.Open(), EMBANK_OK) << embank_last_error();
  const std::string report = store.MemoryReport();
  EXPECT_NE(report.find("\"pmem_kind\": \"mapped files, msync\""), std::string::npos) << report;
}

TEST(PmemCApi, RowsAreInPmemAndStayThereWhenTheStoreIsReopened) {
  ASSERT_NE(embank_build_info("pmem"), nullptr) << "libpmem1 is not installed";
  const ScratchDirectory directory;
  PmemStore store(directory.path());
  ASSERT_EQ(store.Open(), EMBANK_OK) << embank_last_error();
  store.Fill();
  store.ExpectRows();
  store.Close();
  ASSERT_EQ(store.Open(), EMBANK_OK) << embank_last_error();
  store.ExpectRows();
}

// The checkpoint before has several segments in PMem.
TEST(PmemCApi, OneLineSaysThatTheOtherCheckpointHasRowsInPmem) {
  ASSERT_NE(embank_build_info("pmem"), nullptr) << "libpmem1 is not installed";
  const ScratchDirectory directory;
  PmemStore store(directory.path());
  ASSERT_EQ(store.Open(), EMBANK_OK) << embank_last_error();
  store.Fill();
  store.EraseAll();
  store.Close();
  std::vector<std::string> warnings;
  const auto keep = [](int32_t level, const char* line, void* user) {
    if (level != EMBANK_LOG_WARNING) return;
    static_cast<std::vector<std::string>*>(user)->emplace_back(line);
  };
  embank_set_log_sink(keep, &warnings);
  const embank_status opened = store.Open(0, false);
  embank_set_log_sink(nullptr, nullptr);
  ASSERT_EQ(opened, EMBANK_OK) << embank_last_error();
  EXPECT_THAT(warnings, ElementsAre(MatchesRegex(".*checkpoint 1, which is not opened, has "
                                                 "[0-9]+ segments that cannot be used: .*PMem.*")));
}

// Fills the file system until it takes no byte more.
void FillUp(const std::string& file) {
  std::ofstream junk(file, std::ios::binary);
  const std::string some(4096, 'x');
  while (junk.write(some.data(), static_cast<std::streamsize>(some.size())).flush()) {
  }
}

TEST(PmemCApi, AStoreWhosePmemHasNoSpaceLeftOpensWithItsRows) {
  const ScratchDirectory directory;
  const std::string end = InChild([&] {
    constexpr int kMayNot = 77;
    PmemStore store(directory.path());
    std::filesystem::create_directory(store.pmem_path());
    if (unshare(CLONE_NEWNS) != 0) return kMayNot;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kMayNot;
    if (mount("tmpfs", store.pmem_path().c_str(), "tmpfs", 0, "size=8m") != 0) return kMayNot;
    if (store.Open() != EMBANK_OK) return 2;
    store.Fill();
    store.Close();
    FillUp(store.pmem_path() + "/junk");
    if (store.Open() != EMBANK_OK) return 3;
    store.ExpectRows();
    store.Close();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (end == "exit 77") GTEST_SKIP() << "no right to mount a file system";
  EXPECT_EQ(end, "exit 0");
}

}  // namespace
}  // namespace embank::test::pmem_c_api_test
