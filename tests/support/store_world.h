// A store in a world that the test controls: memory that fails on demand, a clock, an executor.
// When the store is gone, no memory may be left.
#ifndef EMBANK_TESTS_SUPPORT_STORE_WORLD_H_
#define EMBANK_TESTS_SUPPORT_STORE_WORLD_H_

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"
#include "tests/support/failing_memory.h"
#include "tests/support/manual_clock.h"
#include "tests/support/simulated_executor.h"

namespace embank::test {

class StoreWorld {
 public:
  // nullptr: everything on the caller's thread, in an order drawn from the store's seed.
  explicit StoreWorld(const StoreOptions& options = {},
                      std::unique_ptr<Executor> executor = nullptr)
      : StoreWorld(options, std::move(executor), 1000) {}
  StoreWorld(const StoreOptions& options, std::unique_ptr<Executor> executor, uint64_t tick_ns)
      : clock_(tick_ns) {
    if (executor == nullptr) executor = std::make_unique<SimulatedExecutor>(options.seed);
    StatusOr<std::unique_ptr<Store>> store = Store::Open(
        options, {.memory = &memory_, .clock = &clock_, .executor = std::move(executor)});
    EXPECT_TRUE(store.ok()) << store.status();
    if (store.ok()) store_ = *std::move(store);
  }
  ~StoreWorld() {
    store_.reset();
    EXPECT_EQ(memory_.outstanding(), 0u) << "the store left memory behind";
    EXPECT_EQ(memory_.misuses(), 0u);
  }
  StoreWorld(const StoreWorld&) = delete;
  StoreWorld& operator=(const StoreWorld&) = delete;

  Store* operator->() { return store_.get(); }
  Store& operator*() { return *store_; }
  FailingMemory* memory() { return &memory_; }
  ManualClock* clock() { return &clock_; }

  Table* Create(std::string_view name, const TableOptions& options) {
    const StatusOr<Table*> table = store_->CreateTable(name, options);
    EXPECT_TRUE(table.ok()) << table.status();
    return table.ok() ? *table : nullptr;
  }

 private:
  FailingMemory memory_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
};

inline TableOptions OptionsOf(uint32_t dim, Optimizer optimizer = Optimizer::kNone) {
  TableOptions options;
  options.dim = dim;
  options.optimizer = optimizer;
  return options;
}

// Float rows of a batch, packed.
inline RowSpan RowsIn(std::vector<float>* values, uint32_t dim) {
  return {reinterpret_cast<std::byte*>(values->data()), dim * sizeof(float)};
}
inline ConstRowSpan RowsOf(const std::vector<float>& values, uint32_t dim) {
  return {reinterpret_cast<const std::byte*>(values.data()), dim * sizeof(float)};
}

// first, first + 1, ..., n keys of them.
inline std::vector<Key> KeysFrom(Key first, size_t n) {
  std::vector<Key> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = first + i;
  return keys;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_STORE_WORLD_H_
