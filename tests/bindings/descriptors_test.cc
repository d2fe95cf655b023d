// Stores with more segments than the process may have descriptors, through the C API and on the
// machine's own files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
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

// The descriptors of files with segments.
size_t OpenSegments() {
  size_t segments = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::filesystem::path file = std::filesystem::read_symlink(entry, gone);
    segments += file.filename().string().starts_with("segment-") ? 1 : 0;
  }
  return segments;
}

StorePtr OpenSmall(const std::string& path, uint32_t flags, uint64_t hbm_bytes = 0) {
  embank_store_options options = StoreOptions();
  options.hbm_bytes = hbm_bytes;
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

// A store in a process that has no descriptor left: rows of segments that are full, synced and
// closed cannot be read, but those in DRAM, in buffers and in open files can.
class WithoutDescriptors : public Descriptors {
 protected:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::chrono::seconds kPromised{20};  // ten times as long as the product
#else
  static constexpr std::chrono::seconds kPromised{2};
#endif
  static constexpr uint64_t kKeys = 500;
  static constexpr uint64_t kAll = 6000;  // DRAM holds less than two thirds

  void Make(uint64_t hbm_bytes = 0) {
    store_ = OpenSmall(path_, EMBANK_OPEN_CREATE, hbm_bytes);
    table_ = CreateTable(store_.get(), "t", TableOptions(kDim, EMBANK_OPT_ADAGRAD));
    ASSERT_NE(table_, nullptr);
    ASSERT_NO_FATAL_FAILURE(Put(store_.get(), 0, kAll, 1));
    Checkpoint(EMBANK_OK);
    // Files with changes that are not synced cannot be closed.
    ASSERT_NO_FATAL_FAILURE(Put(store_.get(), 5000, kAll, 1));
  }
  // Under the limit of descriptors: chooses keys of rows that cannot be read. A checkpoint that
  // fails closes all files that can be.
  void ChooseKeys() {
    Checkpoint(EMBANK_RESOURCE_EXHAUSTED);
    keys_ = KeyRange(0, kAll);
    outcomes_.resize(kAll);
    ASSERT_GE(Unavailable([&](uint8_t* out) { return Contains(out); }), kKeys);
    std::erase_if(keys_, [&](uint64_t key) { return outcomes_[key] != EMBANK_ROW_UNAVAILABLE; });
    keys_.resize(kKeys);
    outcomes_.resize(kKeys);
  }
  embank_status Contains(uint8_t* outcomes) {
    return embank_contains(table_, keys_.data(), keys_.size(), outcomes);
  }
  void ExpectAllRows() {
    for (uint64_t first = 0; first < kAll; first += kKeys) {
      ASSERT_EQ(WrongOf(table_, KeyRange(first, kKeys), 1), "");
    }
  }
  void Checkpoint(embank_status status) {
    EXPECT_EQ(embank_checkpoint(store_.get(), nullptr, 0, nullptr), status) << embank_last_error();
  }
  // A call of all keys with outcomes, which returns within the time that is promised; returns how
  // many rows it did not read.
  template <typename Call>
  uint64_t Unavailable(Call call) {
    std::ranges::fill(outcomes_, uint8_t{0});
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(call(outcomes_.data()), EMBANK_OK) << embank_last_error();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kPromised);
    EXPECT_EQ(std::ranges::count(outcomes_, EMBANK_ROW_DATA_LOSS), 0);
    return static_cast<uint64_t>(std::ranges::count(outcomes_, EMBANK_ROW_UNAVAILABLE));
  }
  embank_status Lookup(int32_t missing, uint8_t* outcomes) {
    std::ranges::fill(rows_, -1.0f);
    return embank_lookup(table_, keys_.data(), kKeys, missing, rows_.data(), 0, outcomes);
  }

  StorePtr store_;
  embank_table* table_ = nullptr;
  std::vector<uint64_t> keys_;
  std::vector<uint8_t> outcomes_ = std::vector<uint8_t>(kKeys);
  std::vector<float> rows_ = std::vector<float>(kKeys * kDim);
};

constexpr rlim_t kNone = 3;  // the three of every process

TEST_F(WithoutDescriptors, RowsAreUnavailableToAllVerbsAndFoundLater) {
  ASSERT_NO_FATAL_FAILURE(Make());
  std::vector<float> state(kKeys * kDim, 1.0f);
  std::vector<uint32_t> heat(kKeys);
  {
    const FewDescriptors none(kNone);
    ASSERT_NO_FATAL_FAILURE(ChooseKeys());
    for (const int32_t missing : {EMBANK_MISSING_CREATE, EMBANK_MISSING_SKIP}) {
      ASSERT_EQ(Unavailable([&](uint8_t* out) { return Lookup(missing, out); }), kKeys);
      EXPECT_EQ(std::ranges::count(rows_, -1.0f), static_cast<ptrdiff_t>(rows_.size()));
    }
    EXPECT_EQ(Lookup(EMBANK_MISSING_ZERO, nullptr), EMBANK_UNAVAILABLE);
    EXPECT_THAT(embank_last_error(), HasSubstr("500 of 500 rows cannot be read now"));
    EXPECT_THAT(embank_last_error(), HasSubstr("at position 0; they are not damaged"));
    EXPECT_THAT(embank_last_error(), HasSubstr("RLIMIT_NOFILE"));
    const uint64_t* const keys = keys_.data();
    EXPECT_EQ(Unavailable([&](uint8_t* out) { return Contains(out); }), kKeys);
    EXPECT_EQ(Unavailable([&](uint8_t* out) {
                return embank_get_heat(table_, keys, kKeys, heat.data(), out);
              }),
              kKeys);
    EXPECT_EQ(Unavailable([&](uint8_t* out) {
                return embank_get_state(table_, keys, kKeys, state.data(), 0, out);
              }),
              kKeys);
    EXPECT_EQ(Unavailable([&](uint8_t* out) {
                return embank_set_state(table_, keys, kKeys, state.data(), 0, out);
              }),
              kKeys);
    EXPECT_EQ(Unavailable([&](uint8_t* out) {
                return embank_apply_gradients(table_, keys, kKeys, rows_.data(), 0, out);
              }),
              kKeys);
    EXPECT_EQ(Unavailable([&](uint8_t* out) {
                return embank_upsert(table_, keys, kKeys, rows_.data(), 0, out);
              }),
              kKeys);
    EXPECT_EQ(Unavailable([&](uint8_t* out) { return embank_erase(table_, keys, kKeys, out); }),
              kKeys);
    EXPECT_EQ(embank_prefetch(table_, keys, kKeys), EMBANK_OK);
    embank_feature bag = {};
    bag.struct_size = sizeof bag;
    bag.pooling = EMBANK_POOL_SUM;
    bag.table = table_;
    bag.keys = keys;
    bag.n = kKeys;
    bag.rows = rows_.data();
    for (const std::vector<uint64_t>& offsets :
         {std::vector<uint64_t>{0, kKeys}, KeyRange(0, kKeys + 1)}) {
      bag.offsets = offsets.data();
      bag.bags = offsets.size() - 1;
      const auto floats = static_cast<int64_t>(bag.bags * kDim);
      std::fill_n(rows_.begin(), floats, 1.0f);
      EXPECT_EQ(Unavailable([&](uint8_t* out) {
                  return embank_lookup_packed(&bag, 1, EMBANK_MISSING_DEFAULT, out);
                }),
                kKeys);
      EXPECT_EQ(std::count(rows_.begin(), rows_.begin() + floats, 0.0f), floats);
    }
    EXPECT_THAT(Metrics(store_.get()), HasSubstr("op=\"lookup\",outcome=\"unavailable\"} "));
  }
  Checkpoint(EMBANK_OK);
  ExpectAllRows();
}

// A checkpoint syncs all files, also those of segments that are being filled. They stay open all
// the same: a write for which there is no descriptor would stop the log.
TEST_F(WithoutDescriptors, ChangesDoNotStopTheLog) {
  ASSERT_NO_FATAL_FAILURE(Make());
  size_t open = 0;
  // A row may have filled the last segment.
  for (int i = 0; i < 3 && open == 0; ++i) {
    ASSERT_NO_FATAL_FAILURE(Put(store_.get(), 0, 1, 1));
    Checkpoint(EMBANK_OK);
    {
      const FewDescriptors none(kNone);
      Checkpoint(EMBANK_RESOURCE_EXHAUSTED);
    }
    open = OpenSegments();
  }
  EXPECT_GE(open, 1u);
  EXPECT_LE(open, 2u) << "full ones rest";
  {
    const FewDescriptors none(kNone);
    uint64_t refused = 0;
    for (uint64_t first = kAll; first < 2 * kAll; first += kKeys) {
      const std::vector<uint64_t> keys = KeyRange(first, kKeys);
      EXPECT_EQ(embank_upsert(table_, keys.data(), kKeys, rows_.data(), 0, outcomes_.data()),
                EMBANK_OK);
      refused += static_cast<uint64_t>(std::ranges::count(outcomes_, EMBANK_ROW_REFUSED));
    }
    EXPECT_GT(refused, 0u) << "the files that are open have had space for all";
  }
  Checkpoint(EMBANK_OK);
  ExpectAllRows();
}

TEST_F(WithoutDescriptors, ADeviceCallIsAnsweredAlike) {
  ASSERT_NO_FATAL_FAILURE(Make(uint64_t{1} << 20));
  void* rows = nullptr;
  const uint64_t bytes = rows_.size() * sizeof(float);
  ASSERT_EQ(embank_device_allocate(store_.get(), bytes, &rows), EMBANK_OK);
  const std::vector<float> before(rows_.size(), -1.0f);
  ASSERT_EQ(embank_device_copy(store_.get(), rows, before.data(), bytes, nullptr), EMBANK_OK);
  {
    const FewDescriptors none(kNone);
    ASSERT_NO_FATAL_FAILURE(ChooseKeys());
    EXPECT_EQ(Unavailable([&](uint8_t* out) {
                return embank_lookup_device(table_, keys_.data(), kKeys, EMBANK_MISSING_DEFAULT,
                                            rows, 0, out, nullptr);
              }),
              kKeys);
    ASSERT_EQ(embank_device_copy(store_.get(), rows_.data(), rows, bytes, nullptr), EMBANK_OK);
    EXPECT_EQ(rows_, before);
  }
  ExpectAllRows();
}

TEST_F(WithoutDescriptors, AScanGoesOnWithTheRowsThatItCouldNotRead) {
  ASSERT_NO_FATAL_FAILURE(Make());
  embank_scan* scan = nullptr;
  ASSERT_EQ(embank_scan_open(table_, &scan), EMBANK_OK);
  std::vector<uint64_t> keys(kKeys);
  std::vector<uint64_t> seen;
  uint64_t n = 0;
  const auto next = [&] {
    const embank_status status = embank_scan_next(scan, keys.data(), rows_.data(), 0, kKeys, &n);
    if (status != EMBANK_OK) return status;
    for (uint64_t i = 0; i < n; ++i) {
      EXPECT_EQ(rows_[i * kDim + 7], ValueOf(keys[i], 7, 1));
      seen.push_back(keys[i]);
    }
    return status;
  };
  ASSERT_EQ(next(), EMBANK_OK);
  {
    const FewDescriptors none(kNone);
    Checkpoint(EMBANK_RESOURCE_EXHAUSTED);
    embank_status status = EMBANK_OK;
    while (status == EMBANK_OK && n > 0) status = next();
    EXPECT_EQ(status, EMBANK_UNAVAILABLE) << embank_last_error();
    EXPECT_EQ(next(), EMBANK_UNAVAILABLE) << "the same rows";
  }
  do {
    ASSERT_EQ(next(), EMBANK_OK) << embank_last_error();
  } while (n > 0);
  embank_scan_close(scan);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, KeyRange(0, kAll));
}

}  // namespace
}  // namespace embank::test::descriptors_test
