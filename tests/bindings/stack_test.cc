// How much of a thread's stack the calls take, with rows as large as they may be: no more than
// 32 KiB, on the caller's thread and on the library's.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/child_process.h"
#include "tests/support/oracle.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/small_log.h"

namespace embank::test::stack_test {
namespace {

constexpr size_t kCallStackBytesMax = size_t{32} << 10;
constexpr uint32_t kDim = 4096;
constexpr uint64_t kRows = 500;     // of 49 KiB at most: with a path half of them leave memory
constexpr uint64_t kRepeats = 100;  // of one key in a batch of gradients: several runs
constexpr uint64_t kHbmBytes = uint64_t{4} << 20;

// Runs `body` on a thread with a stack of its own, and returns the used depth, with the part that
// every thread needs.
size_t StackBytesOf(const std::function<void()>& body) {
  constexpr size_t kStackBytes = size_t{512} << 10;
  constexpr uint8_t kUntouched = 0xA5;
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  EXPECT_NE(stack, MAP_FAILED);
  std::memset(stack, kUntouched, kStackBytes);
  pthread_attr_t attributes;
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstack(&attributes, stack, kStackBytes), 0);
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  pthread_t thread;
  void* const argument = const_cast<std::function<void()>*>(&body);
  EXPECT_EQ(pthread_create(&thread, &attributes, run, argument), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(pthread_attr_destroy(&attributes), 0);
  const auto* const begin = static_cast<const uint8_t*>(stack);
  const auto* const deepest =
      std::find_if(begin, begin + kStackBytes, [](uint8_t byte) { return byte != kUntouched; });
  const auto used = static_cast<size_t>(begin + kStackBytes - deepest);
  EXPECT_EQ(munmap(stack, kStackBytes), 0);
  return used;
}

embank_status OpenSmall(const std::string& path, uint64_t hbm_bytes, uint32_t workers,
                        embank_store** store) {
  embank_store_options options = StoreOptions();
  options.dram_bytes = (path.empty() ? uint64_t{64} : uint64_t{16}) << 20;
  options.hbm_bytes = hbm_bytes;
  options.worker_threads = workers;
  StoreEnvironment environment;
  if (!path.empty()) {
    options.path = path.c_str();
    options.flags = EMBANK_OPEN_CREATE;
    environment.log = SmallLog();
  }
  const Status status = OpenStoreIn(&options, std::move(environment), store);
  return static_cast<embank_status>(status.code());
}

embank_table_options Shape(int32_t optimizer, int32_t value_type) {
  embank_table_options options = TableOptions(kDim, optimizer);
  options.value_type = value_type;
  options.initializer = EMBANK_INIT_NORMAL;
  options.init_b = 0.5f;
  options.learning_rate = 0.05f;
  options.weight_decay = 0.01f;
  options.initial_accumulator = 0.1f;
  return options;
}

// A call, and how its oracle follows.
struct Step {
  std::string name;
  std::function<embank_status()> call;
  std::function<void()> follow = [] {};
};

// All calls on one table with the largest rows, and the oracle beside it.
class Calls {
 public:
  Calls(embank_store* store, const embank_table_options& options, std::string directory)
      : store_(store),
        twin_(CreateTwin(store, StoreOptions().seed, "t", options)),
        has_state_(twin_.oracle.state_floats() > 0),
        directory_(std::move(directory)),
        keys_(KeyRange(0, kRows)),
        repeated_(kRepeats, kRows / 2),
        rows_(kRows * kDim),
        gradients_(kRows * kDim),
        position_gradients_(kPackedKeys * kDim),
        state_(kRows * (twin_.oracle.state_floats() + 1)),
        heat_(kRows) {
    Random random(3);
    for (float& value : gradients_) value = random.Signed();
    for (uint64_t i = 0; i <= kBags; ++i) offsets_[i] = i * kBagKeys;
  }

  std::vector<Step> Steps() {
    std::vector<Step> steps;
    AddLookups(&steps);
    AddPackedCalls(&steps);
    AddChanges(&steps);
    AddStates(&steps);
    AddOthers(&steps);
    return steps;
  }
  // The calls of a store with device memory.
  std::vector<Step> DeviceSteps() {
    std::vector<Step> steps;
    AddLookups(&steps);
    steps.push_back({"device_allocate", [this] {
                       const uint64_t bytes = gradients_.size() * sizeof(float);
                       void* memory = nullptr;
                       const embank_status status = embank_device_allocate(store_, bytes, &memory);
                       on_device_ = static_cast<float*>(memory);
                       return status;
                     }});
    steps.push_back({"flush_hot", [this] { return embank_flush_hot(store_); }});
    AddDeviceCalls(&steps);
    steps.push_back({"device_free", [this] { return embank_device_free(store_, on_device_); }});
    return steps;
  }
  std::string Difference() { return DifferenceButHeat(twin_.table, twin_.oracle); }

 private:
  void AddLookups(std::vector<Step>* steps) {
    for (const int32_t rule : {EMBANK_MISSING_CREATE, EMBANK_MISSING_DEFAULT, EMBANK_MISSING_ZERO,
                               EMBANK_MISSING_SKIP}) {
      steps->push_back({"lookup " + std::to_string(rule),
                        [this, rule] {
                          return embank_lookup(twin_.table, keys_.data(), kRows, rule, rows_.data(),
                                               0, nullptr);
                        },
                        [this, rule] {
                          twin_.oracle.Lookup(keys_.data(), kRows, rule, rows_.data(), 0, nullptr);
                        }});
    }
  }
  bool has_optimizer() const { return twin_.oracle.options().optimizer != EMBANK_OPT_NONE; }

  // The first keys, in bags or one by one.
  embank_feature FeatureOf(int32_t pooling, void* rows) {
    embank_feature feature = {};
    feature.struct_size = sizeof feature;
    feature.pooling = pooling;
    feature.table = twin_.table;
    feature.keys = keys_.data();
    feature.n = kPackedKeys;
    feature.rows = rows;
    if (pooling == EMBANK_POOL_NONE) return feature;
    feature.offsets = offsets_;
    feature.bags = kBags;
    return feature;
  }
  // The gradient of each position, for the oracle.
  void SpreadGradients(int32_t pooling) {
    const float divisors[] = {1, 1, kBagKeys, std::sqrt(static_cast<float>(kBagKeys))};
    const uint64_t keys_of_a_row = pooling == EMBANK_POOL_NONE ? 1 : kBagKeys;
    for (uint64_t i = 0; i < kPackedKeys * kDim; ++i) {
      const uint64_t row = i / kDim / keys_of_a_row;
      position_gradients_[i] = gradients_[row * kDim + i % kDim] / divisors[pooling];
    }
  }
  void AddPackedCalls(std::vector<Step>* steps) {
    for (const int32_t pooling :
         {EMBANK_POOL_NONE, EMBANK_POOL_SUM, EMBANK_POOL_MEAN, EMBANK_POOL_SQRT_N}) {
      steps->push_back({"lookup_packed, pooling " + std::to_string(pooling), [this, pooling] {
                          const embank_feature feature = FeatureOf(pooling, rows_.data());
                          return embank_lookup_packed(&feature, 1, EMBANK_MISSING_ZERO, nullptr);
                        }});
      if (!has_optimizer()) continue;
      steps->push_back({"apply_gradients_packed, pooling " + std::to_string(pooling),
                        [this, pooling] {
                          const embank_feature feature = FeatureOf(pooling, gradients_.data());
                          return embank_apply_gradients_packed(&feature, 1, nullptr);
                        },
                        [this, pooling] {
                          SpreadGradients(pooling);
                          twin_.oracle.ApplyGradients(keys_.data(), kPackedKeys,
                                                      position_gradients_.data(), 0, nullptr);
                        }});
    }
    steps->push_back({"prefetch_packed", [this] {
                        const embank_feature feature = FeatureOf(EMBANK_POOL_NONE, nullptr);
                        return embank_prefetch_packed(&feature, 1);
                      }});
  }
  void AddDeviceCalls(std::vector<Step>* steps) {
    steps->push_back({"device_copy", [this] {
                        return embank_device_copy(store_, on_device_, gradients_.data(),
                                                  gradients_.size() * sizeof(float), nullptr);
                      }});
    if (has_optimizer()) {
      steps->push_back({"apply_gradients_device",
                        [this] {
                          return embank_apply_gradients_device(twin_.table, keys_.data(), kRows,
                                                               on_device_, 0, nullptr, nullptr);
                        },
                        [this] {
                          twin_.oracle.ApplyGradients(keys_.data(), kRows, gradients_.data(), 0,
                                                      nullptr);
                        }});
    }
    steps->push_back(
        {"upsert_device",
         [this] {
           return embank_upsert_device(twin_.table, keys_.data(), kRows / 2, on_device_, 0, nullptr,
                                       nullptr);
         },
         [this] { twin_.oracle.Upsert(keys_.data(), kRows / 2, gradients_.data(), 0, nullptr); }});
    steps->push_back({"lookup_device", [this] {
                        return embank_lookup_device(twin_.table, keys_.data(), kRows,
                                                    EMBANK_MISSING_ZERO, on_device_, 0, nullptr,
                                                    nullptr);
                      }});
  }
  void AddChanges(std::vector<Step>* steps) {
    const auto add_gradients = [this, steps](const std::vector<uint64_t>* keys) {
      steps->push_back({"apply_gradients of " + std::to_string(keys->size()),
                        [this, keys] {
                          return embank_apply_gradients(twin_.table, keys->data(), keys->size(),
                                                        gradients_.data(), 0, nullptr);
                        },
                        [this, keys] {
                          twin_.oracle.ApplyGradients(keys->data(), keys->size(), gradients_.data(),
                                                      0, nullptr);
                        }});
    };
    if (has_optimizer()) {
      add_gradients(&keys_);
      add_gradients(&repeated_);
      add_gradients(&keys_);
    }
    steps->push_back(
        {"upsert",
         [this] {
           return embank_upsert(twin_.table, keys_.data(), kRows / 2, gradients_.data(), 0,
                                nullptr);
         },
         [this] { twin_.oracle.Upsert(keys_.data(), kRows / 2, gradients_.data(), 0, nullptr); }});
    steps->push_back({"upsert_full",
                      [this] {
                        return embank_upsert_full(twin_.table, keys_.data(), kRows / 2,
                                                  gradients_.data(), 0, nullptr, 0, heat_.data(),
                                                  nullptr);
                      },
                      [this] {
                        twin_.oracle.UpsertFull(keys_.data(), kRows / 2, gradients_.data(), 0,
                                                nullptr, 0, heat_.data(), nullptr);
                      }});
    steps->push_back({"erase",
                      [this] { return embank_erase(twin_.table, keys_.data(), 20, nullptr); },
                      [this] { twin_.oracle.Erase(keys_.data(), 20, nullptr); }});
  }
  void AddStates(std::vector<Step>* steps) {
    if (!has_state_) return;
    const uint64_t* const keys = keys_.data() + 20;
    constexpr uint64_t n = kRows - 20;
    steps->push_back({"get_state", [this, keys] {
                        return embank_get_state(twin_.table, keys, n, state_.data(), 0, nullptr);
                      }});
    steps->push_back({"set_state", [this, keys] {
                        return embank_set_state(twin_.table, keys, n, state_.data(), 0, nullptr);
                      }});
  }
  void AddOthers(std::vector<Step>* steps) {
    const auto add = [steps](const char* name, std::function<embank_status()> call) {
      steps->push_back({name, std::move(call)});
    };
    std::vector<uint8_t>* const outcomes = &outcomes_;
    add("contains", [this, outcomes] {
      outcomes->resize(kRows);
      return embank_contains(twin_.table, keys_.data(), kRows, outcomes->data());
    });
    add("get_heat", [this, outcomes] {
      return embank_get_heat(twin_.table, keys_.data(), kRows, heat_.data(), outcomes->data());
    });
    add("prefetch", [this] { return embank_prefetch(twin_.table, keys_.data(), kRows); });
    add("scan", [this] {
      embank_scan* scan = nullptr;
      uint64_t n = 1;
      embank_status status = embank_scan_open(twin_.table, &scan);
      while (status == EMBANK_OK && n > 0) {
        status = embank_scan_next(scan, scanned_, rows_.data(), 0, std::size(scanned_), &n);
      }
      embank_scan_close(scan);
      return status;
    });
    add("full scan", [this] {
      embank_scan* scan = nullptr;
      uint64_t n = 1;
      embank_status status = embank_scan_open(twin_.table, &scan);
      while (status == EMBANK_OK && n > 0) {
        status = embank_scan_next_full(scan, nullptr, rows_.data(), 0,
                                       has_state_ ? state_.data() : nullptr, 0, heat_.data(),
                                       std::size(scanned_), &n);
      }
      embank_scan_close(scan);
      return status;
    });
    add("store_get_options", [this] {
      embank_store_options options = StoreOptions();
      return embank_store_get_options(store_, &options);
    });
    add("metrics", [this] { return embank_metrics(store_, nullptr, 0, &needed_); });
    add("memory_report", [this] { return embank_memory_report(store_, nullptr, 0, &needed_); });
    add("table_names", [this] { return embank_table_names(store_, nullptr, 0, &needed_); });
    add("table_create and drop", [this] {
      embank_table* table = nullptr;
      const embank_table_options options = TableOptions(kDim, EMBANK_OPT_ADAM);
      const embank_status status = embank_table_create(store_, "u", &options, &table);
      return status != EMBANK_OK ? status : embank_table_drop(store_, "u");
    });
    add("estimate_for_hit_ratio", [this] {
      embank_store_options options = StoreOptions();
      options.path = "not opened";
      const embank_table_options table = TableOptions(kDim, EMBANK_OPT_ADAM);
      const uint64_t rows = kRows;
      return embank_estimate_for_hit_ratio(&options, &table, &rows, 1, 0.9, 0.8, nullptr, 0,
                                           &needed_);
    });
    if (directory_.empty()) return;
    add("checkpoint_start", [this] { return embank_checkpoint_start(store_, "a", 1); });
    add("checkpoint_finish", [this] { return embank_checkpoint_finish(store_, nullptr); });
    add("checkpoint", [this] { return embank_checkpoint(store_, "b", 1, nullptr); });
    add("checkpoint_blob", [this] { return embank_checkpoint_blob(store_, nullptr, 0, &needed_); });
    add("export and verify", [this] {
      const std::string directory = directory_ + "/export";
      const embank_status status = embank_export(store_, directory.c_str(), nullptr, nullptr);
      if (status != EMBANK_OK) return status;
      return embank_verify(directory.c_str(), nullptr, nullptr, report_, sizeof report_, &needed_);
    });
  }

  static constexpr uint64_t kBagKeys = 2;
  static constexpr uint64_t kBags = 50;
  static constexpr uint64_t kPackedKeys = kBags * kBagKeys;

  embank_store* const store_;
  Twin twin_;
  const bool has_state_;
  const std::string directory_;
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> repeated_;
  std::vector<float> rows_;
  std::vector<float> gradients_;
  std::vector<float> position_gradients_;
  uint64_t offsets_[kBags + 1];
  float* on_device_ = nullptr;
  std::vector<float> state_;
  std::vector<uint32_t> heat_;
  std::vector<uint8_t> outcomes_;
  uint64_t scanned_[100];
  char report_[1 << 16];
  uint64_t needed_ = 0;
};

const std::vector<int32_t> kOptimizers = {EMBANK_OPT_NONE,    EMBANK_OPT_SGD,
                                          EMBANK_OPT_ADAGRAD, EMBANK_OPT_ROWWISE_ADAGRAD,
                                          EMBANK_OPT_ADAM,    EMBANK_OPT_FTRL};

class Stack : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer's frames are larger";
#endif
    const size_t idle = StackBytesOf([] {});
    ASSERT_LT(idle, kCallStackBytesMax);
    limit_ = idle + kCallStackBytesMax;
  }
  void ExpectFlat(const embank_table_options& options, bool has_path, uint64_t hbm_bytes = 0) {
    const ScratchDirectory scratch;
    const std::string path = has_path ? scratch.path() + "/store" : "";
    embank_store* store = nullptr;
    EXPECT_LE(StackBytesOf([&] { EXPECT_EQ(OpenSmall(path, hbm_bytes, 1, &store), EMBANK_OK); }),
              limit_)
        << "store_open";
    const StorePtr closer(store);
    const auto calls = std::make_unique<Calls>(store, options, has_path ? scratch.path() : "");
    ExpectFlat(hbm_bytes > 0 ? calls->DeviceSteps() : calls->Steps());
    EXPECT_EQ(calls->Difference(), "");
  }
  void ExpectFlat(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      embank_status status = EMBANK_UNKNOWN;
      EXPECT_LE(StackBytesOf([&] { status = step.call(); }), limit_) << step.name;
      EXPECT_EQ(status, EMBANK_OK) << step.name << ": " << embank_last_error();
      step.follow();
    }
  }

  size_t limit_ = 0;
};

TEST_F(Stack, NoCallTakesMuchOfItInMemory) {
  for (const int32_t optimizer : kOptimizers) {
    for (const int32_t type : {EMBANK_F32, EMBANK_F16}) {
      SCOPED_TRACE("optimizer " + std::to_string(optimizer) + ", type " + std::to_string(type));
      ExpectFlat(Shape(optimizer, type), false);
    }
  }
}

TEST_F(Stack, NoCallTakesMuchOfItOnDisk) {
  for (const int32_t optimizer : {EMBANK_OPT_NONE, EMBANK_OPT_ROWWISE_ADAGRAD, EMBANK_OPT_ADAM}) {
    SCOPED_TRACE("optimizer " + std::to_string(optimizer));
    ExpectFlat(Shape(optimizer, EMBANK_F32), true);
  }
}

TEST_F(Stack, NoCallTakesMuchOfItWithDeviceMemory) {
  for (const int32_t optimizer : {EMBANK_OPT_NONE, EMBANK_OPT_ADAM, EMBANK_OPT_FTRL}) {
    for (const int32_t type : {EMBANK_F32, EMBANK_F16}) {
      SCOPED_TRACE("optimizer " + std::to_string(optimizer) + ", type " + std::to_string(type));
      ExpectFlat(Shape(optimizer, type), false, kHbmBytes);
    }
  }
}

// A process whose threads have stacks of 64 KiB: SIGSEGV ends it if a thread overflows one.
int RunWithSmallStacks(const std::string& directory) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstacksize(&attributes, 2 * kCallStackBytesMax) != 0 ||
      pthread_setattr_default_np(&attributes) != 0) {
    return 2;
  }
  embank_store* store = nullptr;
  if (OpenSmall(directory + "/store", 0, 4, &store) != EMBANK_OK) return 3;
  const auto calls = std::make_unique<Calls>(store, Shape(EMBANK_OPT_ADAM, EMBANK_F32), directory);
  int failed = 0;
  for (const Step& step : calls->Steps()) {
    std::thread([&] { failed += step.call() == EMBANK_OK ? 0 : 1; }).join();
  }
  // Batches that workers share, of any key: most are the same few rows.
  embank_table* table = nullptr;
  const embank_table_options options = Shape(EMBANK_OPT_FTRL, EMBANK_F16);
  if (embank_table_create(store, "v", &options, &table) != EMBANK_OK) return 4;
  std::vector<uint64_t> keys(10'000);
  for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = i % 100;
  std::vector<float> rows(keys.size() * kDim, 0.5f);
  const auto* const k = keys.data();
  const uint64_t n = keys.size();
  failed += embank_lookup(table, k, n, EMBANK_MISSING_CREATE, rows.data(), 0, nullptr) != EMBANK_OK;
  std::fill(rows.begin(), rows.end(), 0.5f);
  failed += embank_apply_gradients(table, k, n, rows.data(), 0, nullptr) != EMBANK_OK;
  failed += embank_lookup(table, k, n, EMBANK_MISSING_SKIP, rows.data(), 0, nullptr) != EMBANK_OK;
  failed += embank_checkpoint(store, nullptr, 0, nullptr) != EMBANK_OK;
  failed += embank_store_close(store) != EMBANK_OK;
  return failed == 0 ? 0 : 1;
}

TEST_F(Stack, TheLibrarysThreadsDoWithSmallOnes) {
  const ScratchDirectory scratch;
  EXPECT_EQ(InChild([&] { return RunWithSmallStacks(scratch.path()); }), "exit 0");
}

}  // namespace
}  // namespace embank::test::stack_test
