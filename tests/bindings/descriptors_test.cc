// Stores with more segments than the process may have descriptors, through the C API and on the
// machine's own files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/small_log.h"

namespace embank::test::descriptors_test {
namespace {

using testing::HasSubstr;

constexpr uint32_t kDim = 1024;
constexpr uint64_t kRows = 12'000;    // 62 in each segment of 256 KiB
constexpr size_t kSegmentsMin = 130;  // twice the descriptors
constexpr rlim_t kDescriptors = 64;

// Lowers the limit of the process's descriptors while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &former_), 0);
    const rlimit few = {count, former_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &former_), 0); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit former_;
};

size_t OpenDescriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all))) - 1;
}

StorePtr OpenSmall(const std::string& path, uint32_t flags) {
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = flags;
  options.dram_bytes = uint64_t{16} << 20;
  options.worker_threads = 2;
  StoreEnvironment environment;
  environment.log = SmallLog();
  embank_store* opened = nullptr;
  const Status status = OpenStoreIn(&options, std::move(environment), &opened);
  EXPECT_TRUE(status.ok()) << status;
  return StorePtr(opened);
}

embank_table* TableOf(embank_store* store) {
  embank_table* table = nullptr;
  EXPECT_EQ(embank_table_open(store, "t", &table), EMBANK_OK) << embank_last_error();
  return table;
}

float ValueOf(uint64_t key, uint32_t i, float factor) {
  return factor * static_cast<float>(key + 1) + static_cast<float>(i);
}

void Put(embank_store* store, uint64_t begin, uint64_t end, float factor) {
  for (uint64_t first = begin; first < end; first += 500) {
    const std::vector<uint64_t> keys = KeyRange(first, std::min<uint64_t>(500, end - first));
    std::vector<float> rows;
    for (const uint64_t key : keys) {
      for (uint32_t i = 0; i < kDim; ++i) rows.push_back(ValueOf(key, i, factor));
    }
    ASSERT_EQ(embank_upsert(TableOf(store), keys.data(), keys.size(), rows.data(), 0, nullptr),
              EMBANK_OK)
        << embank_last_error();
  }
}

// Checks that rows are as they were written, bit for bit; returns "" or the first that is not.
std::string WrongOf(embank_table* table, const std::vector<uint64_t>& keys, float factor) {
  std::vector<float> rows(keys.size() * kDim);
  if (embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_ZERO, rows.data(), 0,
                    nullptr) != EMBANK_OK) {
    return embank_last_error();
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    for (uint32_t i = 0; i < kDim; ++i) {
      if (rows[k * kDim + i] != ValueOf(keys[k], i, factor)) return std::to_string(keys[k]);
    }
  }
  return "";
}

void ExpectHas(embank_store* store, uint64_t begin, uint64_t end, float factor) {
  embank_table* const table = TableOf(store);
  ASSERT_EQ(RowCount(table), kRows);
  for (uint64_t first = begin; first < end; first += 500) {
    const auto keys = KeyRange(first, std::min<uint64_t>(500, end - first));
    ASSERT_EQ(WrongOf(table, keys, factor), "");
  }
}

size_t SegmentsIn(const std::string& path) {
  size_t segments = 0;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    segments += file.path().filename().string().starts_with("segment-") ? 1 : 0;
  }
  return segments;
}

class Descriptors : public testing::Test {
 protected:
  Descriptors() : path_(scratch_.path() + "/store") {}

  StorePtr Make() {
    StorePtr store = OpenSmall(path_, EMBANK_OPEN_CREATE);
    EXPECT_NE(CreateTable(store.get(), "t", TableOptions(kDim)), nullptr);
    return store;
  }

  const ScratchDirectory scratch_;
  const std::string path_;
};

TEST_F(Descriptors, AStoreWithMoreSegmentsThanDescriptorsDoesAllThatOthersDo) {
  const size_t before = OpenDescriptors();
  const FewDescriptors few(kDescriptors);
  StorePtr store = Make();
  // All this is before the first checkpoint: segments are synced only for lack of descriptors.
  ASSERT_NO_FATAL_FAILURE(Put(store.get(), 0, kRows, 1));
  EXPECT_GT(SegmentsIn(path_), kSegmentsMin);
  ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 0, kRows, 1));
  ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  ASSERT_NO_FATAL_FAILURE(Put(store.get(), 1000, 2000, 2));
  ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  for (const uint32_t flags : {uint32_t{0}, uint32_t{EMBANK_OPEN_READ_ONLY}}) {
    store.reset();
    EXPECT_EQ(OpenDescriptors(), before);
    store = OpenSmall(path_, flags);
    ASSERT_NE(store, nullptr);
    ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 0, 1000, 1));
    ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 1000, 2000, 2));
    ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 2000, kRows, 1));
  }
  const std::string copy = scratch_.path() + "/copy";
  ASSERT_EQ(embank_export(store.get(), copy.c_str(), nullptr, nullptr), EMBANK_OK)
      << embank_last_error();
  uint64_t needed = 0;
  EXPECT_EQ(embank_verify(copy.c_str(), nullptr, nullptr, nullptr, 0, &needed), EMBANK_OK)
      << embank_last_error();
}

// Half of the limit for segments that are finished and synced, an eighth of that for those that are
// not, and the rest as docs/durability.md adds it up.
TEST_F(Descriptors, AStoreTakesNoMoreThanItsHeaderSays) {
  constexpr size_t kThreads = 3;  // two workers and this one
  const size_t before = OpenDescriptors();
  const FewDescriptors few(200);
  size_t most = 0;
  StorePtr store = Make();
  for (uint64_t first = 0; first < kRows; first += 500) {
    ASSERT_NO_FATAL_FAILURE(Put(store.get(), first, first + 500, 1));
    most = std::max(most, OpenDescriptors() - before);
  }
  ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  ASSERT_NO_FATAL_FAILURE(ExpectHas(store.get(), 0, kRows, 1));
  most = std::max(most, OpenDescriptors() - before);
  EXPECT_GT(SegmentsIn(path_), kSegmentsMin);
  EXPECT_GE(most, 100u) << "it uses what it may";
  EXPECT_LE(most, 100u + 12u + 2u * kThreads + 3u + 8u);
}

TEST_F(Descriptors, ThreadsThatReadShareThem) {
  const FewDescriptors few(kDescriptors);
  const StorePtr store = Make();
  ASSERT_NO_FATAL_FAILURE(Put(store.get(), 0, kRows, 1));
  ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  embank_table* const table = TableOf(store.get());
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int i = 0; i < 30; ++i) {
        std::vector<uint64_t> keys(random.Between(1, 300));
        for (uint64_t& key : keys) key = random.Below(kRows);
        wrong += WrongOf(table, keys, 1).empty() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
}

TEST_F(Descriptors, WhereNoneIsLeftTheMessageNamesTheLimitAndTheNextCheckpointIsMade) {
  const StorePtr store = Make();
  ASSERT_NO_FATAL_FAILURE(Put(store.get(), 0, 100, 1));
  const FewDescriptors few(kDescriptors);
  std::vector<int> taken;
  for (int number = dup(0); number >= 0; number = dup(0)) taken.push_back(number);
  const embank_status failed = embank_checkpoint(store.get(), nullptr, 0, nullptr);
  const std::string why = embank_last_error();
  for (const int number : taken) close(number);
  EXPECT_EQ(failed, EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_THAT(why, HasSubstr("64 descriptors (RLIMIT_NOFILE)"));
  EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
}

}  // namespace
}  // namespace embank::test::descriptors_test
