// An open at a path with its first, second, ... allocation failing, until none is left to fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/posix_file_system.h"
#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "bindings/c/last_error.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/c_api.h"
#include "tests/support/failing_memory.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::open_failure_test {
namespace {

constexpr uint64_t kFaultsMax = 3000;  // no open allocates so often

class OpenFailure : public testing::Test {
 protected:
  OpenFailure() {
    memory_.AskFirst(&AllocationFaults::MustFail);
    options_.path = path_.c_str();
    options_.pmem_path = pmem_path_.c_str();
    options_.pmem_bytes = uint64_t{4} << 20;
    options_.flags = EMBANK_OPEN_CREATE;
    options_.dram_bytes = uint64_t{16} << 20;
    options_.worker_threads = 1;
  }

  embank_status Open(embank_store** store) {
    StoreEnvironment environment;
    environment.memory = &memory_;
    environment.pmem_files = pmem_files_.get();
    // Like the C API: no exception leaves.
    return Guard([&] { return OpenStoreIn(&options_, std::move(environment), store); });
  }

  // Removes all, and makes the two directories anew if they are to exist.
  void Prepare(bool exist) {
    for (const std::string& path : {path_, pmem_path_}) {
      std::filesystem::remove_all(path);
      if (exist) std::filesystem::create_directory(path);
    }
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_.path())) {
      names.push_back(entry.path());
    }
    std::ranges::sort(names);
    return names;
  }

  // Opens with each fault in turn. Calls check() after an open that failed.
  template <typename Check>
  void ForEachFault(FaultKind kind, bool exist, Check check) {
    bool is_met = true;
    uint64_t n = 0;
    while (is_met && n < kFaultsMax) {
      SCOPED_TRACE("allocation " + std::to_string(++n));
      Prepare(exist);
      embank_store* store = nullptr;
      embank_status status = EMBANK_OK;
      {
        const AllocationFaults faults(n, kind);
        status = Open(&store);
        is_met = AllocationFaults::Failed() > 0;
      }
      ASSERT_EQ(store != nullptr, status == EMBANK_OK);
      if (status == EMBANK_OK) {
        embank_store_close(store);
      } else {
        EXPECT_EQ(status, EMBANK_RESOURCE_EXHAUSTED) << embank_last_error();
        check();
      }
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(n, 100u);
    EXPECT_LT(n, kFaultsMax);
    std::printf("  %llu faults\n", static_cast<unsigned long long>(n - 1));
  }

  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.path() + "/a store at a path";
  const std::string pmem_path_ = scratch_.path() + "/its directory of PMem";
  const std::unique_ptr<FileSystem> pmem_files_ = MakePosixFileSystem({});
  FailingMemory memory_;
  embank_store_options options_ = StoreOptions();
};

TEST_F(OpenFailure, LeavesNothingAtThePaths) {
  for (const bool exist : {false, true}) {
    Prepare(exist);
    const std::vector<std::string> before = Names();
    ASSERT_NO_FATAL_FAILURE(
        ForEachFault(FaultKind::kOnce, exist, [&] { EXPECT_EQ(Names(), before); }));
  }
}

// Files stay that there is no memory to remove. They are those of a store without rows, or less.
TEST_F(OpenFailure, WithoutAnyMemoryLeavesNoObstacle) {
  ForEachFault(FaultKind::kSince, false, [&] {
    embank_store* store = nullptr;
    EXPECT_EQ(Open(&store), EMBANK_OK) << embank_last_error();
    embank_store_close(store);
  });
}

}  // namespace
}  // namespace embank::test::open_failure_test
