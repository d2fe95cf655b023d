// A small store with a log on a simulated disk, for more rows than its memory has slots.
#ifndef EMBANK_TESTS_SUPPORT_SPILL_WORLD_H_
#define EMBANK_TESTS_SUPPORT_SPILL_WORLD_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"
#include "tests/support/hbm_tier.h"
#include "tests/support/pmem_tier.h"
#include "tests/support/row_values.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/small_log.h"
#include "tests/support/store_world.h"

namespace embank::test {

// Four pages of 508 rows fit; the rest of 16 MiB is the index's and the log's.
inline constexpr uint32_t kDim = 1024;
inline constexpr uint64_t kDramBytes = uint64_t{16} << 20;

// The log has large lists of reads, so that memory has few rows.
inline RowLogOptions LargeReads() {
  RowLogOptions log = SmallLog();
  log.read_bytes = 512 * kBlockBytes;
  return log;
}

class SpillWorld {
 public:
  explicit SpillWorld(uint64_t seed, std::unique_ptr<Executor> executor = nullptr,
                      uint64_t ssd_bytes = 0)
      : SpillWorld(seed, std::make_unique<SimulatedDisk>(), std::move(executor), ssd_bytes) {}
  // Makes a world with the contents of a disk.
  SpillWorld(uint64_t seed, std::unique_ptr<SimulatedDisk> disk,
             std::unique_ptr<Executor> executor = nullptr, uint64_t ssd_bytes = 0)
      : disk_(std::move(disk)) {
    options_.dram_bytes = kDramBytes;
    options_.seed = seed;
    options_.path = "log";
    options_.ssd_bytes = ssd_bytes;
    if (WithPmem()) AddPmemOptions(kPmemBytes);
    if (WithHbm()) AddHbmOptions(uint64_t{1} << 20);
    const Status opened = Open(false, std::move(executor));
    EXPECT_TRUE(opened.ok()) << opened;
  }
  ~SpillWorld() { Close(); }
  SpillWorld(const SpillWorld&) = delete;
  SpillWorld& operator=(const SpillWorld&) = delete;

  Store* operator->() { return store_.get(); }
  Store& operator*() { return *store_; }
  Store* get() { return store_.get(); }
  SimulatedDisk& disk() { return *disk_; }
  FailingMemory& memory() { return memory_; }
  // The options of the next Open, except `previous`.
  StoreOptions& options() { return options_; }

  // The next Open is of the store in that directory, whose PMem is in one beside it.
  void SetPath(const std::string& path) {
    options_.path = path;
    if (WithPmem()) options_.pmem_path = PmemPathOf(path);
  }
  // The next Open has so much PMem.
  void AddPmemOptions(uint64_t pmem_bytes) {
    options_.pmem_path = kPmemPath;
    options_.pmem_bytes = pmem_bytes;
  }

  // The next Open has so much device memory, and more DRAM for headers and buffers.
  void AddHbmOptions(uint64_t hbm_bytes) {
    options_.hbm_bytes = hbm_bytes;
    options_.cuda_device = TestDevice();
    options_.dram_bytes += uint64_t{4} << 20;
    options_.flush_iters = TopkFlushOptions::kNever;
  }

  void Close() {
    store_.reset();
    EXPECT_EQ(memory_.outstanding(), 0u);
  }
  // Nothing is open then.
  void SetDisk(std::unique_ptr<SimulatedDisk> disk) {
    Close();
    disk_ = std::move(disk);
  }
  // Opens the contents of the disk, and closes the open store.
  Status Open(bool previous = false, std::unique_ptr<Executor> executor = nullptr) {
    Close();
    auto store = OpenBeside(previous, std::move(executor));
    if (store.ok()) store_ = *std::move(store);
    return store.status();
  }
  // Opens another store beside open ones.
  StatusOr<std::unique_ptr<Store>> OpenBeside(bool previous = false,
                                              std::unique_ptr<Executor> executor = nullptr) {
    options_.previous = previous;
    if (executor == nullptr) executor = std::make_unique<SimulatedExecutor>(options_.seed);
    StoreEnvironment environment = {
        .memory = &memory_,
        .clock = &clock_,
        .executor = std::move(executor),
        .files = disk_.get(),
        .log = LargeReads(),
        .device = options_.hbm_bytes == 0 ? nullptr : MakeLateTwin(options_.seed)};
    AddPmem(&environment);
    return Store::Open(options_, std::move(environment));
  }
  std::unique_ptr<SimulatedDisk> TakeDisk() {
    Close();
    return std::move(disk_);
  }

  Table* Create(std::string_view name, Optimizer optimizer, uint32_t dim = kDim) {
    TableOptions options = OptionsOf(dim, optimizer);
    options.rule.learning_rate = 1.0f;
    options.initializer.kind = InitializerKind::kConstant;
    options.initializer.a = 5.0f;
    const StatusOr<Table*> table = store_->CreateTable(name, options);
    EXPECT_TRUE(table.ok()) << table.status();
    return table.ok() ? *table : nullptr;
  }

 private:
  StoreOptions options_;
  std::unique_ptr<SimulatedDisk> disk_;
  FailingMemory memory_;
  ManualClock clock_{1000};
  std::unique_ptr<Store> store_;
};

// Rows whose values are all their key times `factor`.
inline std::vector<float> RowsOfKeys(const std::vector<Key>& keys, float factor) {
  std::vector<float> rows(keys.size() * kDim);
  for (size_t i = 0; i < keys.size(); ++i) {
    FillRow(&rows, i, kDim, factor * static_cast<float>(keys[i]));
  }
  return rows;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SPILL_WORLD_H_
