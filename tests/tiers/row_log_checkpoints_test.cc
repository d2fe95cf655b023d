// The records that the log keeps for checkpoints, and for how long.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/failing_memory.h"
#include "tests/support/files_by_path.h"
#include "tests/support/segment_count.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/simulated_executor.h"
#include "tiers/log/row_log.h"

namespace embank::test::row_log_checkpoints_test {
namespace {

constexpr uint32_t kRecordBytes = 2080;
constexpr uint32_t kRows = 300;  // some segments of them

class RowLogCheckpoints : public testing::Test {
 protected:
  RowLogCheckpoints() {
    EXPECT_TRUE(disk_.CreateDirectory("log").ok());
    directory_ = OpenedDirectory(&disk_, "log");
    Open(/*read_only=*/false);
  }

  void Open(bool read_only) {
    log_.reset();
    auto log = RowLog::Create(&disk_, &memory_, &budget_, &executor_,
                              {.directory = directory_.get(),
                               .store_id = 3,
                               .segment_bytes = 48 * kBlockBytes,
                               .buffer_bytes = 2 * kBlockBytes,
                               .buffers = 3,
                               .read_bytes = 32 * kBlockBytes,
                               .read_lists = 2,
                               .read_only = read_only});
    EXPECT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }

  Location Append(Key key, uint32_t checkpoint, bool lives = true) {
    const auto location = log_->appender().Append(LogStream::kUser, {.row_class = 0,
                                                                     .record_bytes = kRecordBytes,
                                                                     .table = 1,
                                                                     .key = key,
                                                                     .heat = 0,
                                                                     .checkpoint = checkpoint,
                                                                     .payload = {},
                                                                     .lives = lives});
    EXPECT_TRUE(location.ok()) << location.status();
    return location.ok() ? *location : kNoLocation;
  }
  std::vector<Location> AppendMany(uint32_t checkpoint) {
    std::vector<Location> locations;
    for (Key key = 0; key < kRows; ++key) locations.push_back(Append(key, checkpoint));
    return locations;
  }
  // So that each but the last segment is full and without a row that lives; how many were given up.
  uint64_t KillAndGoOn(const std::vector<Location>& locations) {
    const uint64_t before = log_->counters().dead_segments;
    for (const Location location : locations) log_->segments().MarkDead(location);
    EXPECT_TRUE(log_->appender().Flush().ok());
    for (Key key = 0; key < kRows; ++key) Append(key, 100);
    return log_->counters().dead_segments - before;
  }
  // Frozen for a checkpoint that was kept, or failed.
  std::vector<SegmentRows> Keep(uint32_t checkpoint, bool is_kept) {
    log_->checkpoints().Freeze(checkpoint);
    auto rows = log_->checkpoints().SyncFrozen();
    EXPECT_TRUE(rows.ok()) << rows.status();
    log_->checkpoints().Thaw(is_kept);
    return rows.ok() ? *std::move(rows) : std::vector<SegmentRows>();
  }

  // A call of the disk fails once, while the log is synced: nothing makes up for that.
  void ExpectStopsAfterOneFailureOf(DiskCall::Kind kind) {
    AppendMany(1);
    disk_.SetFaults([kind](const DiskCall& call) {
      return call.kind == kind ? UnavailableError("once") : OkStatus();
    });
    EXPECT_EQ(log_->appender().Sync(), UnavailableError("once"));
    disk_.SetFaults(nullptr);
    EXPECT_EQ(log_->appender().Sync(), UnavailableError("once"));
    EXPECT_EQ(log_->checkpoints().SyncFrozen().status(), UnavailableError("once"));
  }

  SimulatedDisk disk_;
  std::unique_ptr<Directory> directory_;
  FailingMemory memory_;
  MemoryBudget budget_{0};
  SimulatedExecutor executor_{1};
  std::unique_ptr<RowLog> log_;
};

// A segment that is not synced keeps its file open.
TEST_F(RowLogCheckpoints, WhereManySegmentsAreNotSyncedSomeAreSyncedAside) {
  uint64_t syncs = 0;
  disk_.SetFaults([&syncs](const DiskCall& call) {
    syncs += call.kind == DiskCall::Kind::kSync ? 1 : 0;
    return OkStatus();
  });
  AppendMany(0);
  EXPECT_EQ(syncs, 0u) << "few";
  disk_.SetOpenFilesMax(16);
  AppendMany(0);
  AppendMany(0);
  ASSERT_TRUE(log_->appender().Flush().ok());
  ASSERT_GT(SegmentCount(log_->segments()), 7u);
  EXPECT_GE(syncs, SegmentCount(log_->segments()) - 4)
      << "but two, what comes last, and what is not full";
  EXPECT_LT(syncs, SegmentCount(log_->segments()));
  ASSERT_TRUE(log_->appender().Sync().ok());
  EXPECT_EQ(syncs, SegmentCount(log_->segments())) << "each once";
}

TEST_F(RowLogCheckpoints, ASyncAsideThatFailsStopsTheLog) {
  disk_.SetOpenFilesMax(8);
  uint64_t failed = 0;
  disk_.SetFaults([&failed](const DiskCall& call) {
    if (call.kind != DiskCall::Kind::kSync || failed > 0) return OkStatus();
    ++failed;
    return UnavailableError("no answer");
  });
  bool stopped = false;
  for (Key key = 0; key < kRows && !stopped; ++key) {
    stopped = !log_->appender()
                   .Append(LogStream::kUser, {.row_class = 0,
                                              .record_bytes = kRecordBytes,
                                              .table = 1,
                                              .key = key,
                                              .heat = 0,
                                              .checkpoint = 0,
                                              .payload = {},
                                              .lives = true})
                   .ok();
  }
  EXPECT_TRUE(stopped || !log_->appender().Flush().ok());
  EXPECT_EQ(failed, 1u);
  EXPECT_TRUE(IsUnavailable(log_->appender().Sync())) << "what is lost is not taken for durable";
}

TEST_F(RowLogCheckpoints, WithoutOneWhatIsDeadIsGivenUp) {
  EXPECT_GT(KillAndGoOn(AppendMany(1)), 2u);
}

TEST_F(RowLogCheckpoints, SegmentsOfAFailedOneAreGivenUp) {
  const std::vector<Location> rows = AppendMany(1);
  EXPECT_GT(Keep(1, /*is_kept=*/false).size(), 2u);
  EXPECT_GT(KillAndGoOn(rows), 2u);
}

// Compaction tries again to move records that the device did not read, but never damaged ones.
TEST_F(RowLogCheckpoints, ASegmentThatWasNotReadIsPickedAgainBehindTheNextThatIsKept) {
  const std::vector<Location> rows = AppendMany(1);
  for (size_t i = 0; i < rows.size(); i += 2) log_->segments().MarkDead(rows[i]);
  ASSERT_TRUE(log_->appender().Flush().ok());
  // Their names.
  const auto pass_over_all = [&](bool first_is_damaged) {
    std::vector<uint64_t> passed_over;
    for (bool is_damaged = first_is_damaged;; is_damaged = false) {
      std::shared_ptr<LogSegment> victim = log_->candidates().PickVictim(CompactionAim::kSpace);
      if (victim == nullptr) return passed_over;
      passed_over.push_back(victim->header.segment_id);
      log_->candidates().Exclude(victim.get(), is_damaged);
      log_->candidates().Release(std::move(victim), /*is_done=*/true);
    }
  };
  const std::vector<uint64_t> segments = pass_over_all(true);
  ASSERT_GT(segments.size(), 2u);
  EXPECT_EQ(std::count(segments.begin(), segments.end(), segments[0]), 1) << "it is damaged";
  Keep(1, /*is_kept=*/false);
  EXPECT_TRUE(pass_over_all(false).empty());
  Keep(2, /*is_kept=*/true);
  log_->checkpoints().ReleaseOlderThan(3);
  EXPECT_EQ(pass_over_all(false), std::vector<uint64_t>(segments.begin() + 1, segments.end()));
}

// Records that could not be read to be forgotten may still be moved by compaction.
TEST_F(RowLogCheckpoints, CompactionMayPickASegmentThatWasNotReadToBeForgotten) {
  ASSERT_TRUE(log_->space().AddRowClass(0, kRecordBytes, /*forgets=*/true).ok());
  const std::vector<Location> rows = AppendMany(1);
  for (size_t i = 0; i < rows.size(); i += 2) log_->segments().MarkDead(rows[i]);
  ASSERT_TRUE(log_->appender().Flush().ok());
  const auto segments = [&](CompactionAim aim, bool is_unread) {
    std::set<uint64_t> picked;
    for (uint64_t tries = SegmentCount(log_->segments()); tries > 0; --tries) {
      std::shared_ptr<LogSegment> victim = log_->candidates().PickVictim(aim);
      if (victim == nullptr) break;
      picked.insert(victim->header.segment_id);
      if (is_unread) log_->candidates().Exclude(victim.get(), /*is_damaged=*/false);
      log_->candidates().Release(std::move(victim), /*is_done=*/true);
    }
    return picked;
  };
  const std::set<uint64_t> unread = segments(CompactionAim::kForget, true);
  ASSERT_FALSE(unread.empty());
  const std::set<uint64_t> all = segments(CompactionAim::kSpace, true);
  EXPECT_TRUE(std::includes(all.begin(), all.end(), unread.begin(), unread.end()));
  EXPECT_TRUE(segments(CompactionAim::kSpace, false).empty());
  EXPECT_FALSE(segments(CompactionAim::kForget, false).empty());
}

// A segment that the evacuation passes over counts as lost.
TEST_F(RowLogCheckpoints, InALostLogOnlyTheEvacuationExcludesSegments) {
  AppendMany(1);
  ASSERT_TRUE(log_->appender().Flush().ok());
  log_->writer().Lose(UnavailableError("the directory is gone"));
  const auto exclude_next = [&](CompactionAim aim) {
    std::shared_ptr<LogSegment> victim = log_->candidates().PickVictim(aim);
    if (victim == nullptr) return uint64_t{0};
    const uint64_t id = victim->header.segment_id;
    log_->candidates().Exclude(victim.get(), /*is_damaged=*/true);
    log_->candidates().Release(std::move(victim), /*is_done=*/true);
    return id;
  };
  const uint64_t demoted = exclude_next(CompactionAim::kDemote);
  ASSERT_NE(demoted, 0u);
  std::set<uint64_t> evacuated;
  for (uint64_t i = SegmentCount(log_->segments()); i > 0; --i) {
    evacuated.insert(exclude_next(CompactionAim::kEvacuate));
  }
  EXPECT_EQ(evacuated.count(demoted), 1u);
  EXPECT_EQ(evacuated.count(0), 0u);
  EXPECT_EQ(exclude_next(CompactionAim::kEvacuate), 0u) << "each once";
}

TEST_F(RowLogCheckpoints, SegmentsOfAKeptOneStayUntilItIsReleased) {
  const std::vector<Location> rows = AppendMany(1);
  const size_t segments = Keep(1, /*is_kept=*/true).size();
  EXPECT_EQ(KillAndGoOn(rows), 0u);
  log_->checkpoints().ReleaseOlderThan(1);
  EXPECT_EQ(log_->counters().dead_segments, 0u);
  log_->checkpoints().ReleaseOlderThan(2);
  EXPECT_GE(log_->counters().dead_segments, segments - 1);
}

// Whatever is asked of it, dead segments and footers that are still to be written among it.
TEST_F(RowLogCheckpoints, ALogThatIsOnlyReadDoesNotChange) {
  const uint64_t writer_bytes = budget_.used_bytes();
  AppendMany(1);
  const std::vector<SegmentRows> kept = Keep(1, /*is_kept=*/true);
  ASSERT_FALSE(kept.back().keys.empty()) << "a segment without a footer";
  Open(/*read_only=*/true);
  EXPECT_LT(budget_.used_bytes(), writer_bytes) << "buffers of nobody";
  const size_t changes = disk_.changes();
  disk_.SetReadOnly(true);
  std::vector<Location> rows;
  std::vector<Key> keys;
  const auto visit = [&](Location location, TableId table, Key key) {
    EXPECT_EQ(table, 1);
    rows.push_back(location);
    keys.push_back(key);
  };
  const LogOwners::Visit visitor = visit;
  for (const SegmentRows& segment : kept)
    ASSERT_TRUE(log_->recovery().Adopt(segment, 1, &visitor).ok());
  ASSERT_EQ(rows.size(), kRows);
  const auto expect_key = [&](size_t i, const Status& read, auto record) {
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(LoadRecordHeader(record).key, keys[i]);
  };
  ASSERT_TRUE(log_->reader().Read(rows, expect_key).ok());
  const auto appended = log_->appender().Append(
      LogStream::kUser, {.record_bytes = kRecordBytes, .table = 1, .key = 1});
  EXPECT_TRUE(IsFailedPrecondition(appended.status())) << appended.status();
  EXPECT_TRUE(IsFailedPrecondition(log_->appender().Flush()));
  EXPECT_TRUE(IsFailedPrecondition(log_->appender().Sync()));
  for (const Location row : rows) log_->segments().MarkDead(row);
  const uint64_t calls = disk_.calls();
  log_->checkpoints().ReleaseOlderThan(2);
  Open(/*read_only=*/false);
  EXPECT_EQ(disk_.calls(), calls) << "a segment was removed";
  EXPECT_EQ(disk_.changes(), changes);
}

TEST_F(RowLogCheckpoints, AfterASegmentsSyncThatFailedThereIsNone) {
  ExpectStopsAfterOneFailureOf(DiskCall::Kind::kSync);
}

TEST_F(RowLogCheckpoints, AfterASyncOfNamesThatFailedThereIsNone) {
  ExpectStopsAfterOneFailureOf(DiskCall::Kind::kSyncDirectory);
}

TEST_F(RowLogCheckpoints, FrozenRowsStayThoughTheyDie) {
  const std::vector<Location> rows = AppendMany(1);
  log_->checkpoints().Freeze(1);
  EXPECT_EQ(KillAndGoOn(rows), 0u);
  // Late ones for the checkpoint, that live or not, are in it; later ones are not.
  Append(7'000, 1);
  Append(7'001, 1, /*lives=*/false);
  Append(7'002, 2);
  const auto frozen = log_->checkpoints().SyncFrozen();
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  uint64_t count = 0;
  for (const SegmentRows& segment : *frozen) {
    for (uint32_t slot = 0; slot < segment.used_slots; ++slot) {
      count += segment.bits[slot / 64] >> (slot % 64) & 1;
    }
  }
  EXPECT_EQ(count, kRows + 2);
  log_->checkpoints().Thaw(true);
}

}  // namespace
}  // namespace embank::test::row_log_checkpoints_test
