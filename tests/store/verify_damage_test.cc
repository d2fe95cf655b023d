// Bits of a store's files are flipped: what verify says is what then happens. A checkpoint opens or
// not as it said; of one that opens every row has its value or is DATA_LOSS, and those are exactly
// the rows that it named.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/lookup.h"
#include "store/store.h"
#include "store/verify.h"
#include "store/write.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/manual_clock.h"
#include "tests/support/random.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/simulated_executor.h"
#include "tests/support/store_files.h"
#include "tests/support/store_world.h"

namespace embank::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kFlips = 1'000;
#else
constexpr uint64_t kFlips = 10'000;
#endif

constexpr uint64_t kSeed = 23;

using Values = std::map<Key, float>;  // all values of a row are one number
using Contents = std::map<std::string, Values>;

// Files that are copied often are small: segments of 16 blocks.
absl::StatusOr<std::unique_ptr<Store>> OpenOn(SimulatedDisk* disk, bool previous) {
  static ManualClock clock(1000);
  RowLogOptions log;
  log.segment_bytes = 16 * kBlockBytes;
  log.buffer_bytes = 4 * kBlockBytes;
  log.buffers = 3;
  log.read_bytes = 64 * kBlockBytes;
  log.read_lists = 2;
  StoreOptions options;
  options.dram_bytes = kDramBytesMin;
  options.seed = kSeed;
  options.path = "log";
  options.previous = previous;
  return Store::Open(options, {.clock = &clock,
                               .executor = std::make_unique<SimulatedExecutor>(kSeed),
                               .files = disk,
                               .log = log});
}

void Put(Store* store, const std::string& name, Key first, size_t count, float factor,
         Contents* contents) {
  Table* const table = *store->OpenTable(name);
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
class World {
 public:
  World() {
    auto store = OpenOn(&disk_, false);
    EXPECT_TRUE(store.ok()) << store.status();
    for (const char* name : {"first", "second"}) {
      EXPECT_TRUE((*store)->CreateTable(name, OptionsOf(128)).ok());
    }
    EXPECT_TRUE((*store)->CreateTable("small", OptionsOf(4, Optimizer::kAdagrad)).ok());
    Contents now;
    Put(store->get(), "first", 1, 100, 1.0f, &now);
    Put(store->get(), "second", 50, 60, 2.0f, &now);
    Put(store->get(), "small", 1, 200, 3.0f, &now);
    EXPECT_TRUE((*store)->Checkpoint({}).ok());
    contents_[1] = now;
    Put(store->get(), "first", 60, 80, 4.0f, &now);
    Put(store->get(), "small", 150, 100, 5.0f, &now);
    EXPECT_TRUE((*store)->Checkpoint({}).ok());
    contents_[2] = now;
    store->reset();
    disk_.Forget();
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

using Keys = std::map<std::string, std::set<Key>>;  // by table

// Of which rows verify says that the checkpoint has lost them; all are named where it opens.
Keys NamedKeys(const VerifyReport& report, uint32_t checkpoint) {
  Keys keys;
  uint64_t rows = 0;
  for (const Damage& damage : report.damage) {
    for (const LostRows& lost : damage.lost) {
      if (lost.checkpoint != checkpoint) continue;
      keys[lost.table].insert(lost.keys.begin(), lost.keys.end());
      rows += lost.rows;
    }
  }
  for (const VerifiedCheckpoint& verified : report.checkpoints) {
    if (verified.checkpoint != checkpoint) continue;
    EXPECT_EQ(verified.rows_lost, rows);
  }
  uint64_t named = 0;
  for (const auto& [table, of_table] : keys) named += of_table.size();
  EXPECT_EQ(named, rows);
  return keys;
}

// Of which rows the store says that they are lost; the others are as they were.
Keys LostKeys(Store* store, const Contents& contents) {
  Keys lost;
  for (const auto& [name, values] : contents) {
    Table* const table = *store->OpenTable(name);
    const uint32_t dim = table->layout().dim;
    std::vector<Key> keys;
    for (const auto& [key, value] : values) keys.push_back(key);
    std::vector<float> rows(keys.size() * dim);
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_TRUE(Lookup(table, keys, MissingRule::kSkip, RowsIn(&rows, dim), outcomes).ok());
    EXPECT_EQ(table->rows(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (outcomes[i] == static_cast<uint8_t>(Outcome::kDataLoss)) {
        lost[name].insert(keys[i]);
        continue;
      }
      EXPECT_EQ(outcomes[i], static_cast<uint8_t>(Outcome::kFound)) << name << " " << keys[i];
      const std::vector<float> expected(dim, values.at(keys[i]));
      const auto row = rows.begin() + static_cast<ptrdiff_t>(i * dim);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), row)) << name << " " << keys[i];
    }
  }
  return lost;
}

// Bits of one place, or of some; a part of them where few bytes say much.
std::string Flip(SimulatedDisk* disk, uint64_t flips, Random* random) {
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

void CountParts(const VerifyReport& report, Events* events) {
  if (report.clean()) events->Count("clean: nobody reads it");
  for (const Damage& damage : report.damage) events->Count(PartName(damage.part));
}

void ExpectAsVerified(const World& world, const SimulatedDisk& damaged, const VerifyReport& report,
                      Events* events) {
  for (const VerifiedCheckpoint& checkpoint : report.checkpoints) {
    // An opening writes what was damaged anew.
    const auto disk = damaged.AfterCrash(damaged.changes(), Persistence::kAll, 0);
    const auto store = OpenOn(disk.get(), !checkpoint.is_newest);
    ASSERT_EQ(store.ok(), checkpoint.opens) << store.status();
    if (!store.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(store.status())) << store.status();
      events->Count("a checkpoint does not open");
      continue;
    }
    const Keys named = NamedKeys(report, checkpoint.checkpoint);
    EXPECT_EQ(LostKeys(store->get(), world.ContentsOf(checkpoint.checkpoint)), named);
    events->Count(named.empty() ? "opens whole" : "opens but for rows that are named");
  }
}

TEST(VerifyDamage, IsWhatHappensThen) {
  const World world;
  ASSERT_GT(SegmentPaths(world.disk()).size(), 3u);
  Events events;
  for (const char* name :
       {"clean: nobody reads it", "manifest", "header", "footer", "records", "opens whole",
        "a checkpoint does not open", "opens but for rows that are named"}) {
    events.Expect(name);
  }
  uint64_t done = 0;
  uint64_t run = 0;
  for (; done < kFlips * TestScale() && !HasFailure(); ++run) {
    Random random(Random(kSeed + FirstSeed()).Bits() + run);
    const std::unique_ptr<SimulatedDisk> disk = world.Copy();
    const uint64_t flips = random.Below(2) == 0 ? 1 : 2 + random.Below(3);
    done += flips;
    SCOPED_TRACE("run " + std::to_string(run) + ": " + Flip(disk.get(), flips, &random));
    const auto report = VerifyStore(disk.get(), "log", [](uint64_t, uint64_t) { return true; });
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->checkpoints.size(), 2u);
    CountParts(*report, &events);
    // Of what is clean a part is opened too.
    if (report->clean() && run % 8 != 0) continue;
    ExpectAsVerified(world, *disk, *report, &events);
  }
  std::printf("%squantities: %llu bits flipped in %llu copies of a store's files\n",
              events.Table().c_str(), static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(run));
  EXPECT_GE(done, kFlips * TestScale());
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test
