// Scans of tables whose rows are mostly in the log: once each, whatever moves meanwhile, in the
// order of their places, and without a trace in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/scan/scan.h"
#include "store/store.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/segment_count.h"
#include "tests/support/spill_world.h"

namespace embank::test::logged_scan_test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeeds = 2;
constexpr int kFaultStep = 5;
#else
constexpr uint64_t kSeeds = 6;
constexpr int kFaultStep = 1;
#endif

// Twice the rows that memory has slots for.
constexpr Key kKeys = 4000;

// A row says its key and a version, all over.
std::vector<float> RowsOfVersion(const std::vector<Key>& keys, float version) {
  std::vector<float> rows;
  rows.reserve(keys.size() * kDim);
  for (const Key key : keys) {
    for (uint32_t i = 0; i < kDim; i += 2) {
      rows.push_back(static_cast<float>(key));
      rows.push_back(version);
    }
  }
  return rows;
}

void Put(Table* table, const std::vector<Key>& keys, float version) {
  for (size_t begin = 0; begin < keys.size(); begin += 500) {
    const size_t end = std::min(keys.size(), begin + 500);
    const std::vector<Key> some(keys.begin() + static_cast<ptrdiff_t>(begin),
                                keys.begin() + static_cast<ptrdiff_t>(end));
    const std::vector<float> rows = RowsOfVersion(some, version);
    ASSERT_TRUE(Upsert(table, some, RowsOf(rows, kDim), {}).ok());
  }
}

void PromoteRowsOf(Table* table, const std::vector<Key>& keys) {
  std::vector<float> rows(keys.size() * kDim);
  std::vector<uint8_t> outcomes(keys.size());
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kSkip, RowsIn(&rows, kDim), outcomes).ok());
}

using Versions = std::multimap<Key, float>;

// The rows of one call, checked to be whole, and its status.
Status Next(Scan* scan, size_t cap, Versions* some) {
  std::vector<Key> keys(cap);
  std::vector<float> rows(cap * kDim, -1.0f);
  const StatusOr<uint64_t> n = scan->Next(keys, RowsIn(&rows, kDim));
  for (uint64_t i = 0; n.ok() && i < *n; ++i) {
    const float version = rows[i * kDim + 1];
    const std::vector<float> whole = RowsOfVersion({keys[i]}, version);
    EXPECT_TRUE(
        std::equal(whole.begin(), whole.end(), rows.begin() + static_cast<ptrdiff_t>(i * kDim)))
        << "not the row of key " << keys[i];
    some->emplace(keys[i], version);
  }
  return n.status();
}

// All rows of a scan, over its errors, and these errors.
std::vector<Status> Rest(Scan* scan, size_t cap, Versions* all) {
  std::vector<Status> complaints;
  while (complaints.size() < 100) {
    const size_t before = all->size();
    const Status status = Next(scan, cap, all);
    if (status.ok() && all->size() == before) break;
    if (!status.ok()) complaints.push_back(status);
  }
  return complaints;
}

void ExpectOnceEach(const Versions& all, const std::set<Key>& keys, float version) {
  ASSERT_EQ(all.size(), keys.size());
  for (const Key key : keys) {
    ASSERT_EQ(all.count(key), 1u) << key;
    ASSERT_EQ(all.find(key)->second, version) << key;
  }
}

std::set<Key> SetOf(const std::vector<Key>& keys) { return {keys.begin(), keys.end()}; }
std::string SegmentWith(const SimulatedDisk& disk) {
  const std::vector<std::string> files = disk.Files();
  return *std::find_if(files.begin(), files.end(), [](const std::string& path) {
    return path.find("segment") != std::string::npos;
  });
}

uint32_t RecordBytesIn(const Table& table) { return RecordBytesOf(table.layout().row_bytes); }

// Where a segment has the record of a slot; whose that is.
uint64_t OffsetOf(const Table& table, uint64_t slot) {
  return kBlockBytes + slot * RecordBytesIn(table);
}
Key KeyInSlot(const SimulatedDisk& disk, const std::string& path, const Table& table,
              uint64_t slot) {
  Key key = 0;
  std::memcpy(&key, disk.Contents(path).data() + OffsetOf(table, slot) + 8, sizeof key);
  return key;
}

void Flip(SimulatedDisk* disk, const std::string& path, uint64_t offset) {
  const std::vector<std::byte> wrong = {disk->Contents(path)[offset] ^ std::byte{1}};
  disk->Corrupt(path, offset, wrong);
}

TEST(LoggedScan, GivesEveryRowOnceWhateverTheCapAndTheMemory) {
  SpillWorld world(1);
  Table* const table = world.Create("t", Optimizer::kNone);
  const std::vector<Key> keys = KeysFrom(7, kKeys);
  ASSERT_NO_FATAL_FAILURE(Put(table, keys, 1));
  ASSERT_GT(table->rows_in_log(), kKeys / 4);
  for (const size_t cap : {1, 7, 255, 256, 500, 5000}) {
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{4000}, Scan::kNotesBytesMax}) {
      Scan scan(table, bytes);
      Versions all;
      ASSERT_TRUE(Rest(&scan, cap, &all).empty());
      ASSERT_NO_FATAL_FAILURE(ExpectOnceEach(all, SetOf(keys), 1)) << cap << " " << bytes;
      EXPECT_TRUE(Rest(&scan, cap, &all).empty()) << "stays at its end";
      EXPECT_EQ(all.size(), keys.size());
    }
  }
}

TEST(LoggedScan, ReadsTheLogOnceAndInOrder) {
  SpillWorld world(2);
  Table* const table = world.Create("t", Optimizer::kNone);
  const std::vector<Key> keys = KeysFrom(0, kKeys);
  ASSERT_NO_FATAL_FAILURE(Put(table, keys, 1));
  // Every third record is dead where it was.
  std::vector<Key> changed;
  for (Key key = 0; key < kKeys; key += 3) changed.push_back(key);
  ASSERT_NO_FATAL_FAILURE(Put(table, changed, 1));
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  const RowLogCounters& counters = world->logs()->lowest().counters();
  const uint64_t rows_before = counters.read_rows;
  const uint64_t bytes_before = counters.read_bytes;
  const uint64_t reads_before = counters.reads;
  Scan scan(table);
  Versions all;
  ASSERT_TRUE(Rest(&scan, 100, &all).empty());
  ASSERT_NO_FATAL_FAILURE(ExpectOnceEach(all, SetOf(keys), 1));
  const uint64_t logged = table->rows_in_log();
  EXPECT_EQ(counters.read_rows - rows_before, logged);
  // Lists of 64 blocks, with 62 rows: a few reads for each, where there were two blocks for each
  // row of its own.
  EXPECT_LT(counters.reads - reads_before, logged / 8);
  EXPECT_LT(counters.read_bytes - bytes_before, logged * RecordBytesIn(*table) * 2);
}

TEST(LoggedScan, LeavesMemoryAndHeatAsTheyAre) {
  SpillWorld world(3);
  Table* const table = world.Create("t", Optimizer::kNone);
  const std::vector<Key> keys = KeysFrom(0, kKeys);
  ASSERT_NO_FATAL_FAILURE(Put(table, keys, 1));
  std::vector<Key> hot;
  for (Key key = 0; key < 300; ++key) hot.push_back(key * 13);
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(PromoteRowsOf(table, hot));
  const auto heat = [&] {
    std::vector<uint32_t> heats(keys.size());
    EXPECT_TRUE(GetHeat(table, keys, heats, {}).ok());
    return heats;
  };
  const uint64_t logged = table->rows_in_log();
  const std::vector<uint32_t> before = heat();
  const uint64_t appended = world->logs()->lowest().counters().appended_rows;
  Versions all;
  Scan scan(table);
  ASSERT_TRUE(Rest(&scan, 300, &all).empty());
  EXPECT_EQ(all.size(), keys.size());
  EXPECT_EQ(table->rows_in_log(), logged);
  EXPECT_EQ(world->logs()->lowest().counters().appended_rows, appended);
  EXPECT_EQ(heat(), before);
  // The hot rows are where they were: no lookup of them reads.
  const uint64_t reads = world->logs()->lowest().counters().read_rows;
  ASSERT_NO_FATAL_FAILURE(PromoteRowsOf(table, hot));
  EXPECT_EQ(world->logs()->lowest().counters().read_rows, reads);

  // Rows that were in memory when they were noted, and were evicted since, are not promoted either.
  Scan late(table);
  Versions rest;
  ASSERT_TRUE(Next(&late, 1, &rest).ok());
  for (Key key = 0; key < kKeys; key += 500) {
    ASSERT_NO_FATAL_FAILURE(PromoteRowsOf(table, KeysFrom(key, 500)));
  }
  const std::vector<uint32_t> heat_before = heat();
  const uint64_t logged_before = table->rows_in_log();
  const uint64_t read_before = world->logs()->lowest().counters().read_rows;
  ASSERT_TRUE(Rest(&late, 300, &rest).empty());
  EXPECT_EQ(rest.size(), keys.size());
  EXPECT_GT(world->logs()->lowest().counters().read_rows - read_before, logged) << "none had left";
  EXPECT_EQ(table->rows_in_log(), logged_before);
  EXPECT_EQ(heat(), heat_before);
}

TEST(LoggedScan, SeesOnlyItsTableInSegmentsThatTablesShare) {
  SpillWorld world(4);
  Table* const table = world.Create("t", Optimizer::kNone);
  Table* const other = world.Create("other", Optimizer::kNone);
  ASSERT_EQ(table->slot_class(), other->slot_class());
  for (Key key = 0; key < kKeys; key += 100) {
    ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(key, 100), 1));
    ASSERT_NO_FATAL_FAILURE(Put(other, KeysFrom(key + 50, 100), 2));
  }
  Versions all;
  Scan scan(table);
  ASSERT_TRUE(Rest(&scan, 300, &all).empty());
  ASSERT_NO_FATAL_FAILURE(ExpectOnceEach(all, SetOf(KeysFrom(0, kKeys)), 1));
  Versions others;
  Scan other_scan(other);
  ASSERT_TRUE(Rest(&other_scan, 300, &others).empty());
  ASSERT_NO_FATAL_FAILURE(ExpectOnceEach(others, SetOf(KeysFrom(50, kKeys)), 2));
}

TEST(LoggedScan, AScanOfATableInMemoryReadsOthersFootersOnce) {
  SpillWorld world(4);
  ASSERT_NO_FATAL_FAILURE(Put(world.Create("other", Optimizer::kNone), KeysFrom(0, kKeys), 2));
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(0, 100), 1));
  ASSERT_EQ(table->rows_in_log(), 0u);
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  const uint64_t calls_before = world.disk().calls();
  Versions all;
  Scan scan(table);
  ASSERT_TRUE(Rest(&scan, 300, &all).empty());
  ASSERT_NO_FATAL_FAILURE(ExpectOnceEach(all, SetOf(KeysFrom(0, 100)), 1));
  EXPECT_LE(world.disk().calls() - calls_before,
            2 * SegmentCount(world->logs()->lowest().segments()));
}

TEST(LoggedScan, EndsWhenItsTableIsDropped) {
  SpillWorld world(5);
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(0, kKeys), 1));
  // One has a piece, one notes, one nothing.
  Scan piece(table);
  Scan notes(table);
  Scan fresh(table);
  Versions some;
  for (size_t i = 0; i < kKeys * 3 / 4; ++i) ASSERT_TRUE(Next(&piece, 1, &some).ok());
  ASSERT_TRUE(Next(&notes, kKeys * 3 / 4, &some).ok());
  ASSERT_TRUE(world->DropTable("t").ok());
  for (Scan* const scan : {&piece, &notes, &fresh}) {
    EXPECT_EQ(Next(scan, 10, &some).code(), StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(some.size(), 2 * (kKeys * 3 / 4));
}

// ---- rows that move meanwhile ----

// A table that changes between the calls of a scan, with the rows that the scan may and must
// return.
class ChangingTable {
 public:
  ChangingTable(SpillWorld* world, uint64_t seed, Events* events)
      : world_(*world),
        random_(seed),
        events_(events),
        table_(world->Create("t", Optimizer::kNone)) {
    for (Key key = 0; key < kKeys; ++key) versions_[key] = {0.0f};
    rows_ = SetOf(KeysFrom(0, kKeys));
    Put(table_, KeysFrom(0, kKeys), 0);
    EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
  }

  void Run(size_t cap, uint64_t notes_bytes) {
    for (const Key key : rows_) versions_[key] = {versions_[key].back()};
    living_ = rows_;
    Scan scan(table_, notes_bytes);
    Versions all;
    while (true) {
      Versions some;
      const Status status = Next(&scan, cap, &some);
      ASSERT_TRUE(status.ok()) << status;
      if (some.empty()) break;
      for (const auto& [key, version] : some) {
        ASSERT_EQ(all.count(key), 0u) << "key " << key << " twice";
        const std::vector<float>& had = versions_[key];
        ASSERT_EQ(std::count(had.begin(), had.end(), version), 1) << "key " << key;
        events_->Count("rows given as they were", version != had.back() ? 1 : 0);
        all.emplace(key, version);
      }
      ASSERT_NO_FATAL_FAILURE(Change());
    }
    for (const Key key : living_) ASSERT_EQ(all.count(key), 1u) << "key " << key << " missed";
    events_->Count("scans");
  }

 private:
  std::vector<Key> Draw(size_t most) {
    std::set<Key> keys;
    for (uint64_t i = random_.Between(1, most); i > 0; --i)
      keys.insert(random_.Below(kKeys * 5 / 4));
    return {keys.begin(), keys.end()};
  }
  void Change() {
    const RowLogCounters& counters = world_->logs()->lowest().counters();
    const uint64_t dead = counters.dead_segments;
    const uint64_t compacted = counters.compacted_rows;
    const uint64_t choice = random_.Below(10);
    if (choice < 4) {
      Overwrite(Draw(400));
    } else if (choice < 7) {
      const uint64_t logged = table_->rows_in_log();
      PromoteRowsOf(table_, Draw(200));
      events_->Count("lookups that read", logged > 0 ? 1 : 0);
    } else if (choice < 8) {
      Remove(Draw(30));
    } else {
      ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
    }
    events_->Count("segments that died during a scan", counters.dead_segments - dead);
    events_->Count("rows compacted during a scan", counters.compacted_rows - compacted);
  }
  void Overwrite(const std::vector<Key>& keys) {
    ++version_;
    Put(table_, keys, version_);
    for (const Key key : keys) {
      events_->Count("rows created during a scan", rows_.insert(key).second ? 1 : 0);
      versions_[key].push_back(version_);
    }
  }
  void Remove(const std::vector<Key>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Erase(table_, keys, outcomes).ok());
    for (const Key key : keys) {
      living_.erase(key);
      events_->Count("rows erased during a scan", rows_.erase(key));
    }
  }

  SpillWorld& world_;
  Random random_;
  Events* const events_;
  Table* const table_;
  float version_ = 0;
  std::map<Key, std::vector<float>> versions_;  // since the scan began, and the last before
  std::set<Key> rows_;
  std::set<Key> living_;  // since the scan began
};

TEST(LoggedScan, GivesEachLivingRowOnceWhateverMoves) {
  Events events;
  for (const char* name : {"scans", "rows given as they were", "lookups that read",
                           "segments that died during a scan", "rows compacted during a scan",
                           "rows created during a scan", "rows erased during a scan"}) {
    events.Expect(name);
  }
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SpillWorld world(seed);
    ChangingTable table(&world, seed, &events);
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{6000}, Scan::kNotesBytesMax}) {
      const size_t cap = Random(seed + bytes).Between(20, 400);
      ASSERT_NO_FATAL_FAILURE(table.Run(cap, bytes)) << "seed " << seed << " notes " << bytes;
    }
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

// Rows that several readers share and do not find leave no holes.
TEST(LoggedScan, GivesRowsThatMovedAfterTheyWereNoted) {
  SpillWorld world(11, MakeThreadPool(3));
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(0, kKeys), 1));
  ASSERT_GT(table->rows_in_log(), kKeys / 3) << "not enough for two readers";
  Scan scan(table);
  Versions all;
  ASSERT_TRUE(Next(&scan, 1, &all).ok());
  // Records of rows that change are dead, and their segments go with the checkpoints that had them.
  std::vector<Key> changed;
  for (Key key = 0; key < kKeys; key += 3) changed.push_back(key);
  for (float version = 2; version <= 5; ++version) {
    ASSERT_NO_FATAL_FAILURE(Put(table, changed, version));
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  }
  ASSERT_GT(world->logs()->lowest().counters().dead_segments, 0u);
  ASSERT_TRUE(Rest(&scan, 6000, &all).empty());
  ASSERT_EQ(all.size(), kKeys);
  uint64_t new_versions = 0;
  for (const auto& [key, version] : all) {
    ASSERT_EQ(all.count(key), 1u) << key;
    ASSERT_TRUE(version == 1 || (key % 3 == 0 && version == 5)) << key << ": " << version;
    new_versions += version == 5 ? 1 : 0;
  }
  EXPECT_GT(new_versions, 0u);
}

// Threads change rows of their own while one scans.
TEST(LoggedScan, GivesEachLivingRowOnceBesideThreadsThatMoveThem) {
  SpillWorld world(6, MakeThreadPool(2));
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(0, kKeys), 0));
  std::atomic<bool> done{false};
  std::atomic<uint64_t> failed{0};
  std::vector<std::thread> threads;
  for (uint64_t number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      Random random(number);
      float version = 0;
      while (!done) {
        std::vector<Key> keys;
        for (int i = 0; i < 50; ++i) keys.push_back(random.Below(kKeys / 2) * 2 + number);
        const std::vector<float> rows = RowsOfVersion(keys, ++version);
        failed += Upsert(table, keys, RowsOf(rows, kDim), {}).ok() ? 0 : 1;
        std::vector<float> read(keys.size() * kDim);
        for (Key& key : keys) key = random.Below(kKeys);
        failed += Lookup(table, keys, MissingRule::kSkip, RowsIn(&read, kDim), {}).ok() ? 0 : 1;
        if (random.OneIn(20)) failed += world->checkpoints()->Make({}).ok() ? 0 : 1;
      }
    });
  }
  for (const uint64_t bytes : {uint64_t{20'000}, Scan::kNotesBytesMax, Scan::kNotesBytesMax}) {
    for (const size_t cap : {100, 1500}) {
      Scan scan(table, bytes);
      Versions all;
      const std::vector<Status> complaints = Rest(&scan, cap, &all);
      EXPECT_TRUE(complaints.empty()) << complaints.front();
      EXPECT_EQ(all.size(), kKeys);
      for (Key key = 0; key < kKeys; ++key) EXPECT_EQ(all.count(key), 1u) << key;
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0u);
}

// ---- failures ----

TEST(LoggedScan, NamesADamagedRowAndCountsTheOthers) {
  SpillWorld world(7);
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(0, kKeys), 1));
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  const std::string path = SegmentWith(world.disk());
  std::set<Key> whole = SetOf(KeysFrom(0, kKeys));
  std::set<Key> lost;
  for (const uint64_t slot : {3, 4, 20}) {
    lost.insert(KeyInSlot(world.disk(), path, *table, slot));
    Flip(&world.disk(), path, OffsetOf(*table, slot) + 100);
  }
  for (const Key key : lost) ASSERT_EQ(whole.erase(key), 1u);
  for (const size_t cap : {50, 5000}) {
    Scan scan(table);
    Versions all;
    const std::vector<Status> complaints = Rest(&scan, cap, &all);
    ASSERT_NO_FATAL_FAILURE(ExpectOnceEach(all, whole, 1));
    ASSERT_GE(complaints.size(), 1u);
    std::string text;
    for (const Status& complaint : complaints) {
      EXPECT_EQ(complaint.code(), StatusCode::kDataLoss);
      text += std::string(complaint.message()) + "\n";
    }
    const bool named = std::any_of(lost.begin(), lost.end(), [&](Key key) {
      return text.find("key " + std::to_string(key)) != std::string::npos;
    });
    EXPECT_TRUE(named) << text;
    if (complaints.size() == 1) {
      EXPECT_NE(text.find("and 2 others"), std::string::npos) << text;
    }
    EXPECT_NE(text.find("\"t\""), std::string::npos) << text;
  }
}

TEST(LoggedScan, LearnsFromRecordsWhatADamagedFooterDoesNotTell) {
  SpillWorld world(8);
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(0, kKeys), 1));
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  const std::string path = SegmentWith(world.disk());
  const Key lost = KeyInSlot(world.disk(), path, *table, 5);
  const SegmentGeometry geometry =
      SegmentGeometry::Of(RecordBytesIn(*table), SmallLog().segment_bytes);
  Flip(&world.disk(), path, geometry.footer_offset + 8);
  {
    Scan scan(table);
    Versions all;
    ASSERT_TRUE(Rest(&scan, 300, &all).empty());
    ASSERT_NO_FATAL_FAILURE(ExpectOnceEach(all, SetOf(KeysFrom(0, kKeys)), 1));
  }
  // The record is damaged, too, so nobody knows whose it is.
  Flip(&world.disk(), path, OffsetOf(*table, 5) + 100);
  Scan scan(table);
  Versions all;
  const std::vector<Status> complaints = Rest(&scan, 300, &all);
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_EQ(complaints[0].code(), StatusCode::kDataLoss);
  EXPECT_NE(complaints[0].message().find("1 records"), std::string::npos) << complaints[0];
  std::set<Key> whole = SetOf(KeysFrom(0, kKeys));
  whole.erase(lost);
  ASSERT_NO_FATAL_FAILURE(ExpectOnceEach(all, whole, 1));
}

// Each read of the device fails once, or all do from one on: no row is given twice, and where the
// scan did not complain, none is missing.
TEST(LoggedScan, TellsOfReadsThatFail) {
  SpillWorld world(9);
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(0, kKeys), 1));
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  uint64_t told = 0;
  uint64_t mended = 0;
  for (const bool once : {true, false}) {
    uint64_t failed = 1;
    for (uint64_t n = 1; failed > 0; n += once ? 3 : 20) {
      uint64_t reads = 0;
      failed = 0;
      world.disk().SetFaults([&](const DiskCall& call) {
        if (call.kind != DiskCall::Kind::kRead) return OkStatus();
        ++reads;
        if (once ? reads != n : reads < n) return OkStatus();
        ++failed;
        return UnavailableError("the device fails");
      });
      Versions all;
      Scan scan(table);
      const std::vector<Status> complaints = Rest(&scan, 1000, &all);
      world.disk().SetFaults(nullptr);
      for (const Status& complaint : complaints) {
        ASSERT_EQ(complaint.code(), StatusCode::kDataLoss) << complaint;
      }
      for (Key key = 0; key < kKeys; ++key) ASSERT_LE(all.count(key), 1u) << key;
      ASSERT_TRUE(!complaints.empty() || all.size() == kKeys) << all.size();
      told += complaints.empty() ? 0 : 1;
      mended += complaints.empty() && failed > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(told, 5u);
  EXPECT_GT(mended, 5u);
}

TEST(LoggedScan, LosesNoRowWhenAnyAllocationFails) {
  SpillWorld world(10);
  world.memory().AskFirst(&AllocationFaults::MustFail);
  Table* const table = world.Create("t", Optimizer::kNone);
  const std::vector<Key> keys = KeysFrom(0, 2800);
  ASSERT_NO_FATAL_FAILURE(Put(table, keys, 1));
  uint64_t refused = 0;
  uint64_t failed = 1;
  for (uint64_t n = 1; failed > 0; n += kFaultStep) {
    Scan scan(table, 2000);
    std::vector<Key> some(200);
    std::vector<float> rows(some.size() * kDim);
    std::set<Key> seen;
    const auto next = [&]() -> StatusOr<uint64_t> {
      StatusOr<uint64_t> count = scan.Next(some, RowsIn(&rows, kDim));
      for (uint64_t i = 0; count.ok() && i < *count; ++i) {
        EXPECT_TRUE(seen.insert(some[i]).second) << some[i];
      }
      return count;
    };
    StatusOr<uint64_t> count = 1;
    failed = 0;
    while (count.ok() && *count > 0 && failed == 0) {
      {
        const AllocationFaults faults(n, FaultKind::kOnce);
        count = scan.Next(some, RowsIn(&rows, kDim));
        failed = AllocationFaults::Failed();
      }
      for (uint64_t i = 0; count.ok() && i < *count; ++i) {
        ASSERT_TRUE(seen.insert(some[i]).second) << some[i];
      }
    }
    refused += count.ok() ? 0 : 1;
    ASSERT_TRUE(count.ok() || IsResourceExhausted(count.status())) << count.status();
    for (count = next(); count.ok() && *count > 0;) count = next();
    ASSERT_TRUE(count.ok()) << count.status();
    ASSERT_EQ(seen.size(), keys.size()) << "allocation " << n;
  }
  EXPECT_GE(refused, 3u);
}

}  // namespace
}  // namespace embank::test::logged_scan_test
