#include "tiers/log/row_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/events.h"
#include "tests/support/failing_memory.h"
#include "tests/support/files_by_path.h"
#include "tests/support/random.h"
#include "tests/support/segment_count.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/simulated_executor.h"

namespace embank::test::row_log_test {
namespace {

constexpr uint64_t kStoreId = 0x5704E;

// A row as the test remembers it.
struct Written {
  uint16_t row_class;
  uint32_t record_bytes;
  TableId table;
  Key key;
  std::vector<std::byte> payload;
};

// Small, so that everything happens often.
RowLogOptions SmallOptions() {
  return {.store_id = kStoreId,
          .segment_bytes = 48 * kBlockBytes,
          .buffer_bytes = 2 * kBlockBytes,
          .buffers = 3,
          .read_bytes = 32 * kBlockBytes,
          .read_lists = 2,
          .ssd_bytes = 0};
}

class LogWorld {
 public:
  explicit LogWorld(RowLogOptions options = SmallOptions(), uint64_t seed = 1)
      : random_(seed), executor_(seed) {
    EXPECT_TRUE(disk_.CreateDirectory("log").ok());
    disk_.ClearHistory();
    directory_ = OpenedDirectory(&disk_, "log");
    options.directory = directory_.get();
    auto log = RowLog::Create(&disk_, &memory_, &budget_, &executor_, std::move(options));
    EXPECT_TRUE(log.ok()) << log.status();
    if (log.ok()) log_ = *std::move(log);
  }
  ~LogWorld() {
    log_.reset();
    EXPECT_EQ(memory_.outstanding(), 0u);
    EXPECT_EQ(budget_.used_bytes(), 0u);
  }
  LogWorld(const LogWorld&) = delete;
  LogWorld& operator=(const LogWorld&) = delete;

  RowLog* operator->() { return log_.get(); }
  SimulatedDisk& disk() { return disk_; }
  FailingMemory& memory() { return memory_; }
  Random& random() { return random_; }

  Written Draw(uint16_t row_class, uint32_t record_bytes) {
    Written row = {.row_class = row_class,
                   .record_bytes = record_bytes,
                   .table = static_cast<TableId>(random_.Below(kTablesMax)),
                   .key = random_.Bits(),
                   .payload = std::vector<std::byte>(record_bytes - sizeof(RecordHeader))};
    for (std::byte& byte : row.payload) byte = static_cast<std::byte>(random_.Bits());
    return row;
  }
  StatusOr<Location> Append(const Written& row, LogStream stream = LogStream::kUser) {
    return log_->appender().Append(stream, {.row_class = row.row_class,
                                            .record_bytes = row.record_bytes,
                                            .table = row.table,
                                            .key = row.key,
                                            .heat = 7,
                                            .checkpoint = 3,
                                            .payload = row.payload});
  }
  // Draws, appends and returns where; the log must take it.
  Location AppendOne(uint16_t row_class, uint32_t record_bytes,
                     LogStream stream = LogStream::kUser) {
    const Written row = Draw(row_class, record_bytes);
    const StatusOr<Location> location = Append(row, stream);
    EXPECT_TRUE(location.ok()) << location.status();
    if (!location.ok()) return kNoLocation;
    EXPECT_EQ(rows_.count(location->units), 0u) << "two rows at one place";
    rows_[location->units] = row;
    return *location;
  }
  void Kill(Location location) {
    log_->segments().MarkDead(location);
    rows_.erase(location.units);
  }
  const std::map<uint64_t, Written>& rows() const { return rows_; }

  // Reads the locations; each must give its row.
  void ExpectAll(const std::vector<Location>& locations) {
    std::vector<int> visits(locations.size());
    std::vector<int> ahead(locations.size());
    const Status status = log_->reader().Read(
        locations,
        [&](size_t i, const Status& read, std::span<const std::byte> record) {
          ++visits[i];
          EXPECT_EQ(ahead[i], 1);
          ASSERT_TRUE(read.ok()) << read;
          EXPECT_TRUE(IsRow(rows_.at(locations[i].units), record));
        },
        /*bridged_bytes=*/0, [&](size_t i) { ahead[i] += visits[i] == 0 ? 1 : 2; });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1),
              static_cast<ptrdiff_t>(locations.size()));
  }
  void ExpectAllRows() {
    std::vector<Location> locations;
    for (const auto& [units, row] : rows_) locations.push_back({units});
    ExpectAll(locations);
  }
  Status StatusAt(Location location) {
    Status status;
    EXPECT_TRUE(log_->reader()
                    .Read({&location, 1}, [&](size_t, const Status& read, auto) { status = read; })
                    .ok());
    return status;
  }
  Status StatusOfOneAt(Location location) {
    RecordScratch scratch;
    const auto record = log_->reader().ReadOne(location, &scratch);
    EXPECT_TRUE(!record.ok() || IsRow(rows_.at(location.units), *record));
    return record.status();
  }

  static bool IsRow(const Written& row, std::span<const std::byte> record) {
    if (record.size() != row.record_bytes) return false;
    const RecordHeader header = LoadRecordHeader(record);
    return header.key == row.key && header.table == row.table && header.heat == 7 &&
           header.row_class == row.row_class && header.checkpoint == 3 &&
           std::memcmp(record.data() + sizeof header, row.payload.data(), row.payload.size()) == 0;
  }

 private:
  Random random_;
  SimulatedDisk disk_;
  std::unique_ptr<Directory> directory_;
  FailingMemory memory_;
  MemoryBudget budget_{0};
  SimulatedExecutor executor_;
  std::unique_ptr<RowLog> log_;
  std::map<uint64_t, Written> rows_;  // by units of location
};

std::vector<std::string> SegmentsOf(const SimulatedDisk& disk) {
  std::vector<std::string> paths;
  for (const std::string& path : disk.Files()) {
    if (path.find("/segment-") != std::string::npos) paths.push_back(path);
  }
  return paths;
}

class RowSizes : public testing::TestWithParam<uint32_t> {};

TEST_P(RowSizes, AreReadFromBuffersAndFromFiles) {
  RowLogOptions options = SmallOptions();
  options.segment_bytes = 64 * kBlockBytes;
  options.buffer_bytes = std::max(options.buffer_bytes, RoundUp(GetParam(), kBlockBytes));
  LogWorld world(options);
  for (int i = 0; i < 40; ++i) {
    const Location location = world.AppendOne(1, GetParam());
    world.ExpectAll({location});
    EXPECT_TRUE(world.StatusOfOneAt(location).ok());
  }
  world.ExpectAllRows();
  ASSERT_TRUE(world->appender().Flush().ok());
  const uint64_t buffered = world->counters().buffered_reads;
  world.ExpectAllRows();
  for (const auto& [units, row] : world.rows()) EXPECT_TRUE(world.StatusOfOneAt({units}).ok());
  EXPECT_EQ(world->counters().buffered_reads, buffered) << "nothing is in buffers after a flush";
  EXPECT_EQ(world->segments().live_rows(), 40u);
}

INSTANTIATE_TEST_SUITE_P(All, RowSizes,
                         testing::Values(48u, 64u, 544u, 2080u, 4096u, 4112u, 12'304u, 16'400u,
                                         kRecordBytesMax));

// Random appends of several classes in both streams, deaths, flushes and reads, against a map.
TEST(RowLog, AgreesWithAMapWhateverHappens) {
  Events events;
  for (const char* name : {"read from a buffer", "read from a file", "segment removed", "flush",
                           "more classes than buffers", "several lists"}) {
    events.Expect(name);
  }
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    LogWorld world(SmallOptions(), seed);
    Random& random = world.random();
    const uint32_t classes = static_cast<uint32_t>(random.Between(1, 6));
    if (classes > SmallOptions().buffers) events.Count("more classes than buffers");
    size_t segments_seen = 0;
    for (int step = 0; step < 1500; ++step) {
      const uint64_t choice = random.Below(100);
      if (choice < 70) {
        const auto row_class = static_cast<uint16_t>(random.Below(classes));
        const LogStream stream = random.OneIn(4) ? LogStream::kCompaction : LogStream::kUser;
        world.AppendOne(row_class, 48 + 16 * row_class * row_class * 9, stream);
      } else if (choice < 90 && !world.rows().empty()) {
        auto row = world.rows().lower_bound(random.Below(world.rows().rbegin()->first + 1));
        world.Kill({row->first});
      } else if (choice < 91) {
        ASSERT_TRUE(world->appender().Flush().ok());
        events.Count("flush");
      } else {
        std::vector<Location> some;
        for (uint64_t n = random.Below(40); n > 0 && !world.rows().empty(); --n) {
          some.push_back(
              {world.rows().lower_bound(random.Below(world.rows().rbegin()->first + 1))->first});
        }
        world.ExpectAll(some);
      }
      segments_seen = std::max(segments_seen, SegmentsOf(world.disk()).size());
    }
    while (!world.rows().empty() && world.rows().size() > 200)
      world.Kill({world.rows().begin()->first});
    if (world.rows().size() > SmallOptions().read_bytes / kBlockBytes)
      events.Count("several lists");
    world.ExpectAllRows();
    EXPECT_EQ(world->segments().live_rows(), world.rows().size());
    // A further segment lets the dead ones go.
    for (int i = 0; i < 4000 && world->segments().live_rows() < 4200; ++i) world.AppendOne(0, 48);
    if (SegmentCount(world->segments()) < segments_seen) events.Count("segment removed");
    EXPECT_EQ(SegmentCount(world->segments()), SegmentsOf(world.disk()).size());
    events.Count("read from a buffer", world->counters().buffered_reads);
    events.Count("read from a file", world->counters().reads);
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

TEST(RowLog, ReadsNeighboursAtOnceAndADoubleOnce) {
  LogWorld world;
  std::vector<Location> locations;
  for (int i = 0; i < 16; ++i) locations.push_back(world.AppendOne(1, 512));
  ASSERT_TRUE(world->appender().Flush().ok());
  locations.push_back(locations[3]);
  const uint64_t reads = world->counters().reads;
  const uint64_t bytes = world->counters().read_bytes;
  world.ExpectAll(locations);
  EXPECT_EQ(world->counters().reads, reads + 1);
  EXPECT_EQ(world->counters().read_bytes, bytes + 2 * kBlockBytes);
}

TEST(RowLog, SealsSegmentsWithFootersThatNameTheirRows) {
  LogWorld world;
  const SegmentGeometry geometry = SegmentGeometry::Of(544, SmallOptions().segment_bytes);
  std::vector<Written> rows;
  for (uint32_t i = 0; i < geometry.slots; ++i) {
    rows.push_back(world.Draw(5, 544));
    ASSERT_TRUE(world.Append(rows.back()).ok());
  }
  world.AppendOne(5, 544);  // the one that ends the segment
  ASSERT_TRUE(world->appender().Flush().ok());
  const std::vector<std::byte> file = world.disk().Contents(SegmentsOf(world.disk())[0]);
  ASSERT_EQ(file.size(), SmallOptions().segment_bytes);
  const auto header = DecodeSegmentHeader(std::span(file).first(kBlockBytes));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->store_id, kStoreId);
  EXPECT_EQ(header->row_class, 5u);
  const auto footer = DecodeSegmentFooter(*header, std::span(file).subspan(geometry.footer_offset));
  ASSERT_TRUE(footer.ok()) << footer.status();
  ASSERT_EQ(footer->keys.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(footer->keys[i], rows[i].key);
    EXPECT_EQ(footer->tables[i], rows[i].table);
  }
}

TEST(RowLog, DamageIsTheDamagedRowsAlone) {
  LogWorld world;
  std::vector<Location> locations;
  for (int i = 0; i < 40; ++i) locations.push_back(world.AppendOne(1, 544));
  ASSERT_TRUE(world->appender().Flush().ok());
  const std::string path = SegmentsOf(world.disk())[0];
  const uint64_t offset = kBlockBytes + 7 * 544 + 100;
  std::vector<std::byte> byte = {world.disk().Contents(path)[offset] ^ std::byte{4}};
  world.disk().Corrupt(path, offset, byte);
  for (size_t i = 0; i < locations.size(); ++i) {
    const Status status = world.StatusAt(locations[i]);
    EXPECT_EQ(status.code(), i == 7 ? StatusCode::kDataLoss : StatusCode::kOk) << i;
    EXPECT_EQ(world.StatusOfOneAt(locations[i]), status);
    if (i != 7) continue;
    EXPECT_NE(status.message().find("slot 7 of segment 1"), std::string::npos) << status;
  }
  world.disk().Truncate(path, kBlockBytes);
  EXPECT_EQ(world.StatusAt(locations[0]).code(), StatusCode::kDataLoss);
  EXPECT_EQ(world.StatusAt({locations[0].units + 1}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(world.StatusAt(kNoLocation).code(), StatusCode::kDataLoss);
  EXPECT_EQ(world.StatusOfOneAt(kNoLocation).code(), StatusCode::kDataLoss);
}

TEST(RowLog, AReadThatFailsOnceIsTriedAgain) {
  LogWorld world;
  const Location location = world.AppendOne(1, 544);
  ASSERT_TRUE(world->appender().Flush().ok());
  for (const int failures : {1, 2}) {
    int left = failures;
    world.disk().SetFaults([&left](const DiskCall& call) {
      if (call.kind != DiskCall::Kind::kRead || left == 0) return OkStatus();
      --left;
      return UnavailableError("the device does not answer");
    });
    EXPECT_EQ(world.StatusAt(location).code(),
              failures == 1 ? StatusCode::kOk : StatusCode::kUnavailable);
    left = failures;
    EXPECT_EQ(world.StatusOfOneAt(location).code(),
              failures == 1 ? StatusCode::kOk : StatusCode::kUnavailable);
  }
  world.disk().SetFaults(nullptr);
  world.ExpectAllRows();
}

TEST(RowLog, AWriteThatFailsOnceIsTriedAgain) {
  LogWorld world;
  bool failed = false;
  world.disk().SetFaults([&failed](const DiskCall& call) {
    if (call.kind != DiskCall::Kind::kWrite || call.number % 5 != 0) return OkStatus();
    failed = true;
    return UnavailableError("the device does not answer");
  });
  for (int i = 0; i < 300; ++i) world.AppendOne(1, 544);
  ASSERT_TRUE(world->appender().Flush().ok());
  EXPECT_TRUE(failed);
  world.ExpectAllRows();
}

TEST(RowLog, AfterWritesThatFailTwiceItTakesNoMoreAndStillHasAllItTook) {
  LogWorld world;
  for (int i = 0; i < 10; ++i) world.AppendOne(1, 544);
  world.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kWrite ? UnavailableError("the device is gone")
                                               : OkStatus();
  });
  StatusOr<Location> location = kNoLocation;
  int taken = 0;
  for (; taken < 1000; ++taken) {
    const Written row = world.Draw(1, 544);
    location = world.Append(row);
    if (!location.ok()) break;
  }
  EXPECT_LT(taken, 100) << "the queue has no end";
  EXPECT_EQ(location.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(location.status().message().find("gone"), std::string::npos);
  EXPECT_EQ(world->appender().Flush().code(), StatusCode::kUnavailable);
  EXPECT_EQ(world->appender().Sync().code(), StatusCode::kUnavailable);
  world.ExpectAllRows();
  world.disk().SetFaults(nullptr);
  EXPECT_FALSE(world.Append(world.Draw(1, 544)).ok()) << "what failed once is not trusted again";
  world.ExpectAllRows();
}

TEST(RowLog, WithoutSpaceRefusesAndWithSpaceGoesOn) {
  RowLogOptions options = SmallOptions();
  options.ssd_bytes = 3 * options.segment_bytes;
  LogWorld world(options);
  std::vector<Location> locations;
  Status status;
  while (status.ok()) {
    const Written row = world.Draw(1, 544);
    const StatusOr<Location> location = world.Append(row);
    status = location.status();
    if (status.ok()) locations.push_back(*location);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("3 segments"), std::string::npos) << status;
  const uint32_t slots = SegmentGeometry::Of(544, options.segment_bytes).slots;
  EXPECT_EQ(locations.size(), 3 * slots);
  EXPECT_EQ(world->segments().live_rows(), locations.size());
  // The last segment, whose end was seen by the append that was refused: some later one finds it
  // finished, though nobody flushes.
  for (uint32_t i = 2 * slots; i + 1 < 3 * slots; ++i) world->segments().MarkDead(locations[i]);
  EXPECT_FALSE(world.Append(world.Draw(1, 544)).ok()) << "one row still lives there";
  world->segments().MarkDead(locations.back());
  bool taken = false;
  for (int i = 0; i < 100 && !taken; ++i) taken = world.Append(world.Draw(1, 544)).ok();
  EXPECT_TRUE(taken);
  EXPECT_EQ(SegmentsOf(world.disk()).size(), 3u);
  EXPECT_EQ(SegmentCount(world->segments()), 3u);
  EXPECT_EQ(world->counters().dead_segments, 1u);
}

TEST(RowLog, ABlockThatCannotBeReadLosesTheRowsInItAlone) {
  LogWorld world;
  std::vector<Location> locations;
  for (int i = 0; i < 60; ++i) locations.push_back(world.AppendOne(1, 544));
  ASSERT_TRUE(world->appender().Flush().ok());
  // Reads of many blocks fail, as one bad block among them makes them; that of one record's
  // succeeds.
  world.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kRead && call.number % 2 == 0
               ? UnavailableError("a bad block")
               : OkStatus();
  });
  uint64_t unread = 0;
  ASSERT_TRUE(world->reader()
                  .Read(locations,
                        [&](size_t, const Status& status, auto) { unread += status.ok() ? 0 : 1; })
                  .ok());
  EXPECT_LT(unread, 60u);
  world.disk().SetFaults(nullptr);
  world.ExpectAllRows();
}

// Somebody reads a record while its segment dies: its place must not be another's before he is
// done.
TEST(RowLog, ASegmentStaysWhileSomebodyReadsFromIt) {
  LogWorld world;
  const uint32_t slots = SegmentGeometry::Of(544, SmallOptions().segment_bytes).slots;
  std::vector<Location> locations;
  for (uint32_t i = 0; i < slots + 1; ++i) locations.push_back(world.AppendOne(1, 544));
  ASSERT_TRUE(world->appender().Flush().ok());
  ASSERT_TRUE(world->reader()
                  .Read({locations.data(), 1},
                        [&](size_t, const Status& status, auto) {
                          ASSERT_TRUE(status.ok());
                          for (uint32_t i = 0; i < slots; ++i) world.Kill(locations[i]);
                          for (uint32_t i = 0; i < 2 * slots; ++i) world.AppendOne(1, 544);
                          EXPECT_EQ(world->counters().dead_segments, 0u);
                        })
                  .ok());
  for (uint32_t i = 0; i < slots; ++i) world.AppendOne(1, 544);
  EXPECT_EQ(world->counters().dead_segments, 1u);
}

TEST(RowLog, RefusesABudgetWithoutASegment) {
  LogWorld world;
  MemoryBudget budget(0);
  SimulatedExecutor executor(1);
  RowLogOptions options = SmallOptions();
  options.ssd_bytes = options.segment_bytes - 1;
  const auto none =
      RowLog::Create(&world.disk(), SystemMemorySource(), &budget, &executor, options);
  EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(RowLog, ADiskThatIsFullRefusesASegmentAndLeavesNoFile) {
  LogWorld world;
  world.AppendOne(1, 544);
  ASSERT_TRUE(world->appender().Flush().ok());
  const uint64_t taken_bytes = world.disk().TakenBytes(SegmentsOf(world.disk()).at(0));
  EXPECT_LT(taken_bytes, SmallOptions().segment_bytes / 2);
  world.disk().SetCapacity(taken_bytes + 5 * kBlockBytes);
  EXPECT_EQ(world.Append(world.Draw(2, 64)).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(SegmentsOf(world.disk()).size(), 1u);
  // So does a segment without space for a further step, and the log goes on.
  int rows = 0;
  for (; world->appender().Flush().ok() && rows < 100; ++rows) {
    const StatusOr<Location> location = world.Append(world.Draw(1, 544));
    if (!location.ok()) break;
    world.Kill(*location);
  }
  EXPECT_TRUE(3 < rows && rows < 9) << rows << ", each in a block of its own";
  world.disk().SetCapacity(UINT64_MAX);
  world.AppendOne(1, 544);
  world.AppendOne(2, 64);
  world.ExpectAllRows();
}

// Every record that was synced is in the files, whatever a crash does to later ones.
TEST(RowLog, SyncedRowsSurviveACrash) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    LogWorld world(SmallOptions(), seed);
    for (uint64_t i = world.random().Between(1, 700); i > 0; --i) world.AppendOne(1, 544);
    ASSERT_TRUE(world->appender().Sync().ok());
    const std::map<uint64_t, Written> synced = world.rows();
    const size_t at_sync = world.disk().changes();
    for (int i = 0; i < 200; ++i) world.AppendOne(1, 544);
    for (size_t change = at_sync; change <= world.disk().changes(); ++change) {
      for (const Persistence persistence : {Persistence::kNone, Persistence::kTorn}) {
        const auto disk = world.disk().AfterCrash(change, persistence, change);
        std::set<Key> whole;
        for (const std::string& path : SegmentsOf(*disk)) {
          const std::vector<std::byte> file = disk->Contents(path);
          if (file.size() < SmallOptions().segment_bytes) continue;
          const auto header = DecodeSegmentHeader(std::span(file).first(kBlockBytes));
          if (!header.ok()) continue;
          const SegmentGeometry geometry =
              SegmentGeometry::Of(header->record_bytes, header->segment_bytes);
          for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
            const auto record = std::span(file).subspan(geometry.OffsetOf(slot), 544);
            if (RecordIsWhole({kStoreId, header->segment_id, slot}, record)) {
              whole.insert(LoadRecordHeader(record).key);
            }
          }
        }
        for (const auto& [units, row] : synced) {
          ASSERT_EQ(whole.count(row.key), 1u) << "seed " << seed << " change " << change;
        }
      }
    }
  }
}

TEST(RowLog, EveryCallOfTheDiskOrOfMemoryMayFailOnce) {
  for (uint64_t n = 1; n < 60; ++n) {
    LogWorld world;
    uint64_t calls = 0;
    world.disk().SetFaults(
        [&](const DiskCall&) { return ++calls == n ? UnavailableError("once") : OkStatus(); });
    if (n % 3 == 0) world.memory().FailCall(n / 3);
    for (int i = 0; i < 400; ++i) {
      const uint32_t bytes = i % 2 == 0 ? 544 : 2080;
      const Written row = world.Draw(static_cast<uint16_t>(i % 2), bytes);
      StatusOr<Location> location = world.Append(row);
      for (int tries = 0; tries < 2 && !location.ok(); ++tries) location = world.Append(row);
      ASSERT_TRUE(location.ok()) << location.status() << " call " << n;
      if (i % 50 == 49 && !world->appender().Flush().ok()) {
        ASSERT_TRUE(world->appender().Flush().ok());
      }
      bool same = false;
      ASSERT_TRUE(world->reader()
                      .Read({&*location, 1},
                            [&](size_t, const Status& status, auto record) {
                              same = status.ok() && LogWorld::IsRow(row, record);
                            })
                      .ok());
      ASSERT_TRUE(same) << "call " << n;
    }
  }
}

// Appenders and readers at once; each thread reads its own rows and those of a table that stays.
TEST(RowLog, ThreadsAppendAndReadAtOnce) {
  const std::unique_ptr<Executor> executor = MakeThreadPool(2);
  SimulatedDisk disk;
  ASSERT_TRUE(disk.CreateDirectory("log").ok());
  MemoryBudget budget(0);
  const auto directory = OpenedDirectory(&disk, "log");
  RowLogOptions options = SmallOptions();
  options.directory = directory.get();
  auto log = RowLog::Create(&disk, SystemMemorySource(), &budget, executor.get(), options);
  ASSERT_TRUE(log.ok());
  std::vector<std::thread> threads;
  std::atomic<uint64_t> wrong{0};
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(thread);
      std::vector<std::pair<Location, Key>> mine;
      for (uint64_t i = 0; i < 1500; ++i) {
        const auto row_class = static_cast<uint16_t>(random.Below(3));
        const uint32_t bytes = 544 + 512 * row_class;
        const Key key = thread << 32 | i;
        const std::vector<std::byte> payload(bytes - sizeof(RecordHeader), std::byte(key & 0xFF));
        const auto location = (*log)->appender().Append(LogStream::kUser, {.row_class = row_class,
                                                                           .record_bytes = bytes,
                                                                           .table = 1,
                                                                           .key = key,
                                                                           .heat = 0,
                                                                           .checkpoint = 0,
                                                                           .payload = payload});
        if (!location.ok()) {
          ++wrong;
          continue;
        }
        mine.emplace_back(*location, key);
        if (i % 16 == 0) {
          std::vector<Location> locations;
          std::vector<Key> keys;
          for (int n = 0; n < 20; ++n) {
            const auto& [where, whose] = mine[random.Below(mine.size())];
            locations.push_back(where);
            keys.push_back(whose);
          }
          const Status read = (*log)->reader().Read(
              locations, [&](size_t at, const Status& status, std::span<const std::byte> record) {
                const bool same = status.ok() && LoadRecordHeader(record).key == keys[at] &&
                                  record.back() == std::byte(keys[at] & 0xFF);
                wrong += same ? 0 : 1;
              });
          wrong += read.ok() ? 0 : 1;
        }
        if (i % 200 == 0 && !(*log)->appender().Flush().ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ((*log)->segments().live_rows(), 6000u);
}

}  // namespace
}  // namespace embank::test::row_log_test
