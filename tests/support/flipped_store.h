// A small store of two checkpoints on a simulated disk, whose files are copied and damaged often.
#ifndef EMBANK_TESTS_SUPPORT_FLIPPED_STORE_H_
#define EMBANK_TESTS_SUPPORT_FLIPPED_STORE_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/write.h"
#include "store/store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/pmem_tier.h"
#include "tests/support/random.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/simulated_executor.h"
#include "tests/support/store_files.h"
#include "tests/support/store_world.h"

namespace embank::test {

inline constexpr uint64_t kFlippedSeed = 23;

using Values = std::map<Key, float>;  // all values of a row are one number
using Contents = std::map<std::string, Values>;

// Files that are copied often are small: segments of 16 blocks.
inline StatusOr<std::unique_ptr<Store>> OpenOn(SimulatedDisk* disk, bool previous,
                                               const std::string& path = "log") {
  static ManualClock clock(1000);
  RowLogOptions log;
  log.segment_bytes = 16 * kBlockBytes;
  log.buffer_bytes = 4 * kBlockBytes;
  log.buffers = 3;
  log.read_bytes = 64 * kBlockBytes;
  log.read_lists = 2;
  StoreOptions options;
  options.dram_bytes = kDramBytesMin;
  options.seed = kFlippedSeed;
  options.path = path;
  options.previous = previous;
  StoreEnvironment environment = {.clock = &clock,
                                  .executor = std::make_unique<SimulatedExecutor>(kFlippedSeed),
                                  .files = disk,
                                  .log = log};
  AddPmem(&environment);
  if (WithPmem()) {
    options.pmem_path = PmemPathOf(path);
    options.pmem_bytes = kPmemBytes;
    environment.pmem_log->ssd_bytes = 3 * log.segment_bytes;
  }
  return Store::Open(options, std::move(environment));
}

inline void PutRows(Store* store, const std::string& name, Key first, size_t count, float factor,
                    Contents* contents) {
  Table* const table = *store->catalog().Open(name);
  const uint32_t dim = table->layout().dim;
  const std::vector<Key> keys = KeysFrom(first, count);
  std::vector<float> rows;
  for (const Key key : keys) {
    const float value = factor * static_cast<float>(key);
    rows.insert(rows.end(), dim, value);
    (*contents)[name][key] = value;
  }
  ASSERT_TRUE(Upsert(table, keys, RowsOf(rows, dim), {}).ok());
}

// Two tables whose rows are of one class, one of another; two checkpoints.
class FlippedStore {
 public:
  FlippedStore() {
    auto store = OpenOn(&disk_, false);
    EXPECT_TRUE(store.ok()) << store.status();
    for (const char* name : {"first", "second"}) {
      EXPECT_TRUE((*store)->CreateTable(name, OptionsOf(128)).ok());
    }
    EXPECT_TRUE((*store)->CreateTable("small", OptionsOf(4, Optimizer::kAdagrad)).ok());
    Contents now;
    PutRows(store->get(), "first", 1, 100, 1.0f, &now);
    PutRows(store->get(), "second", 50, 60, 2.0f, &now);
    PutRows(store->get(), "small", 1, 200, 3.0f, &now);
    EXPECT_TRUE((*store)->checkpoints()->Make({}).ok());
    contents_[1] = now;
    PutRows(store->get(), "first", 60, 80, 4.0f, &now);
    PutRows(store->get(), "small", 150, 100, 5.0f, &now);
    EXPECT_TRUE((*store)->checkpoints()->Make({}).ok());
    contents_[2] = now;
    store->reset();
    disk_.ClearHistory();
    const std::vector<std::string> segments = SegmentPathsOf(disk_, 2);
    EXPECT_EQ(IsInPmem(segments.front()), WithPmem());
    EXPECT_FALSE(IsInPmem(segments.back())) << "all rows are in PMem";
  }

  std::unique_ptr<SimulatedDisk> Copy() const {
    return disk_.AfterCrash(disk_.changes(), Persistence::kAll, 0);
  }
  const SimulatedDisk& disk() const { return disk_; }
  const Contents& ContentsOf(uint32_t checkpoint) const { return contents_.at(checkpoint); }

 private:
  SimulatedDisk disk_;
  std::map<uint32_t, Contents> contents_;
};

// Bits of one place, or of some; a part of them where few bytes say much.
inline std::string Flip(SimulatedDisk* disk, uint64_t flips, Random* random) {
  std::string said;
  const std::vector<std::string> segments = SegmentPaths(*disk);
  for (; flips > 0; --flips) {
    std::string path = segments[random->Below(segments.size())];
    uint64_t bytes = disk->Contents(path).size();
    uint64_t offset = random->Below(bytes);
    switch (random->Below(8)) {
      case 0:
        offset = random->Below(64);
        break;
      case 1:
        offset = bytes - kBlockBytes + random->Below(kBlockBytes);
        break;
      case 2:
        path = ManifestPath(1 + static_cast<int>(random->Below(2)));
        offset = random->Below(disk->Contents(path).size());
        break;
      default:
        break;
    }
    const int bits = 1 << random->Below(8);
    FlipBits(disk, path, offset, bits);
    said += path + " byte " + std::to_string(offset) + " bits " + std::to_string(bits) + "; ";
  }
  return said;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_FLIPPED_STORE_H_
