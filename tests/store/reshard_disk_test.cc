// A reshard on a disk that fails, loses what was not durable, or has damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/str_cat.h"
#include "store/inspect/reshard.h"
#include "tests/support/export_world.h"
#include "tests/support/store_files.h"
#include "tests/support/trial_begin.h"

namespace embank::test::reshard_disk_test {
namespace {

using testing::HasSubstr;

std::unique_ptr<SimulatedDisk> CopyOf(const SimulatedDisk& disk) {
  return disk.AfterCrash(disk.changes(), Persistence::kAll, 0);
}

class ReshardOnADisk : public testing::Test {
 protected:
  ReshardOnADisk() : world_(kExportSeed) {
    MakeLast(&world_);
    last_ = *ReadAll(world_.get());
    world_.Close();
    world_.disk().ClearHistory();
    begin_ = CopyOf(world_.disk());
  }

  static Status Reshard(SimulatedDisk* disk) {
    auto opened = CheckpointRows::Open(disk, "log");
    if (!opened.ok()) return opened.status();
    std::vector<std::unique_ptr<CheckpointRows>> sources;
    if (!(*opened)->kept()[0].manifest.ok()) return (*opened)->kept()[0].manifest.status();
    sources.push_back(*std::move(opened));
    const Status chosen = ChooseCheckpoints(sources, std::vector<size_t>{0});
    if (!chosen.ok()) return chosen;
    const std::vector<ReshardTarget> targets = {{"job0", "zero"}, {"job1", "one"}};
    return ReshardStores(disk, sources, targets, {.now_ns = 1}, GoOn).status();
  }
  void ExpectWhole() {
    Tables all;
    for (const char* path : {"job0", "job1"}) {
      const auto store = OpenAt(&world_, path);
      ASSERT_TRUE(store.ok()) << store.status();
      Tables tables = *ReadAll(store->get());
      for (auto& [name, rows] : tables) all[name].merge(rows);
    }
    ASSERT_TRUE(all == last_);
  }

  SpillWorld world_;
  Tables last_;
  std::unique_ptr<SimulatedDisk> begin_;
};

TEST_F(ReshardOnADisk, NoFailureOfACallIsTakenForSuccess) {
  const auto source = FilesOfStore(*begin_);
  uint64_t failed = 0;
  bool met = true;
  for (uint64_t n = 1; met; ++n) {
    ASSERT_LT(n, 2000u);
    SCOPED_TRACE(n);
    world_.SetDisk(CopyOf(*begin_));
    SimulatedDisk& disk = world_.disk();
    const uint64_t first = disk.calls() + n;
    disk.SetFaults([&](const DiskCall& call) {
      return call.number == first ? ResourceExhaustedError("no space") : OkStatus();
    });
    const Status status = Reshard(&disk);
    disk.SetFaults(nullptr);
    met = disk.calls() >= first;
    EXPECT_TRUE(FilesOfStore(disk) == source);
    if (status.ok()) {
      ASSERT_NO_FATAL_FAILURE(ExpectWhole());
    } else {
      ++failed;
    }
  }
  EXPECT_GT(failed, 30u);
}

TEST_F(ReshardOnADisk, ACrashLeavesNoManifestWithoutItsSegments) {
  ASSERT_TRUE(Reshard(&world_.disk()).ok());
  const std::unique_ptr<SimulatedDisk> after = world_.TakeDisk();
  uint64_t whole = 0;
  for (uint64_t trial = 0; trial < 4 * (after->changes() + 1); ++trial) {
    const size_t change = trial % (after->changes() + 1);
    for (const Persistence persistence : kPersistences) {
      world_.SetDisk(after->AfterCrash(change, persistence, trial));
      const std::vector<std::string> files = world_.disk().Files();
      if (std::ranges::find(files, "job1/MANIFEST-00000001") == files.end()) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectWhole()) << change;
      ++whole;
    }
  }
  EXPECT_GT(whole, 0u);
  // It has returned OK.
  world_.SetDisk(after->AfterCrash(after->changes(), Persistence::kNone, 0));
  ExpectWhole();
}

TEST_F(ReshardOnADisk, DamageOfTheSourceIsNamed) {
  const Manifest manifest = *DecodeManifest(begin_->Contents(ManifestPath(2)));
  for (const SegmentRows& rows : manifest.segments) {
    const std::string path = SegmentPath(rows.header.segment_id);
    uint32_t slot = 0;
    while (!HasBit(rows.bits, slot)) ++slot;
    const auto geometry = SegmentGeometry::Of(rows.header.record_bytes, rows.header.segment_bytes);
    const auto expect = [&](const std::string& what) {
      const Status status = Reshard(&world_.disk());
      EXPECT_TRUE(IsDataLoss(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(StrCat("log: ", SegmentName(rows.header.segment_id), ": ", what)));
    };
    world_.SetDisk(CopyOf(*begin_));
    FlipBits(&world_.disk(), path, geometry.OffsetOf(slot) + 40, 8);
    expect(StrCat("the record in slot ", slot, " is damaged"));
    world_.SetDisk(CopyOf(*begin_));
    world_.disk().Truncate(path, kBlockBytes);
    expect("the segment is cut off");
    world_.SetDisk(CopyOf(*begin_));
    ASSERT_TRUE(world_.disk().Remove(path).ok());
    expect("the segment is missing");
  }
}

}  // namespace
}  // namespace embank::test::reshard_disk_test
