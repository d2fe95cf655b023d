// A store on a twin, for calls whose rows are in device memory.
#ifndef EMBANK_TESTS_BINDINGS_DEVICE_CALLS_H_
#define EMBANK_TESTS_BINDINGS_DEVICE_CALLS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/handles.h"
#include "gpu/twin.h"
#include "store/payload/payload_rows.h"
#include "tests/support/c_api.h"
#include "tests/support/random.h"
#include "tests/support/row_buffer.h"

namespace embank::test {

inline constexpr uint64_t kSeed = 5;
inline constexpr uint64_t kHbmBytes = uint64_t{64} << 10;  // one page, of rows of one size
// Keys of a table: the first fill device memory, so many behind them are in DRAM, others are
// absent.
inline constexpr uint64_t kDramKeys = 20;
inline constexpr uint64_t kAbsentKeys = 20;

// A store on a twin whose work runs when somebody waits for it.
class DeviceCalls : public testing::Test {
 protected:
  DeviceCalls() : DeviceCalls(nullptr) {}
  // `clock` outlives the store; nullptr: the system's.
  explicit DeviceCalls(const Clock* clock) {
    embank_store_options options = StoreOptions();
    options.seed = kSeed;
    options.hbm_bytes = kHbmBytes;
    options.worker_threads = 2;
    options.flush_iters = UINT32_MAX;
    StoreEnvironment environment;
    environment.clock = clock;
    auto device = std::make_unique<embank::Twin>(TwinOptions{});
    twin_ = device.get();
    environment.device = std::move(device);
    embank_store* store = nullptr;
    const Status opened = OpenStoreIn(&options, std::move(environment), &store);
    EXPECT_TRUE(opened.ok()) << opened.ToString();
    store_.reset(store);
  }

  // Makes a table whose keys 1 .. in_hbm_ are in device memory.
  Twin Make(const std::string& name, uint32_t dim, int32_t optimizer, int32_t value_type) {
    embank_table_options options = TableOptions(dim, optimizer);
    options.value_type = value_type;
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_a = -1.0f;
    options.init_b = 1.0f;
    options.learning_rate = 0.1f;
    options.initial_accumulator = 0.25f;
    Twin made = CreateTwin(store_.get(), kSeed, name, options);
    in_hbm_ = kHbmBytes / PayloadBytesOf(*TableOfHandle(made.table));
    LookUp(&made, KeyRange(1, in_hbm_ + kDramKeys));
    for (int i = 0; i < 4; ++i) LookUp(&made, KeyRange(1, in_hbm_));
    EXPECT_EQ(embank_flush_hot(store_.get()), EMBANK_OK) << embank_last_error();
    return made;
  }

  void LookUp(Twin* made, const std::vector<uint64_t>& keys) {
    RowBuffer rows(keys.size(), made->oracle.row_bytes());
    EXPECT_EQ(embank_lookup(made->table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                            rows.data(), 0, nullptr),
              EMBANK_OK);
    made->oracle.Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(), 0, nullptr);
  }

  std::byte* Allocate(uint64_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(embank_device_allocate(store_.get(), bytes, &memory), EMBANK_OK);
    return static_cast<std::byte*>(memory);
  }

  uint64_t RowsInHbm(embank_table* table) {
    embank_table_info info = {};
    info.struct_size = sizeof info;
    EXPECT_EQ(embank_table_get_info(table, &info), EMBANK_OK);
    return info.rows_hbm;
  }

  embank::Twin* twin_ = nullptr;  // the store's
  StorePtr store_;
  uint64_t in_hbm_ = 0;  // keys of the last table that was made
  Random random_{kSeed};
};

// Keys of a batch for a table with `payloads` hot keys: hot, in DRAM and absent ones, some of them
// often.
inline std::vector<uint64_t> MixedKeys(uint64_t n, uint64_t hot, Random* random) {
  std::vector<uint64_t> keys(n);
  for (uint64_t& key : keys) {
    switch (random->Below(4)) {
      case 0:
        key = random->Between(1, hot);
        break;
      case 1:
        key = random->Between(1, 3);
        break;
      case 2:
        key = hot + random->Between(1, 3);
        break;
      default:
        key = hot + random->Between(1, kDramKeys + kAbsentKeys);
    }
  }
  return keys;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_DEVICE_CALLS_H_
