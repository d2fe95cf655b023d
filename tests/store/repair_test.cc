// The rows that repair saves, for each kind of damage, and with a failure at any one step.
#include "store/inspect/repair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/state.h"
#include "store/inspect/survey.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/export_world.h"
#include "tests/support/store_files.h"
#include "tests/support/trial_begin.h"

namespace embank::test::repair_test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kStepsMax = 3000;  // no repair takes so many
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStride = 11;
#else
constexpr uint64_t kStride = 1;
#endif

// With PMem one in some: the suite runs without it, too.
uint64_t Stride() { return WithPmem() ? 5 * kStride : kStride; }

StatusOr<RepairReport> Repair(SimulatedDisk* disk, bool previous = false) {
  return RepairStore(disk, {.directory = "log", .target = "saved", .previous = previous}, GoOn);
}

// A store of two checkpoints, closed: of two row classes, with state, heat and a blob.
class RepairTest : public testing::Test {
 protected:
  RepairTest() : world_(kExportSeed) {
    MakeLast(&world_);
    Table* const wide = *world_->catalog().Open("wide");
    const std::vector<float> ones(size_t{20} * kDim, 1.0f);
    EXPECT_TRUE(ApplyGradients(wide, KeysFrom(1, 20), RowsOf(ones, kDim), {}).ok());
    EXPECT_TRUE(world_->CreateTable("empty", OptionsOf(kDim)).ok());
    LookUp(*world_->catalog().Open("t"), KeysFrom(40, 30));
    EXPECT_TRUE(world_->checkpoints()->Make(BlobOf(kExportBlob)).ok());  // the third
    last_ = *ReadAll(world_.get());
    state_ = StateOf(world_.get());
    heat_ = HeatOf(world_.get());
    world_.Close();
    EXPECT_EQ(IsInPmem(SegmentPathsOf(disk(), 3)[0]), WithPmem());
  }

  SimulatedDisk& disk() { return world_.disk(); }
  static std::vector<float> StateOf(Store* store) {
    std::vector<float> state(size_t{20} * kDim);
    EXPECT_TRUE(
        GetState(*store->catalog().Open("wide"), KeysFrom(1, 20), RowsIn(&state, kDim), {}).ok());
    return state;
  }
  static std::vector<uint32_t> HeatOf(Store* store) {
    std::vector<uint32_t> heat(220);
    std::vector<uint8_t> outcomes(heat.size());
    EXPECT_TRUE(GetHeat(*store->catalog().Open("t"), KeysFrom(11, 220), heat, outcomes).ok());
    return heat;
  }
  // A repair that must succeed, and leaves the source as it is.
  RepairReport Repaired(bool previous = false) {
    const auto before = FilesOfStore(disk());
    const auto report = Repair(&disk(), previous);
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(FilesOfStore(disk()) == before);
    return report.ok() ? *report : RepairReport{};
  }
  void ExpectRefused(StatusCode code, const std::string& what, bool previous = false) {
    const auto report = Repair(&disk(), previous);
    EXPECT_EQ(report.status().code(), code) << report.status();
    EXPECT_THAT(std::string(report.status().message()), HasSubstr(what));
    EXPECT_TRUE(FilesWith(disk(), "saved/").empty());
  }
  // The store that was made, of which only these rows of "t" are missing.
  void ExpectSavedBut(std::vector<Key> missing) {
    Tables expected = last_;
    for (const Key key : missing) expected["t"].erase(key);
    const auto store = OpenAt(&world_, "saved");
    ASSERT_TRUE(store.ok()) << store.status();
    ExpectIs(store->get(), expected);
  }
  // A segment in which only the last checkpoint's rows of "t" live, and the keys of all of them.
  std::string SegmentOfT(std::vector<Key>* keys) {
    const Manifest manifest = *DecodeManifest(disk().Contents(ManifestPath(3)));
    for (const SegmentRows& rows : manifest.segments) {
      const std::string path = SegmentPath(rows.header.segment_id);
      const std::vector<std::byte> file = disk().Contents(path);
      const auto geometry =
          SegmentGeometry::Of(rows.header.record_bytes, rows.header.segment_bytes);
      const auto footer =
          DecodeSegmentFooter(rows.header, std::span(file).subspan(geometry.footer_offset));
      if (!rows.keys.empty() || !footer.ok()) continue;
      keys->clear();
      for (uint32_t slot = 0; slot < rows.used_slots; ++slot) {
        if ((rows.bits[slot / 64] >> (slot % 64) & 1) == 0) continue;
        if (footer->tables[slot] == manifest.tables[0].id) keys->push_back(footer->keys[slot]);
      }
      if (keys->size() > 5) return path;
    }
    ADD_FAILURE() << "there is none";
    return "";
  }
  // The place of the record of a key in a segment.
  uint64_t OffsetOf(const std::string& path, Key key) {
    const std::vector<std::byte> file = disk().Contents(path);
    const auto header = DecodeSegmentHeader(std::span(file).first(kBlockBytes));
    const auto geometry = SegmentGeometry::Of(header->record_bytes, header->segment_bytes);
    const auto footer =
        DecodeSegmentFooter(*header, std::span(file).subspan(geometry.footer_offset));
    uint64_t offset = 0;
    for (uint32_t slot = 0; slot < footer->keys.size(); ++slot) {
      if (footer->keys[slot] == key) offset = geometry.OffsetOf(slot);
    }
    return offset;
  }
  void DamageFooter(const std::string& path) {
    FlipBits(&disk(), path, disk().Contents(path).size() - 9, 4);
  }

  SpillWorld world_;
  Tables last_;
  std::vector<float> state_;
  std::vector<uint32_t> heat_;
};

TEST_F(RepairTest, AWholeStoreIsSavedWhole) {
  const RepairReport report = Repaired();
  EXPECT_TRUE(report.is_whole()) << FormatRepairReport(report);
  EXPECT_EQ(report.checkpoint, 3u);
  EXPECT_EQ(report.rows_saved, last_["t"].size() + last_["wide"].size());
  EXPECT_EQ(report.tables.size(), 3u);
  const auto store = OpenAt(&world_, "saved");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(HeatOf(store->get()), heat_);
  EXPECT_EQ(StateOf(store->get()), state_);
  ExpectIs(store->get(), last_);
  EXPECT_GT(*std::max_element(heat_.begin(), heat_.end()), 1u);
  const auto blob = (*store)->checkpoints()->Blob();
  ASSERT_TRUE(blob.ok());
  EXPECT_TRUE(std::equal(blob->begin(), blob->end(), BlobOf(kExportBlob).begin(),
                         BlobOf(kExportBlob).end()));
  // Tables with their options and numbers, seed, blob, heat.
  Manifest before = *DecodeManifest(disk().Contents(ManifestPath(3)));
  Manifest after = *DecodeManifest(disk().Contents("saved/MANIFEST-00000003"));
  EXPECT_EQ(after.previous, 3u) << "there is none before it";
  after.previous = before.previous;
  before.directories = {};
  before.segments.clear();
  after.segments.clear();
  EXPECT_TRUE(EncodeManifest(after) == EncodeManifest(before));
}

TEST_F(RepairTest, TheStoreThatIsMadeLivesOn) {
  Repaired();
  for (int round = 0; round < 3; ++round) {
    auto store = OpenAt(&world_, "saved");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_NO_FATAL_FAILURE(ChangeAll(store->get(), static_cast<float>(round + 2)));
    const Tables now = *ReadAll(store->get());
    ASSERT_TRUE((*store)->checkpoints()->Make({}).ok());
    store->reset();
    store = OpenAt(&world_, "saved");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_NO_FATAL_FAILURE(ExpectIs(store->get(), now));
  }
  ASSERT_TRUE(world_.Open().ok());
  ExpectIs(world_.get(), last_);
}

TEST_F(RepairTest, NamesTheKeyOfADamagedRecord) {
  std::vector<Key> keys;
  const std::string path = SegmentOfT(&keys);
  FlipBits(&disk(), path, OffsetOf(path, keys[2]) + 77, 8);
  const RepairReport report = Repaired();
  EXPECT_FALSE(report.is_whole());
  EXPECT_EQ(report.rows_lost, 1u);
  ASSERT_EQ(report.losses.size(), 1u);
  EXPECT_EQ(PathOfNamed(report.losses[0].file), path);
  EXPECT_EQ(report.losses[0].table, "t");
  EXPECT_EQ(report.losses[0].keys, std::vector<Key>{keys[2]});
  EXPECT_THAT(report.losses[0].what, HasSubstr("damaged"));
  ExpectSavedBut({keys[2]});
}

TEST_F(RepairTest, TheNewStoreCountsTheRowsThatAreLost) {
  std::vector<Key> keys;
  const std::string path = SegmentOfT(&keys);
  FlipBits(&disk(), path, OffsetOf(path, keys[2]) + 77, 8);
  ASSERT_EQ(Repaired().rows_lost, 1u);
  EXPECT_EQ(SurveyStore(&disk(), "saved")->rows_lost, 1u);
  world_.SetPath("saved");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(world_.Open().ok());
    EXPECT_EQ(world_->checkpoints()->Report().rows_lost, 1u);
    ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  }
  world_.Close();
  const auto again = RepairStore(&disk(), {.directory = "saved", .target = "again"}, GoOn);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(SurveyStore(&disk(), "again")->rows_lost, 1u);
}

// The store itself does not open, because nobody knows whose the record was.
TEST_F(RepairTest, SavesTheOthersOfASegmentWhoseFooterAndARecordAreDamaged) {
  std::vector<Key> keys;
  const std::string path = SegmentOfT(&keys);
  FlipBits(&disk(), path, OffsetOf(path, keys[2]) + 77, 8);
  DamageFooter(path);
  EXPECT_TRUE(IsDataLoss(world_.Open()));
  const RepairReport report = Repaired();
  EXPECT_EQ(report.rows_lost, 1u);
  ASSERT_EQ(report.losses.size(), 1u);
  EXPECT_TRUE(report.losses[0].keys.empty());
  EXPECT_EQ(report.losses[0].table, "") << "another table has such rows, too";
  ExpectSavedBut({keys[2]});
}

TEST_F(RepairTest, SavesTheRowsOfAllOtherSegmentsWhereOneIsMissing) {
  std::vector<Key> keys;
  const std::string path = SegmentOfT(&keys);
  ASSERT_TRUE(disk().Remove(path).ok());
  const RepairReport report = Repaired();
  EXPECT_EQ(report.rows_lost, keys.size());
  ASSERT_EQ(report.losses.size(), 1u);
  EXPECT_EQ(report.losses[0].rows, keys.size());
  EXPECT_THAT(report.losses[0].what, HasSubstr("missing"));
  ExpectSavedBut(keys);
}

TEST_F(RepairTest, ReadsNoRowsOfAnotherStoresSegment) {
  std::vector<Key> keys;
  const std::string path = SegmentOfT(&keys);
  SpillWorld other(kExportSeed + 1);
  MakeLast(&other);
  disk().Corrupt(path, 0, other.disk().Contents(path));
  EXPECT_EQ(Repaired().rows_lost, keys.size());
  ExpectSavedBut(keys);
}

TEST_F(RepairTest, SavesThePreviousCheckpointWhereTheNewestManifestIsDamaged) {
  for (const bool is_missing : {false, true}) {
    SCOPED_TRACE(is_missing);
    if (is_missing) {
      ASSERT_TRUE(disk().Remove(ManifestPath(3)).ok());
    } else {
      FlipBits(&disk(), ManifestPath(3), 99, 4);
    }
    const RepairReport report = Repaired();
    EXPECT_FALSE(report.is_whole());
    EXPECT_FALSE(report.is_newest);
    EXPECT_EQ(report.checkpoint, 2u);
    EXPECT_THAT(report.newest_lost, HasSubstr("MANIFEST-00000003"));
    EXPECT_EQ(report.rows_lost, 0u);
    const auto store = OpenAt(&world_, "saved");
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->catalog().List().size(), 2u) << "the third came later";
    for (const std::string& directory : {std::string("saved"), PmemPathOf("saved")}) {
      for (const std::string& file : FilesWith(disk(), directory + "/")) {
        ASSERT_TRUE(disk().Remove(file).ok());
      }
    }
  }
  ASSERT_TRUE(disk().Remove(ManifestPath(2)).ok());
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000003");
}

TEST_F(RepairTest, SavesThePreviousCheckpointWhereItIsAskedFor) {
  const RepairReport report = Repaired(/*previous=*/true);
  EXPECT_EQ(report.checkpoint, 2u);
  EXPECT_FALSE(report.is_newest || report.is_whole());
  FlipBits(&disk(), ManifestPath(2), 99, 4);
  const auto refused =
      RepairStore(&disk(), {.directory = "log", .target = "other", .previous = true}, GoOn);
  EXPECT_TRUE(IsDataLoss(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("MANIFEST-00000002"));
}

TEST_F(RepairTest, DamagedHeatIsToldAndCostsNoRow) {
  FlipBits(&disk(), "log/HEAT-00000003", 8, 4);
  const RepairReport report = Repaired();
  EXPECT_FALSE(report.is_whole());
  EXPECT_EQ(report.rows_lost, 0u);
  EXPECT_THAT(report.heat_lost, HasSubstr("HEAT-00000003"));
  EXPECT_TRUE(FilesWith(disk(), "saved/HEAT").empty());
  ExpectSavedBut({});
}

TEST_F(RepairTest, RowsThatTheDeviceDoesNotReadAreLostAndTheOthersSaved) {
  std::vector<Key> keys;
  const std::string path = SegmentOfT(&keys);
  disk().SetFaults([&](const DiskCall& call) {
    const bool fails = call.path == path && call.kind == DiskCall::Kind::kRead;
    return fails ? UnavailableError(path + ": input/output error") : OkStatus();
  });
  const RepairReport report = Repaired();
  disk().SetFaults(nullptr);
  EXPECT_EQ(report.rows_lost, keys.size());
  EXPECT_THAT(report.losses.at(0).what, HasSubstr("input/output"));
  ExpectSavedBut(keys);
}

// ---- refused repairs ----

TEST_F(RepairTest, ATargetThatHasSomethingIsRefused) {
  ASSERT_TRUE(disk().CreateDirectory("saved").ok());
  ASSERT_TRUE(disk().Open("saved/notes", FileAccess::kCreate, FileCaching::kCached).ok());
  const auto report = Repair(&disk());
  EXPECT_TRUE(IsAlreadyExists(report.status())) << report.status();
  EXPECT_EQ(FilesWith(disk(), "saved/"), std::vector<std::string>{"saved/notes"});
  const auto itself = RepairStore(&disk(), {.directory = "log", .target = "log"}, GoOn);
  EXPECT_TRUE(IsAlreadyExists(itself.status())) << itself.status();
}

TEST_F(RepairTest, APathWithoutAStoreAnOpenStoreAndANewerFormatAreRefused) {
  const auto none = RepairStore(&disk(), {.directory = "none", .target = "saved"}, GoOn);
  EXPECT_TRUE(IsNotFound(none.status())) << none.status();
  ASSERT_TRUE(world_.Open().ok());
  ExpectRefused(StatusCode::kUnavailable, "open already");
  // A reader does not prevent a repair.
  world_.options().read_only = true;
  world_.options().may_create = false;
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_TRUE(Repaired().is_whole());
}

TEST_F(RepairTest, ThatIsCancelledLeavesNothing) {
  for (uint64_t steps = 0; steps < 4; ++steps) {
    uint64_t left = steps;
    const auto report = RepairStore(&disk(), {.directory = "log", .target = "saved"},
                                    [&](uint64_t, uint64_t) { return left-- > 0; });
    EXPECT_TRUE(IsCancelled(report.status())) << report.status();
    EXPECT_TRUE(FilesWith(disk(), "saved/").empty());
    EXPECT_FALSE(disk().List("saved").ok());
  }
}

// ---- one step fails ----

TEST_F(RepairTest, ACallOfTheDiskThatFailsLeavesAWholeStoreOrNone) {
  const auto begin = disk().AfterCrash(disk().changes(), Persistence::kAll, 0);
  uint64_t made = 0;
  uint64_t failed = 0;
  uint64_t in_doubt = 0;
  bool met = true;
  for (uint64_t n = 1; met; n += Stride()) {
    ASSERT_LT(n, kStepsMax);
    SCOPED_TRACE(n);
    world_.SetDisk(begin->AfterCrash(begin->changes(), Persistence::kAll, 0));
    const auto before = FilesOfStore(disk());
    const uint64_t first = disk().calls() + n;
    disk().SetFaults([&](const DiskCall& call) {
      return call.number == first ? ResourceExhaustedError("no space") : OkStatus();
    });
    const auto report = Repair(&disk());
    disk().SetFaults(nullptr);
    met = disk().calls() >= first;
    EXPECT_TRUE(FilesOfStore(disk()) == before);
    auto store = OpenAt(&world_, "saved");
    if (report.ok()) {
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_NO_FATAL_FAILURE(ExpectIs(store->get(), last_));
      ++made;
      continue;
    }
    ++failed;
    ASSERT_FALSE(store.ok());
    // The sync of the directory behind the manifest: a crash may bring the store back, whole.
    in_doubt += IsDataLoss(store.status()) ? 1 : 0;
    EXPECT_TRUE(IsNotFound(store.status()) || IsDataLoss(store.status())) << store.status();
  }
  EXPECT_GT(failed, 30u / Stride());
  EXPECT_GT(made, 0u);
  EXPECT_LE(in_doubt, 1u);
}

TEST_F(RepairTest, ACrashLeavesAWholeStoreOrNone) {
  disk().ClearHistory();
  ASSERT_TRUE(Repair(&disk()).ok());
  uint64_t whole = 0;
  uint64_t images = 0;
  const size_t changes = disk().changes();
  // The last ones one by one: only behind them the store is whole.
  for (size_t change = 0; change <= changes; change += changes - change < Stride() ? 1 : Stride()) {
    for (const Persistence persistence : kPersistences) {
      SpillWorld again(kExportSeed, disk().AfterCrash(change, persistence, change));
      ++images;
      auto store = OpenAt(&again, "saved");
      if (!store.ok()) {
        EXPECT_TRUE(IsNotFound(store.status()) || IsDataLoss(store.status())) << store.status();
        continue;
      }
      ++whole;
      ASSERT_NO_FATAL_FAILURE(ExpectIs(store->get(), last_));
    }
  }
  EXPECT_GT(whole, 0u);
  EXPECT_GT(images, whole);
  // A repair that has returned OK is durable.
  SpillWorld again(kExportSeed, disk().AfterCrash(disk().changes(), Persistence::kNone, 0));
  const auto store = OpenAt(&again, "saved");
  ASSERT_TRUE(store.ok()) << store.status();
}

TEST_F(RepairTest, WithoutMemoryIsRefusedAndLeavesNoPartOfAStore) {
  uint64_t refused = 0;
  bool met = true;
  for (uint64_t n = 1; met; n += Stride()) {
    ASSERT_LT(n, kStepsMax);
    SCOPED_TRACE(n);
    const auto work = disk().AfterCrash(disk().changes(), Persistence::kAll, 0);
    Status status;
    {
      const AllocationFaults faults(n, FaultKind::kOnce);
      try {
        status = Repair(work.get()).status();
      } catch (const std::bad_alloc&) {
        status = ResourceExhaustedError("bad_alloc");
      }
      met = AllocationFaults::Failed() > 0;
    }
    if (status.ok()) continue;
    ++refused;
    EXPECT_TRUE(IsResourceExhausted(status)) << status;
    for (const std::string& file : FilesWith(*work, "saved/")) EXPECT_EQ(file, "saved/LOCK");
  }
  EXPECT_GT(refused, 10u / Stride());
}

}  // namespace
}  // namespace embank::test::repair_test
