// The space of a log that is reserved for dirty rows, in segments.
#include "tiers/space/space_accounts.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/failing_memory.h"
#include "tests/support/files_by_path.h"
#include "tests/support/random.h"
#include "tests/support/segment_count.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/simulated_executor.h"
#include "tiers/log/row_log.h"
#include "tiers/space/log_memory.h"
#include "tiers/space/segment_size.h"

namespace embank::test::space_accounts_test {
namespace {

constexpr uint64_t kSegmentBytes = 48 * kBlockBytes;
constexpr uint32_t kRecordBytes = 2080;

// In its segment's file.
uint64_t OffsetOf(Location location) {
  return location.units % (kSegmentBytesMax / kLocationUnitBytes) * kLocationUnitBytes;
}

// Accounts whose memory has no limit.
class Accounts {
 public:
  explicit Accounts(uint64_t ssd_bytes, uint64_t segment_bytes = kSegmentBytes)
      : accounts_(&memory_, &budget_, {.ssd_bytes = ssd_bytes, .segment_bytes = segment_bytes},
                  &figures_) {}
  SpaceAccounts* operator->() { return &accounts_; }
  void AddClass(uint32_t row_class, uint32_t record_bytes) {
    const Status added = accounts_.AddClass(row_class, record_bytes, false, /*is_written=*/true);
    ASSERT_TRUE(added.ok()) << added;
  }
  void AddDirty(uint32_t row_class, uint64_t rows) {
    ASSERT_EQ(accounts_.Reserve(row_class, rows, /*must=*/false), rows);
    ASSERT_EQ(figures_.spare_segments(), accounts_.SpareSegments());
  }

 private:
  FailingMemory memory_;
  MemoryBudget budget_{0};
  SpaceFigures figures_;
  SpaceAccounts accounts_;
};

class SpaceAccountsTest : public testing::Test {
 protected:
  // Twelve segments, one of which is compaction's.
  Accounts accounts_{12 * kSegmentBytes + 100};
  const int64_t slots_ = SegmentGeometry::Of(kRecordBytes, kSegmentBytes).slots;
};

TEST_F(SpaceAccountsTest, AdmitsWhatItCanWriteAndNoMore) {
  accounts_.AddClass(1, kRecordBytes);
  // Two checkpoints' ends leave up to two slots out each.
  const auto all = static_cast<uint64_t>(11 * slots_ - 4);
  EXPECT_EQ(accounts_->Admits(1, 5), 5u);
  EXPECT_EQ(accounts_->Admits(1, 1u << 20), all);
  accounts_.AddDirty(1, all);
  EXPECT_EQ(accounts_->Admits(1, 1), 0u);
  EXPECT_EQ(accounts_->SpareSegments(), 0);
  EXPECT_EQ(accounts_->dirty_bytes(), all * kRecordBytes);
  EXPECT_EQ(accounts_->reserved_bytes(), 11 * kSegmentBytes);
  accounts_->Release(1, 1);
  EXPECT_EQ(accounts_->Admits(1, 9), 1u);
}

TEST_F(SpaceAccountsTest, WritingADirtyRowCostsNothing) {
  accounts_.AddClass(0, kRecordBytes);
  accounts_.AddClass(1, 64);
  accounts_.AddDirty(0, static_cast<uint64_t>(3 * slots_));
  accounts_.AddDirty(1, 100);
  const int64_t spare = accounts_->SpareSegments();
  int64_t open = 0;
  for (int64_t written = 0; written < 3 * slots_ - 10; ++written) {
    if (open == 0) {
      accounts_->AddTaken(kSegmentBytes);
      open = slots_;
    }
    accounts_->UseReservation(0);
    accounts_->SetOpenSlots(0, static_cast<uint64_t>(--open));
    ASSERT_EQ(accounts_->SpareSegments(), spare) << written;
  }
  // The last of a class needs nothing any more, not even what may be left out.
  accounts_->Release(0, 10);
  EXPECT_GE(accounts_->SpareSegments(), spare);
}

TEST_F(SpaceAccountsTest, ReservedAndTakenSpaceIsNobodys) {
  accounts_.AddClass(0, kRecordBytes);
  EXPECT_TRUE(accounts_->ReserveMetadata(101, /*must=*/false));
  EXPECT_EQ(accounts_->SpareSegments(), 10);
  accounts_->AddTaken(10 * static_cast<int64_t>(kSegmentBytes));
  EXPECT_EQ(accounts_->SpareSegments(), 0);
  EXPECT_EQ(accounts_->Admits(0, 7), 0u);
  EXPECT_TRUE(accounts_->HasSegment(SegmentPurpose::kDirtyRows));
  EXPECT_TRUE(accounts_->HasSegment(SegmentPurpose::kCompactionThatFrees));
  EXPECT_FALSE(accounts_->HasSegment(SegmentPurpose::kCompaction));
  accounts_->SetOpenSlots(0, static_cast<uint64_t>(slots_));
  EXPECT_EQ(accounts_->Admits(0, 1000), static_cast<uint64_t>(slots_ - 4));
  // More than there is: a store that was opened with less.
  accounts_->AddTaken(10 * static_cast<int64_t>(kSegmentBytes));
  EXPECT_LT(accounts_->SpareSegments(), 0);
  EXPECT_EQ(accounts_->Admits(0, 1), 0u);
  EXPECT_FALSE(accounts_->HasSegment(SegmentPurpose::kDirtyRows));
}

TEST_F(SpaceAccountsTest, MetadataTakesNoSpaceThatIsReserved) {
  accounts_.AddClass(0, kRecordBytes);
  accounts_.AddDirty(0, static_cast<uint64_t>(10 * slots_ - 4));
  ASSERT_EQ(accounts_->SpareSegments(), 1);
  const uint64_t reserved_bytes = accounts_->reserved_bytes();
  EXPECT_FALSE(accounts_->ReserveMetadata(kSegmentBytes + 101, /*must=*/false));
  EXPECT_EQ(accounts_->reserved_bytes(), reserved_bytes) << "nothing was changed";
  EXPECT_TRUE(accounts_->ReserveMetadata(kSegmentBytes, /*must=*/false));
  EXPECT_TRUE(accounts_->ReserveMetadata(2 * kSegmentBytes, /*must=*/true));
  EXPECT_EQ(accounts_->SpareSegments(), -1);
  EXPECT_TRUE(accounts_->ReserveMetadata(2 * kSegmentBytes - 1, /*must=*/false)) << "it is less";
  // The ten segments of the dirty rows are free, and compaction takes none of them.
  EXPECT_TRUE(accounts_->HasSegment(SegmentPurpose::kDirtyRows));
  EXPECT_FALSE(accounts_->HasSegment(SegmentPurpose::kCompactionThatFrees));
  EXPECT_TRUE(accounts_->ReserveMetadata(kSegmentBytes, /*must=*/false));
  EXPECT_TRUE(accounts_->HasSegment(SegmentPurpose::kCompactionThatFrees));
  EXPECT_FALSE(accounts_->HasSegment(SegmentPurpose::kCompaction));
}

TEST(SpaceAccountsWithoutLimit, AdmitsAll) {
  Accounts accounts(0);
  accounts.AddClass(3, kRecordBytes);
  EXPECT_EQ(accounts->Admits(3, 1u << 30), 1u << 30);
  accounts.AddDirty(3, 5);
  EXPECT_EQ(accounts->dirty_bytes(), 5 * kRecordBytes);
  EXPECT_EQ(accounts->reserved_bytes(), 0u);
}

// The first segments of a session are small. Each has objects of its own.
TEST(SpaceAccountsWithoutLimit, ReservesMemoryForTheBitsOfSmallSegments) {
  constexpr SegmentLimits kLimits = {uint64_t{256} << 10, uint64_t{64} << 20};
  for (const uint32_t record_bytes : {96u, 2080u, 49'232u}) {
    for (uint64_t rows = 1; rows * record_bytes < uint64_t{1} << 30; rows += rows / 2 + 1) {
      Accounts accounts(0, kLimits.most_bytes);
      accounts.AddClass(0, record_bytes);
      accounts.AddDirty(0, rows);
      uint64_t bit_bytes = 0;
      for (uint64_t written = 0; written < rows;) {
        const auto geometry = SegmentGeometry::Of(
            record_bytes, SegmentBytesFor(kLimits, record_bytes, written * record_bytes,
                                          accounts->ClassBytes(0)));
        bit_bytes += LogMemory::BitBytes(geometry);
        written += geometry.slots;
      }
      EXPECT_LE(bit_bytes, accounts->needed_bit_bytes()) << rows << " of " << record_bytes;
    }
  }
}

TEST(SpaceAccountsInMemory, ReservesBitsOrRefuses) {
  constexpr uint64_t kRows = 1'000'000;
  FailingMemory memory;
  MemoryBudget budget(uint64_t{16} << 20);
  SpaceFigures figures;
  SpaceAccounts accounts(&memory, &budget, {.segment_bytes = kSegmentBytes}, &figures);
  ASSERT_TRUE(accounts.AddClass(0, kRecordBytes, false, /*is_written=*/true).ok());
  const uint64_t class_bytes = budget.used_bytes();
  ASSERT_TRUE(accounts.AddClass(0, kRecordBytes, false, /*is_written=*/true).ok());
  EXPECT_EQ(budget.used_bytes(), class_bytes) << "a repeated call changes nothing";
  EXPECT_EQ(accounts.Reserve(0, 1, /*must=*/false), 1u);
  const uint64_t bit_bytes = accounts.memory().reserved_bit_bytes();
  const uint64_t others_bytes = budget.free_bytes();
  ASSERT_TRUE(budget.Charge(others_bytes).ok());
  EXPECT_TRUE(IsResourceExhausted(accounts.AddClass(1, 64, false, /*is_written=*/true)));
  EXPECT_EQ(accounts.Reserve(0, kRows, /*must=*/false), 0u);
  EXPECT_EQ(accounts.dirty_bytes(), kRecordBytes) << "nothing was changed";
  EXPECT_EQ(accounts.Reserve(0, kRows, /*must=*/true), kRows);
  EXPECT_EQ(accounts.memory().reserved_bit_bytes(), bit_bytes);
  budget.Release(others_bytes);
  accounts.RestoreBits();
  EXPECT_GE(accounts.memory().reserved_bit_bytes(), accounts.needed_bit_bytes());
  EXPECT_GT(accounts.needed_bit_bytes(), 10 * bit_bytes);
  accounts.Release(0, kRows);
  EXPECT_LE(accounts.memory().reserved_bit_bytes(), 3 * bit_bytes);
}

TEST(SpaceAccountsOfRows, SayWhatToForget) {
  for (const bool has_limit : {true, false}) {
    for (const bool all_forget : {true, false}) {
      const uint64_t most = has_limit ? 5 * kRecordBytes : 6 * kSegmentBytes;
      FailingMemory memory;
      MemoryBudget budget(0);
      SpaceFigures figures;
      SpaceAccounts accounts(&memory, &budget,
                             {.ssd_bytes = 12 * kSegmentBytes,
                              .segment_bytes = kSegmentBytes,
                              .rows_bytes_max = has_limit ? most : 0,
                              .all_forget = all_forget},
                             &figures);
      ASSERT_TRUE(accounts.AddClass(0, kRecordBytes, false, /*is_written=*/true).ok());
      accounts.AddLive(0, static_cast<int64_t>(most));
      EXPECT_EQ(figures.bytes_to_forget(), 0u);
      ASSERT_EQ(accounts.Reserve(0, 3, /*must=*/false), 3u);
      EXPECT_EQ(figures.bytes_to_forget(), all_forget ? 3 * kRecordBytes : 0);
      ASSERT_TRUE(accounts.AddClass(1, 64, /*forgets=*/true, /*is_written=*/true).ok());
      accounts.AddLive(0, kRecordBytes);
      EXPECT_EQ(figures.bytes_to_forget(), 4 * kRecordBytes);
      EXPECT_TRUE(accounts.Forgets(1));
      EXPECT_FALSE(accounts.Forgets(0) || accounts.Forgets(2));
    }
  }
}

// More streams than buffers: a buffer that is handed over before it is full leaves no slot out, and
// the next one goes on in its block.
TEST(RowLogSpace, ManyClassesTakeNoMoreThanTheirRecords) {
  constexpr uint32_t kClasses = 6;
  constexpr uint64_t kRows = 3000;
  SimulatedDisk disk;
  FailingMemory memory;
  MemoryBudget budget(0);
  SimulatedExecutor executor(1);
  ASSERT_TRUE(disk.CreateDirectory("log").ok());
  const auto directory = OpenedDirectory(&disk, "log");
  auto created = RowLog::Create(&disk, &memory, &budget, &executor,
                                {.directory = directory.get(),
                                 .store_id = 7,
                                 .segment_bytes = kSegmentBytes,
                                 .buffer_bytes = 2 * kBlockBytes,
                                 .buffers = 3,
                                 .read_bytes = 32 * kBlockBytes,
                                 .read_lists = 2});
  ASSERT_TRUE(created.ok()) << created.status();
  const std::unique_ptr<RowLog> log = *std::move(created);
  Random random(1);
  std::vector<Location> locations;
  std::array<uint64_t, kClasses> ends{};
  for (Key key = 0; key < kRows; ++key) {
    const auto row_class = static_cast<uint16_t>(random.Below(kClasses));
    const std::vector<std::byte> payload(32 + 16 * row_class, static_cast<std::byte>(key));
    const auto location = log->appender().Append(
        LogStream::kUser,
        {.row_class = row_class,
         .record_bytes = static_cast<uint32_t>(payload.size() + sizeof(RecordHeader)),
         .table = 1,
         .key = key,
         .payload = payload});
    ASSERT_TRUE(location.ok()) << location.status();
    locations.push_back(*location);
    ends[row_class] = OffsetOf(*location) + payload.size() + sizeof(RecordHeader);
  }
  EXPECT_EQ(SegmentCount(log->segments()), kClasses);
  const auto expect_rows = [&] {
    uint64_t visited = 0;
    const Status status = log->reader().Read(
        locations, [&](size_t i, const Status& read, std::span<const std::byte> record) {
          ASSERT_TRUE(read.ok()) << read;
          ASSERT_EQ(LoadRecordHeader(record).key, i);
          ASSERT_EQ(record.back(), static_cast<std::byte>(i));
          ++visited;
        });
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(visited, kRows);
  };
  ASSERT_NO_FATAL_FAILURE(expect_rows());
  // A block that was made durable is not written again.
  ASSERT_TRUE(log->appender().Sync().ok());
  for (uint16_t row_class = 0; row_class < kClasses; ++row_class) {
    const auto location = log->appender().Append(
        LogStream::kUser,
        {.row_class = row_class, .record_bytes = 64u + 16 * row_class, .table = 1, .key = 0});
    ASSERT_TRUE(location.ok()) << location.status();
    EXPECT_GE(OffsetOf(*location), RoundUp(ends[row_class], kBlockBytes));
  }
  ASSERT_TRUE(log->appender().Flush().ok());
  ASSERT_NO_FATAL_FAILURE(expect_rows());
}

}  // namespace
}  // namespace embank::test::space_accounts_test
