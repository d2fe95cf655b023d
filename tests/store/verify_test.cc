// Each kind of damage is named, with its rows; whole parts are not.
#include "store/inspect/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/sealed_bytes.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_files.h"

namespace embank::test::verify_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSeed = 17;

StatusOr<VerifyReport> Verify(FileSystem* files, const std::string& path = "log") {
  return VerifyStore(files, path, [](uint64_t, uint64_t) { return true; });
}

// Bytes of a record of a row of kDim, and of a segment's slots.
uint32_t RecordBytes() {
  return RecordBytesOf(MakeRowLayout(kDim, ValueType::kF32, Optimizer::kNone).row_bytes);
}
uint64_t OffsetOfSlot(uint64_t slot) { return kBlockBytes + slot * RecordBytes(); }

// A store of two checkpoints, closed: rows 1 to 150, then 100 to 249 written again.
class Verifying : public testing::Test {
 protected:
  Verifying() : world_(kSeed) {
    Table* const table = world_.Create("t", Optimizer::kNone);
    for (const Key first : {1, 100}) {
      Put(table, KeysFrom(first, 150), static_cast<float>(first));
      EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
    }
    world_.Close();
    EXPECT_EQ(IsInPmem(SegmentPathsOf(disk(), 2)[0]), WithPmem());
  }

  SimulatedDisk& disk() { return world_.disk(); }
  VerifyReport Report() {
    const auto before = Everything(disk());
    auto report = Verify(&disk());
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(Everything(disk()) == before) << "it has written";
    if (!report.ok()) return {};
    EXPECT_EQ(report->checkpoints.size(), 2u);
    return *std::move(report);
  }
  // One damage, of that part, whose words have that.
  Damage OneDamage(const VerifyReport& report, DamagedPart part, const std::string& path,
                   const std::string& what) {
    EXPECT_FALSE(report.clean());
    EXPECT_EQ(report.damage.size(), 1u) << FormatVerifyReport(report);
    if (report.damage.empty()) return {};
    const Damage& damage = report.damage[0];
    EXPECT_EQ(PartName(damage.part), std::string(PartName(part)));
    EXPECT_EQ(PathOfNamed(damage.file), path);
    EXPECT_THAT(damage.what, HasSubstr(what));
    return damage;
  }
  // The manifest of a checkpoint, changed by `change`, which leaves its length.
  void Rewrite(int checkpoint, const std::function<void(Manifest*)>& change) {
    StatusOr<Manifest> manifest = DecodeManifest(disk().Contents(ManifestPath(checkpoint)));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    change(&*manifest);
    disk().Corrupt(ManifestPath(checkpoint), 0, EncodeManifest(*manifest));
  }
  // A slot of a segment in which the newest checkpoint has a row, and maybe the older one.
  uint32_t LiveSlot(const std::string& path, bool also_older) {
    const Manifest newest = *DecodeManifest(disk().Contents(ManifestPath(2)));
    const Manifest older = *DecodeManifest(disk().Contents(ManifestPath(1)));
    const auto lives = [&](const Manifest& manifest, uint32_t slot) {
      for (const SegmentRows& rows : manifest.segments) {
        if (SegmentPath(rows.header.segment_id) != path) continue;
        return slot < rows.used_slots && (rows.bits[slot / 64] >> (slot % 64) & 1) != 0;
      }
      return false;
    };
    for (uint32_t slot = 0; slot < 60; ++slot) {
      if (lives(newest, slot) && lives(older, slot) == also_older) return slot;
    }
    ADD_FAILURE() << "there is none";
    return 0;
  }
  void DamageFooter(const std::string& path) {
    FlipBits(&disk(), path, disk().Contents(path).size() - 9, 4);
  }

  SpillWorld world_;
};

TEST_F(Verifying, AWholeStoreIsCleanAndItsRowsAreCounted) {
  const VerifyReport report = Report();
  EXPECT_TRUE(report.clean()) << FormatVerifyReport(report);
  EXPECT_EQ(report.checkpoints[0].checkpoint, 2u);
  EXPECT_EQ(report.checkpoints[0].rows, 249u);
  EXPECT_EQ(report.checkpoints[1].checkpoint, 1u);
  EXPECT_EQ(report.checkpoints[1].rows, 150u);
  for (const VerifiedCheckpoint& checkpoint : report.checkpoints) {
    EXPECT_TRUE(checkpoint.opens && checkpoint.is_readable);
    ASSERT_EQ(checkpoint.tables.size(), 1u);
    EXPECT_EQ(checkpoint.tables[0].name, "t");
    EXPECT_EQ(checkpoint.tables[0].rows, checkpoint.rows);
  }
  EXPECT_EQ(report.segments, SegmentPaths(disk()).size());
  EXPECT_GT(report.read_bytes, 249 * RecordBytes());
  EXPECT_EQ(report.orphans.count + report.undecided.count, 0u);
}

TEST_F(Verifying, ADamagedRecordIsNamedWithItsKeyInEachCheckpointThatHasIt) {
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  const uint32_t slot = LiveSlot(path, /*also_older=*/true);
  FlipBits(&disk(), path, OffsetOfSlot(slot) + 40, 1);
  const VerifyReport report = Report();
  const Damage damage = OneDamage(report, DamagedPart::kRecords, path, "damaged");
  EXPECT_EQ(damage.first_slot, slot);
  EXPECT_EQ(damage.slots, 1u);
  ASSERT_EQ(damage.lost.size(), 2u);
  EXPECT_EQ(damage.lost[0].checkpoint, 2u);
  EXPECT_EQ(damage.lost[1].checkpoint, 1u);
  for (const LostRows& lost : damage.lost) {
    EXPECT_EQ(lost.table, "t");
    EXPECT_EQ(lost.rows, 1u);
    EXPECT_EQ(lost.keys, damage.lost[0].keys);
    ASSERT_EQ(lost.keys.size(), 1u);
  }
  EXPECT_TRUE(report.checkpoints[0].opens);
  EXPECT_EQ(report.checkpoints[0].rows_lost, 1u);
  EXPECT_EQ(report.checkpoints[0].tables[0].rows_lost, 1u);
  EXPECT_EQ(report.checkpoints[0].tables[0].rows, 249u);
  ASSERT_TRUE(world_.Open().ok());
  Table* const table = *world_->catalog().Open("t");
  std::vector<float> row(kDim);
  std::vector<uint8_t> outcome(1);
  ASSERT_TRUE(
      Lookup(table, damage.lost[0].keys, MissingRule::kSkip, RowsIn(&row, kDim), outcome).ok());
  EXPECT_EQ(outcome[0], static_cast<uint8_t>(Outcome::kDataLoss));
}

TEST_F(Verifying, AdjoiningDamagedRecordsAreOneDamage) {
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  for (const uint32_t slot : {3, 4, 5, 9}) {
    FlipBits(&disk(), path, OffsetOfSlot(slot) + 100, 1);
  }
  const VerifyReport report = Report();
  ASSERT_EQ(report.damage.size(), 2u) << FormatVerifyReport(report);
  EXPECT_EQ(report.damage[0].first_slot, 3u);
  EXPECT_EQ(report.damage[0].slots, 3u);
  EXPECT_EQ(report.damage[1].first_slot, 9u);
  EXPECT_EQ(report.checkpoints[1].rows_lost, 4u);
}

TEST_F(Verifying, ADamagedHeaderCostsNoRow) {
  const std::string path = SegmentPathsOf(disk(), 2)[1];
  FlipBits(&disk(), path, 24, 4);
  const VerifyReport report = Report();
  EXPECT_TRUE(OneDamage(report, DamagedPart::kHeader, path, "header").lost.empty());
  EXPECT_TRUE(report.checkpoints[0].opens && report.checkpoints[1].opens);
}

TEST_F(Verifying, ADamagedFooterCostsNoRowUnlessARecordIsDamagedToo) {
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  DamageFooter(path);
  VerifyReport report = Report();
  EXPECT_TRUE(OneDamage(report, DamagedPart::kFooter, path, "footer").lost.empty());
  EXPECT_TRUE(report.checkpoints[0].opens);
  EXPECT_EQ(report.checkpoints[0].tables[0].rows, 249u) << "the records say whose they are";

  FlipBits(&disk(), path, OffsetOfSlot(LiveSlot(path, true)) + 40, 1);
  report = Report();
  ASSERT_EQ(report.damage.size(), 2u);
  EXPECT_FALSE(report.checkpoints[0].opens);
  // A manifest has the keys of a segment that was not full.
  if (!WithPmem()) {
    EXPECT_FALSE(report.checkpoints[1].opens);
  }
  ASSERT_EQ(report.damage[1].lost.size(), 2u);
  EXPECT_EQ(report.damage[1].lost[0].table, "t") << "it is the only one of the class";
  EXPECT_TRUE(report.damage[1].lost[0].keys.empty());
  EXPECT_TRUE(IsDataLoss(world_.Open()));
}

TEST_F(Verifying, AFooterOfFewerSlotsThanTheCheckpointHasIsDamaged) {
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  const SegmentHeader header =
      *DecodeSegmentHeader(std::span<const std::byte>(disk().Contents(path)).first(kBlockBytes));
  const auto geometry = SegmentGeometry::Of(header.record_bytes, header.segment_bytes);
  std::vector<std::byte> footer(geometry.footer_bytes);
  const std::vector<Key> keys = KeysFrom(1, 5);
  const std::vector<TableId> tables(5);
  EncodeSegmentFooter(header, {keys, tables}, footer);
  disk().Corrupt(path, geometry.footer_offset, footer);
  const VerifyReport report = Report();
  EXPECT_TRUE(OneDamage(report, DamagedPart::kFooter, path, "too few slots").lost.empty());
  EXPECT_TRUE(report.checkpoints[0].opens);
  EXPECT_TRUE(world_.Open().ok());
}

TEST_F(Verifying, AFooterThatTheDeviceDoesNotGiveStopsAnOpening) {
  for (const std::string& path : SegmentPathsOf(disk(), 2)) {
    uint64_t reads = 0;
    const auto fail_footer = [&](const DiskCall& call) {
      if (call.kind != DiskCall::Kind::kRead || call.path != path) return OkStatus();
      return ++reads == 2 ? UnavailableError("bad sector") : OkStatus();
    };
    disk().SetFaults(fail_footer);
    const VerifyReport report = *Verify(&disk());
    OneDamage(report, DamagedPart::kFooter, path, "bad sector");
    EXPECT_EQ(report.checkpoints[0].rows_lost, 0u);
    for (const VerifiedCheckpoint& checkpoint : report.checkpoints) {
      reads = 0;
      disk().SetFaults(fail_footer);
      EXPECT_EQ(world_.Open(!checkpoint.is_newest).ok(), checkpoint.opens) << path;
      disk().SetFaults(nullptr);
      world_.Close();
    }
    EXPECT_FALSE(report.checkpoints[0].opens && report.checkpoints[1].opens);
  }
}

TEST_F(Verifying, AMissingSegmentTakesItsRowsAndTheCheckpoints) {
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  ASSERT_TRUE(disk().Remove(path).ok());
  const VerifyReport report = Report();
  const Damage damage = OneDamage(report, DamagedPart::kFile, path, "missing");
  EXPECT_FALSE(report.checkpoints[0].opens || report.checkpoints[1].opens);
  ASSERT_EQ(damage.lost.size(), 2u);
  EXPECT_GT(damage.lost[0].rows, 10u);
  EXPECT_EQ(damage.lost[0].rows, report.checkpoints[0].rows_lost);
}

TEST_F(Verifying, ACutSegmentLosesWhatIsBehind) {
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  disk().Truncate(path, 40 * kBlockBytes);
  VerifyReport report = Report();
  ASSERT_EQ(report.damage.size(), 2u) << FormatVerifyReport(report);
  EXPECT_EQ(report.damage[0].part, DamagedPart::kFooter);
  EXPECT_EQ(report.damage[1].part, DamagedPart::kFile);
  EXPECT_GT(report.damage[1].lost.at(0).rows, 10u);
  EXPECT_FALSE(report.checkpoints[0].opens);
  disk().Truncate(path, kBlockBytes - 1);
  OneDamage(Report(), DamagedPart::kFile, path, "cut off");
}

TEST_F(Verifying, ALongerSegmentIsNamed) {
  if (WithPmem()) GTEST_SKIP() << "a file that is mapped does not grow";
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  const auto file = disk().Open(path, FileAccess::kWrite, FileCaching::kCached);
  ASSERT_TRUE((*file)->Write(64 * kBlockBytes, std::vector<std::byte>(5)).ok());
  EXPECT_TRUE(OneDamage(Report(), DamagedPart::kFile, path, "262149 bytes").lost.empty());
}

TEST_F(Verifying, AnotherSegmentsBytesAreNamed) {
  const auto paths = SegmentPathsOf(disk(), 2);
  disk().Corrupt(paths[0], 0, disk().Contents(paths[1]));
  const VerifyReport report = Report();
  const Damage damage = OneDamage(report, DamagedPart::kHeader, paths[0], "another segment");
  EXPECT_EQ(damage.lost.size(), 2u);
  EXPECT_FALSE(report.checkpoints[0].opens);
}

TEST_F(Verifying, ADamagedNewestManifestLeavesThePreviousCheckpoint) {
  FlipBits(&disk(), ManifestPath(2), 60, 4);
  const VerifyReport report = Report();
  EXPECT_TRUE(OneDamage(report, DamagedPart::kManifest, ManifestPath(2), "damaged").lost.empty());
  EXPECT_FALSE(report.checkpoints[0].is_readable || report.checkpoints[0].opens);
  EXPECT_TRUE(report.checkpoints[1].opens);
  EXPECT_EQ(report.checkpoints[1].rows, 150u);
  EXPECT_GT(report.undecided.count, 0u) << "segments that only it knows";
  EXPECT_EQ(report.orphans.count, 0u);
}

TEST_F(Verifying, ADamagedOrMissingPreviousManifestIsNamed) {
  FlipBits(&disk(), ManifestPath(1), 60, 4);
  OneDamage(Report(), DamagedPart::kManifest, ManifestPath(1), "damaged");
  ASSERT_TRUE(disk().Remove(ManifestPath(1)).ok());
  const VerifyReport report = Report();
  OneDamage(report, DamagedPart::kManifest, ManifestPath(1), "");
  EXPECT_TRUE(report.checkpoints[0].opens);
  EXPECT_FALSE(report.checkpoints[1].opens);
  // As at an opening, files that only that manifest named belong to no checkpoint.
  EXPECT_EQ(report.undecided.count, 0u);
  const size_t segments = SegmentPaths(disk()).size();
  ASSERT_TRUE(world_.Open().ok());
  world_.Close();
  EXPECT_EQ(SegmentPaths(disk()).size() + report.orphans.count, segments);
}

TEST_F(Verifying, SegmentsWithoutManifestsAreADamagedStore) {
  ASSERT_TRUE(disk().Remove(ManifestPath(1)).ok());
  ASSERT_TRUE(disk().Remove(ManifestPath(2)).ok());
  const auto report = Verify(&disk());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->clean());
  EXPECT_THAT(report->damage.at(0).what, HasSubstr("no manifest"));
  // Only a manifest says where the PMem is.
  std::vector<std::string> segments = SegmentPaths(disk());
  std::erase_if(segments, IsInPmem);
  EXPECT_EQ(report->undecided.count, segments.size());
}

// ---- files that stand, and do not agree ----

TEST_F(Verifying, AFooterThatNamesOtherRowsIsNamed) {
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  const uint32_t slot = LiveSlot(path, true);
  const uint64_t segment_bytes = disk().Contents(path).size();
  const auto geometry = SegmentGeometry::Of(RecordBytes(), segment_bytes);
  std::vector<std::byte> footer = disk().Contents(path);
  footer.erase(footer.begin(), footer.begin() + static_cast<ptrdiff_t>(geometry.footer_offset));
  PutAt<Key>(footer, slot * sizeof(Key), 77'777);
  SealAgain(footer);
  disk().Corrupt(path, geometry.footer_offset, footer);
  const Damage damage = OneDamage(Report(), DamagedPart::kRecords, path, "another row's");
  EXPECT_EQ(damage.first_slot, slot);
  EXPECT_THAT(damage.lost.at(0).keys, ElementsAre(77'777));
}

TEST_F(Verifying, ABitmapThatDoesNotSuitItsSlotsIsNamed) {
  const std::vector<std::byte> whole = disk().Contents(ManifestPath(2));
  for (const std::string words : {" has no row", " has a row after its used slots"}) {
    disk().Corrupt(ManifestPath(2), 0, whole);
    Rewrite(2, [&](Manifest* manifest) {
      std::vector<uint64_t>& bits = manifest->segments[0].bits;
      ASSERT_NE(manifest->segments[0].used_slots % 64, 0u);
      std::ranges::fill(bits, 0);
      if (words != " has no row") bits.back() = uint64_t{1} << 63;
    });
    OneDamage(Report(), DamagedPart::kManifest, ManifestPath(2), words);
  }
}

TEST_F(Verifying, ATableThatTheCheckpointDoesNotHaveIsNamed) {
  Rewrite(2, [](Manifest* manifest) { manifest->tables[0].id = 9; });
  const VerifyReport report = Report();
  EXPECT_FALSE(report.clean());
  EXPECT_FALSE(report.checkpoints[0].opens);
  EXPECT_TRUE(report.checkpoints[1].opens);
  EXPECT_EQ(report.checkpoints[0].rows_lost, 249u);
  EXPECT_THAT(report.damage[0].what, HasSubstr("no such rows"));
  EXPECT_TRUE(IsDataLoss(world_.Open()));
}

TEST_F(Verifying, RecordsThatAreNewerThanTheCheckpointAreNamed) {
  Rewrite(2, [](Manifest* manifest) { manifest->next_sequence = 5; });
  const VerifyReport report = Report();
  EXPECT_THAT(report.damage.at(0).what, HasSubstr("newer than the checkpoint"));
  EXPECT_GT(report.checkpoints[0].rows_lost, 200u);
  EXPECT_EQ(report.checkpoints[1].rows_lost, 0u);
}

TEST_F(Verifying, ManifestsThatContradictEachOtherAreNamed) {
  Rewrite(1, [](Manifest* manifest) { manifest->store_id ^= 1; });
  const VerifyReport report = Report();
  EXPECT_TRUE(std::ranges::any_of(report.damage, [](const Damage& damage) {
    return damage.part == DamagedPart::kManifest && damage.file == "MANIFEST-00000001";
  })) << FormatVerifyReport(report);
  EXPECT_EQ(report.checkpoints[0].rows_lost, 0u);
  EXPECT_TRUE(report.checkpoints[0].opens);
  EXPECT_FALSE(report.checkpoints[1].opens);
  EXPECT_TRUE(IsDataLoss(world_.Open(/*previous=*/true)));
}

// ---- no damage ----

TEST_F(Verifying, FilesOfNobodyAreToldAndAreNoDamage) {
  const std::vector<std::string> names = {"MANIFEST-00000001.new", "MANIFEST-00000000",
                                          "segment-00000000000fffff"};
  for (const std::string& name : names) {
    ASSERT_TRUE(disk().Open("log/" + name, FileAccess::kCreate, FileCaching::kCached).ok());
  }
  const VerifyReport report = Report();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.orphans.names, names);
  ASSERT_TRUE(world_.Open().ok());
  world_.Close();
  EXPECT_EQ(Report().orphans.count, 0u) << "the opening has removed them";
}

TEST_F(Verifying, RowsThatAreGoneAreNotLookedAt) {
  const Manifest newest = *DecodeManifest(disk().Contents(ManifestPath(2)));
  const Manifest older = *DecodeManifest(disk().Contents(ManifestPath(1)));
  ASSERT_TRUE(world_.Open().ok());
  Put(*world_->catalog().Open("t"), KeysFrom(1, 249), 9.0f);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  world_.Close();
  // Only the second segment of the first checkpoint has rows.
  for (const SegmentRows& rows : older.segments) {
    const std::string path = SegmentPath(rows.header.segment_id);
    for (const SegmentRows& later : newest.segments) {
      if (later.header.segment_id != rows.header.segment_id) continue;
      for (uint32_t slot = 0; slot < rows.used_slots; ++slot) {
        if (!(later.bits[slot / 64] >> (slot % 64) & 1)) {
          FlipBits(&disk(), path, OffsetOfSlot(slot) + 40, 1);
        }
      }
    }
  }
  EXPECT_TRUE(Report().clean());
}

// ---- no report ----

TEST_F(Verifying, ANewerFormatIsRefusedByItsNumber) {
  const std::string segment = SegmentPathsOf(disk(), 2)[0];
  const std::vector<std::byte> own = disk().Contents(segment);
  std::vector<std::byte> header(own.begin(), own.begin() + kBlockBytes);
  PutAt<uint32_t>(header, 8, 8);
  SealAgain(header);
  disk().Corrupt(segment, 0, header);
  Status status = Verify(&disk()).status();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 8"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("segment-"));

  std::vector<std::byte> manifest = disk().Contents(ManifestPath(2));
  PutAt<uint32_t>(manifest, 8, 7);
  SealAgain(manifest);
  disk().Corrupt(ManifestPath(2), 0, manifest);
  status = Verify(&disk()).status();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 7"));
}

TEST_F(Verifying, AStoreThatIsOpenIsNotTouchedAndOneBeingVerifiedIsNotOpened) {
  ASSERT_TRUE(world_.Open().ok());
  const Status status = Verify(&disk()).status();
  EXPECT_TRUE(IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("LOCK"));
  world_.Close();
  const auto report = VerifyStore(&disk(), "log", [&](uint64_t, uint64_t) {
    EXPECT_TRUE(IsUnavailable(world_.OpenBeside().status()));
    EXPECT_TRUE(Verify(&disk()).ok()) << "two who read are in nobody's way";
    return true;
  });
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(world_.Open().ok());
}

TEST_F(Verifying, WhereThereIsNoStoreNothingIsMade) {
  EXPECT_TRUE(IsNotFound(Verify(&disk(), "elsewhere").status()));
  ASSERT_TRUE(disk().CreateDirectory("empty").ok());
  EXPECT_TRUE(IsNotFound(Verify(&disk(), "empty").status()));
  ASSERT_TRUE(disk().Open("empty/LOCK", FileAccess::kCreate, FileCaching::kCached).ok());
  EXPECT_TRUE(IsNotFound(Verify(&disk(), "empty").status()));
}

TEST_F(Verifying, ProgressCountsSegmentsAndCancels) {
  std::vector<uint64_t> told;
  const uint64_t segments = SegmentPaths(disk()).size();
  ASSERT_TRUE(VerifyStore(&disk(), "log", [&](uint64_t done, uint64_t total) {
                EXPECT_EQ(total, segments);
                told.push_back(done);
                return true;
              }).ok());
  ASSERT_EQ(told.size(), segments + 1);
  for (uint64_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], i);
  for (uint64_t stop = 0; stop <= segments; ++stop) {
    uint64_t calls = 0;
    const Status status = VerifyStore(&disk(), "log", [&](uint64_t done, uint64_t) {
                            ++calls;
                            return done != stop;
                          }).status();
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
    EXPECT_EQ(calls, stop + 1);
  }
}

// If a device fails, the data that it does not read counts as damaged; if the reader is hindered,
// the call fails.
TEST_F(Verifying, EveryReadThatFailsIsDamageOrToldAndHurtsNothingElse) {
  uint64_t fault_at = 0;
  uint64_t reads = 0;
  Status fault;
  disk().SetFaults([&](const DiskCall& call) {
    if (call.kind != DiskCall::Kind::kRead && call.kind != DiskCall::Kind::kOpen) {
      return OkStatus();
    }
    return ++reads == fault_at ? fault : OkStatus();
  });
  uint64_t one_record = 0;
  for (bool met = true; met;) {
    ++fault_at;
    reads = 0;
    fault = UnavailableError("no answer");
    const auto report = Verify(&disk());
    met = reads >= fault_at;
    ASSERT_TRUE(report.ok()) << report.status();
    // A large read that fails is read again, in small pieces, and nothing is lost.
    const bool again = reads > fault_at && report->clean();
    EXPECT_TRUE(!met || again || !report->clean()) << fault_at;
    one_record += again ? 1 : 0;
    reads = 0;
    fault = ResourceExhaustedError("no descriptors");
    const Status hindered = Verify(&disk()).status();
    EXPECT_TRUE(hindered.ok() || IsResourceExhausted(hindered)) << hindered;
  }
  EXPECT_GT(fault_at, 10u);
  EXPECT_GT(one_record, 0u);
}

TEST_F(Verifying, ARecordThatCannotBeReadIsNamedAlone) {
  const std::string path = SegmentPathsOf(disk(), 2)[0];
  uint64_t reads = 0;
  // The reads of the segment: header, footer, the window, then slot after slot.
  disk().SetFaults([&](const DiskCall& call) {
    if (call.kind != DiskCall::Kind::kRead || call.path != path) return OkStatus();
    ++reads;
    return reads == 3 || reads == 8 ? UnavailableError("bad sector") : OkStatus();
  });
  const VerifyReport report = *Verify(&disk());
  const Damage damage = OneDamage(report, DamagedPart::kRecords, path, "bad sector");
  EXPECT_EQ(damage.slots, 1u);
  EXPECT_EQ(damage.lost.at(0).rows, 1u);
}

// ---- crashes damage nothing ----

TEST(Verify, ACrashLeavesNoDamage) {
  SpillWorld world(kSeed);
  world.Create("t", Optimizer::kNone);
  world.Create("other", Optimizer::kAdagrad, 16);
  for (int round = 0; round < 5; ++round) {
    Put(*world->catalog().Open("t"), KeysFrom(static_cast<Key>(round) * 60, 150), 1.0f);
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    if (round != 2) continue;
    ASSERT_TRUE(world.Open().ok());
  }
  world.Close();
  Random random(kSeed);
  uint64_t stores = 0;
  const size_t changes = world.disk().changes();
  for (size_t change = 0; change <= changes; change += 1 + random.Below(3)) {
    for (const Persistence persistence :
         {Persistence::kNone, Persistence::kAll, Persistence::kSome, Persistence::kTorn}) {
      const auto left = world.disk().AfterCrash(change, persistence, random.Bits());
      const auto report = Verify(left.get());
      if (IsNotFound(report.status())) continue;  // it has not begun
      ASSERT_TRUE(report.ok()) << report.status();
      ASSERT_TRUE(report->clean()) << change << " " << FormatVerifyReport(*report);
      ++stores;
    }
  }
  EXPECT_GT(stores, changes);
}

// ---- the report ----

TEST(VerifyReport, IsJsonWhateverBytesNamesHave) {
  VerifyReport report = {.directory = "a \"store\"\\\n\x01\xff"};
  report.checkpoints.push_back(
      {.checkpoint = 3,
       .is_newest = true,
       .opens = false,
       .is_readable = true,
       .rows = 5,
       .rows_lost = 2,
       .tables = {{.name = "\xc3\xa9\xed\xa0\x80", .rows = 5, .rows_lost = 2}}});
  report.checkpoints.push_back(
      {.checkpoint = 2, .is_newest = false, .opens = false, .is_readable = false});
  report.damage_count = 7;
  report.damage.push_back({.file = "segment-1",
                           .part = DamagedPart::kRecords,
                           .what = "gone",
                           .first_slot = 4,
                           .slots = 2,
                           .lost = {{.checkpoint = 3, .table = "", .rows = 2, .keys = {~Key{0}}}}});
  report.orphans = {1, {"segment-2"}};
  const auto json = nlohmann::json::parse(FormatVerifyReport(report));
  EXPECT_EQ(json["directory"], "a \"store\"\\\n\x01\ufffd");
  EXPECT_EQ(json["clean"], false);
  EXPECT_EQ(json["checkpoints"][0]["role"], "newest");
  EXPECT_EQ(json["checkpoints"][0]["tables"][0]["table"], "\u00e9\ufffd\ufffd\ufffd");
  EXPECT_EQ(json["checkpoints"][1]["rows"], nullptr);
  EXPECT_EQ(json["damage_count"], 7);
  EXPECT_EQ(json["damage"][0]["part"], "records");
  EXPECT_EQ(json["damage"][0]["first_slot"], 4);
  EXPECT_EQ(json["damage"][0]["slots"], 2);
  EXPECT_EQ(json["damage"][0]["lost"][0]["table"], nullptr);
  EXPECT_EQ(json["damage"][0]["lost"][0]["keys"][0], ~uint64_t{0});
  EXPECT_EQ(json["orphans"]["files"][0], "segment-2");
  EXPECT_EQ(json["undecided"]["count"], 0);
}

}  // namespace
}  // namespace embank::test::verify_test
