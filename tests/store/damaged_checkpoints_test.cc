// A store whose checkpoints were changed from outside, or are being changed, or have no space.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/write.h"
#include "store/store.h"
#include "tests/support/sealed_bytes.h"
#include "tests/support/segment_count.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_files.h"

namespace embank::test::damaged_checkpoints_test {
namespace {

constexpr uint64_t kSeed = 11;

// A store of two checkpoints, closed.
class TwoCheckpoints : public testing::Test {
 protected:
  TwoCheckpoints() : world_(kSeed) {
    Table* const table = world_.Create("t", Optimizer::kNone);
    for (const Key first : {1, 100}) {
      Put(table, KeysFrom(first, 150), static_cast<float>(first));
      EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
      states_.push_back(*ReadAll(world_.get()));
    }
    world_.Close();
    EXPECT_EQ(IsInPmem(SegmentPathsOf(world_.disk(), 2)[0]), WithPmem());
  }

  void Damage(const std::string& path, uint64_t offset) {
    FlipBits(&world_.disk(), path, offset, 4);
  }
  // Opening fails, names that, and leaves all files as they are.
  void ExpectRefused(StatusCode code, const std::string& what, bool previous = false) {
    const auto before = Everything(world_.disk());
    const Status status = world_.Open(previous);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(what), std::string::npos) << status;
    EXPECT_TRUE(Everything(world_.disk()) == before);
  }
  void ExpectOpens(const Tables& expected, bool previous = false) {
    const Status status = world_.Open(previous);
    ASSERT_TRUE(status.ok()) << status;
    ExpectIs(world_.get(), expected);
  }

  SpillWorld world_;
  std::vector<Tables> states_;
};

TEST_F(TwoCheckpoints, ADamagedNewestOneNamesTheOlderWhichCanBeOpened) {
  Damage(ManifestPath(2), 200);
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000002");
  ExpectRefused(StatusCode::kDataLoss, "checkpoint 1 can be opened as the previous one");
  ExpectOpens(states_[0], /*previous=*/true);
  const auto next = world_->checkpoints()->Make({});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(*next, 3u);
  ExpectOpens(states_[0]);
}

TEST_F(TwoCheckpoints, AMissingNewestManifestIsNamedAndNothingIsRemoved) {
  const std::vector<std::byte> lost = world_.disk().Contents(ManifestPath(2));
  ASSERT_TRUE(world_.disk().Remove(ManifestPath(2)).ok());
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000002");
  ExpectRefused(StatusCode::kDataLoss, "checkpoint 1 can be opened as the previous one");
  world_.options().read_only = true;
  world_.options().may_create = false;
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000002");
  world_.options().read_only = false;
  const auto segments = SegmentPaths(world_.disk());
  ExpectOpens(states_[0], /*previous=*/true);
  const auto left = SegmentPaths(world_.disk());
  EXPECT_TRUE(std::ranges::includes(left, segments)) << "they may be the lost one's";
  if (!WithPmem()) {
    EXPECT_EQ(left, segments);
  }
  // Until there is a newer one.
  world_.Close();
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000002");
  // A manifest that is found again makes its checkpoint open again.
  const auto file = world_.disk().Open(ManifestPath(2), FileAccess::kCreate, FileCaching::kCached);
  ASSERT_TRUE((*file)->Write(0, lost).ok());
  ExpectOpens(states_[1]);
}

TEST_F(TwoCheckpoints, AStoreGoesOnFromTheOlderOneBehindAMissingManifest) {
  ASSERT_TRUE(world_.disk().Remove(ManifestPath(2)).ok());
  ExpectOpens(states_[0], /*previous=*/true);
  Put(*world_->catalog().Open("t"), KeysFrom(500, 20), 5.0f);
  const Tables now = *ReadAll(world_.get());
  const auto next = world_->checkpoints()->Make({});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(*next, 3u) << "no number is used again";
  ExpectOpens(now);
}

TEST_F(TwoCheckpoints, AMissingOlderManifestIsNoLossOfTheNewest) {
  ASSERT_TRUE(world_.disk().Remove(ManifestPath(1)).ok());
  ExpectRefused(StatusCode::kNotFound, "MANIFEST-00000001", /*previous=*/true);
  ExpectOpens(states_[1]);
}

TEST_F(TwoCheckpoints, ADamagedOlderOneIsNobodysLossUntilItIsAskedFor) {
  Damage(ManifestPath(1), 200);
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000001", /*previous=*/true);
  ExpectOpens(states_[1]);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  ExpectOpens(states_[1]);
}

TEST_F(TwoCheckpoints, WhereBothAreDamagedNothingIsTouched) {
  Damage(ManifestPath(1), 77);
  Damage(ManifestPath(2), 99);
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000002");
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000001", /*previous=*/true);
}

// A store that opened an older checkpoint of a file that two stores share may have written the
// footer anew.
TEST_F(TwoCheckpoints, AFooterOfFewerSlotsDoesNotHideADroppedTablesRows) {
  ASSERT_TRUE(world_.Open().ok());
  const std::string path = SegmentPathsOf(world_.disk(), 2)[0];
  std::vector<std::byte> file = world_.disk().Contents(path);
  const auto header = DecodeSegmentHeader(std::span(file).first(kBlockBytes));
  ASSERT_TRUE(header.ok()) << header.status();
  const auto geometry = SegmentGeometry::Of(header->record_bytes, header->segment_bytes);
  const auto footer = DecodeSegmentFooter(*header, std::span(file).subspan(geometry.footer_offset));
  ASSERT_TRUE(footer.ok()) << footer.status();
  const std::vector<Key> keys(footer->keys.begin(), footer->keys.begin() + 3);
  const std::vector<TableId> tables(footer->tables.begin(), footer->tables.begin() + 3);
  ASSERT_GT(footer->keys.size(), keys.size());
  std::vector<std::byte> shorter(geometry.footer_bytes);
  EncodeSegmentFooter(*header, {keys, tables}, shorter);
  world_.disk().Corrupt(path, geometry.footer_offset, shorter);
  ASSERT_TRUE(world_->DropTable("t").ok());
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  ExpectOpens({});
}

TEST_F(TwoCheckpoints, ACutManifestIsDamaged) {
  world_.disk().Truncate(ManifestPath(2), 0);
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000002");
}

TEST_F(TwoCheckpoints, AManifestOfANewerFormatIsRefusedByItsNumber) {
  std::vector<std::byte> manifest = world_.disk().Contents(ManifestPath(2));
  PutAt<uint32_t>(manifest, 8, 7);
  SealAgain(manifest);
  world_.disk().Corrupt(ManifestPath(2), 0, manifest);
  ExpectRefused(StatusCode::kFailedPrecondition, "version 7");
  // A newer version wrote the checkpoint, so not even the older one is touched.
  ExpectRefused(StatusCode::kFailedPrecondition, "version 7", /*previous=*/true);
}

TEST_F(TwoCheckpoints, AnotherSeedIsRefused) {
  world_.options().seed = kSeed + 1;
  ExpectRefused(StatusCode::kFailedPrecondition, "seed");
  world_.options().seed = kSeed;
  ExpectOpens(states_[1]);
}

TEST_F(TwoCheckpoints, ASecondOpenerWaitsForNobody) {
  ExpectOpens(states_[1]);
  const auto second = world_.OpenBeside();
  EXPECT_TRUE(IsUnavailable(second.status())) << second.status();
  EXPECT_NE(second.status().message().find("open already"), std::string::npos);
  ExpectIs(world_.get(), states_[1]);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
}

TEST_F(TwoCheckpoints, AStoreThatIsNotThereIsNotMadeUnlessItMay) {
  world_.options().may_create = false;
  ExpectOpens(states_[1]);
  world_.SetPath("elsewhere");
  EXPECT_TRUE(IsNotFound(world_.Open()));
  world_.options().may_create = true;
  EXPECT_TRUE(world_.Open().ok());
  EXPECT_TRUE(IsFailedPrecondition(world_.Open(/*previous=*/true))) << "it has none";
}

// ---- segments ----

TEST_F(TwoCheckpoints, AMissingSegmentIsNamed) {
  const auto paths = SegmentPathsOf(world_.disk(), 2);
  ASSERT_GT(paths.size(), 3u);
  for (const std::string& path : paths) {
    SimulatedDisk& disk = world_.disk();
    ASSERT_TRUE(disk.Rename(path, "aside").ok());
    ExpectRefused(StatusCode::kDataLoss, path);
    ASSERT_TRUE(disk.Rename("aside", path).ok());
  }
  ExpectOpens(states_[1]);
}

TEST_F(TwoCheckpoints, ASegmentThatIsCutOffIsNamed) {
  const std::string path = SegmentPathsOf(world_.disk(), 2)[1];
  for (const uint64_t bytes : {40 * kBlockBytes, kBlockBytes, kBlockBytes - 1, uint64_t{0}}) {
    world_.disk().Truncate(path, bytes);
    ExpectRefused(StatusCode::kDataLoss, path);
  }
}

// The manifest has the facts of a header, and records name their keys: nothing is lost with either.
TEST_F(TwoCheckpoints, ADamagedHeaderCostsNothing) {
  Damage(SegmentPathsOf(world_.disk(), 2)[1], 24);
  ExpectOpens(states_[1]);
  ExpectOpens(states_[0], /*previous=*/true);
}

TEST_F(TwoCheckpoints, ADamagedFooterCostsNothingAndIsWrittenAnew) {
  const std::string path = SegmentPathsOf(world_.disk(), 2)[0];
  const std::vector<std::byte> whole = world_.disk().Contents(path);
  Damage(path, whole.size() - 9);
  ExpectOpens(states_[0], /*previous=*/true);
  ExpectOpens(states_[1]);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  EXPECT_TRUE(world_.disk().Contents(path) == whole);
  ASSERT_TRUE(world_->DropTable("t").ok());
}

TEST_F(TwoCheckpoints, ADamagedFooterIsMadeUpForByADropToo) {
  ASSERT_TRUE(world_.Open().ok());
  for (const std::string& path : SegmentPathsOf(world_.disk(), 2)) {
    Damage(path, world_.disk().Contents(path).size() - 9);
  }
  ASSERT_TRUE(world_->DropTable("t").ok());
  EXPECT_EQ(ReadAll(world_.Create("t", Optimizer::kNone))->size(), 0u);
}

TEST_F(TwoCheckpoints, DamagedFootersOfAllSegmentsCostNothing) {
  for (const std::string& path : SegmentPathsOf(world_.disk(), 2)) {
    Damage(path, world_.disk().Contents(path).size() - 9);
  }
  ExpectOpens(states_[0], /*previous=*/true);
  ExpectOpens(states_[1]);
}

// The keys of its rows are not known any more, so none of them may count as absent.
TEST_F(TwoCheckpoints, ADamagedFooterAndDamagedRecordsAreNamedAndCounted) {
  const std::string path = SegmentPathsOf(world_.disk(), 2)[0];
  Damage(path, world_.disk().Contents(path).size() - 9);
  const Manifest newest = *DecodeManifest(world_.disk().Contents(ManifestPath(2)));
  ASSERT_EQ(SegmentPath(newest.segments[0].header.segment_id), path);
  uint64_t live = 0;
  for (uint64_t slot = 0; slot < 20; ++slot) {
    Damage(path, kBlockBytes + slot * newest.segments[0].header.record_bytes + 500);
    live += newest.segments[0].bits[0] >> slot & 1;
  }
  ASSERT_GT(live, 1u);
  ExpectRefused(StatusCode::kDataLoss, path);
  ExpectRefused(StatusCode::kDataLoss,
                "the keys of " + std::to_string(live) + " of its rows are lost");
  ExpectRefused(StatusCode::kDataLoss, "checkpoint 1 can be opened as the previous one");
  ExpectRefused(StatusCode::kDataLoss, "embank repair");
  // The older manifest has the keys of a segment that was not full then, as this one of PMem.
  if (WithPmem()) return;
  ExpectRefused(StatusCode::kDataLoss, "embank repair", /*previous=*/true);
}

// A segment that only another checkpoint has may be damaged.
TEST_F(TwoCheckpoints, OneThatIsNotOpenedMayMissASegment) {
  ASSERT_TRUE(world_.Open().ok());
  Put(*world_->catalog().Open("t"), KeysFrom(1, 300), 7.0f);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  const Tables newest = *ReadAll(world_.get());
  world_.Close();
  auto directory = CheckpointDirectory::Open(&world_.disk(), "log", false);
  ASSERT_TRUE(directory.ok());
  std::set<uint64_t> of_newest;
  std::set<uint64_t> of_older;
  const Manifest three = *(*directory)->Load(3);
  const Manifest two = *(*directory)->Load(2);
  for (const SegmentRows& rows : three.segments) {
    of_newest.insert(rows.header.segment_id);
  }
  for (const SegmentRows& rows : two.segments) {
    if (of_newest.count(rows.header.segment_id) == 0) of_older.insert(rows.header.segment_id);
  }
  ASSERT_FALSE(of_older.empty());
  (*directory).reset();
  ASSERT_TRUE(world_.disk().Remove(SegmentPath(*of_older.begin())).ok());
  ExpectOpens(newest);
}

// The checkpoint has lost rows: the rest must not count as all that it has.
TEST_F(TwoCheckpoints, ATableThatIsDroppedInPartIsInNoCheckpoint) {
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_->CreateTable("other", OptionsOf(8)).ok());
  world_.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kRead ? UnavailableError("no answer") : OkStatus();
  });
  EXPECT_FALSE(world_->DropTable("t").ok());
  world_.disk().SetFaults(nullptr);
  const auto made = world_->checkpoints()->Make({});
  EXPECT_TRUE(IsFailedPrecondition(made.status())) << made.status();
  EXPECT_NE(made.status().message().find("\"t\""), std::string::npos) << made.status();
  EXPECT_TRUE(world_->DropTable("t").ok());
  EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
}

// Whether its footer tells or, of one that was not full, the header alone.
TEST_F(TwoCheckpoints, AnotherSegmentsBytesAreNamed) {
  const auto paths = SegmentPathsOf(world_.disk(), 2);
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::vector<std::byte> own = world_.disk().Contents(paths[i]);
    world_.disk().Corrupt(paths[i], 0, world_.disk().Contents(paths[(i + 1) % paths.size()]));
    ExpectRefused(StatusCode::kDataLoss, paths[i]);
    world_.disk().Corrupt(paths[i], 0, own);
  }
  ExpectOpens(states_[1]);
}

TEST_F(TwoCheckpoints, AnotherStoresSegmentIsNamed) {
  SpillWorld other(kSeed + 1);
  Put(other.Create("t", Optimizer::kNone), KeysFrom(1, 400), 1.0f);
  ASSERT_TRUE(other->checkpoints()->Make({}).ok());
  for (const std::string& path : SegmentPathsOf(world_.disk(), 2)) {
    const std::vector<std::byte> own = world_.disk().Contents(path);
    world_.disk().Corrupt(path, 0, other.disk().Contents(SegmentPathsOf(other.disk(), 1)[0]));
    ExpectRefused(StatusCode::kDataLoss, path);
    world_.disk().Corrupt(path, 0, own);
  }
}

TEST_F(TwoCheckpoints, SegmentsWithoutManifestsAreNotTakenForAnEmptyStore) {
  ASSERT_TRUE(world_.disk().Remove(ManifestPath(1)).ok());
  ASSERT_TRUE(world_.disk().Remove(ManifestPath(2)).ok());
  ExpectRefused(StatusCode::kDataLoss, "no manifest");
}

// Footers and manifest that stand, each, and do not belong together.
TEST_F(TwoCheckpoints, RowsOfATableThatHasNoneSuchAreNamed) {
  ASSERT_TRUE(world_.Open().ok());
  world_.Create("small", Optimizer::kNone, 8);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  world_.Close();
  const StatusOr<Manifest> made = DecodeManifest(world_.disk().Contents(ManifestPath(3)));
  ASSERT_TRUE(made.ok()) << made.status();
  for (const bool other_class : {false, true}) {
    Manifest wrong = *made;
    ASSERT_EQ(wrong.tables.size(), 2u);
    wrong.tables[0].id = other_class ? made->tables[1].id : 9;
    wrong.tables[1].id = other_class ? made->tables[0].id : 10;
    world_.disk().Corrupt(ManifestPath(3), 0, EncodeManifest(wrong));
    ExpectRefused(StatusCode::kDataLoss, "segment-");
  }
}

// A footer may have fewer slots than fit: of a segment that was open when the store was closed.
TEST_F(TwoCheckpoints, AStoreIsOpenedAndKeptOverAndOver) {
  Tables now = states_[1];
  for (Key round = 0; round < 6; ++round) {
    ASSERT_NO_FATAL_FAILURE(ExpectOpens(now));
    Put(*world_->catalog().Open("t"), KeysFrom(round * 40, 25), 3.0f);
    const Tables before = std::exchange(now, *ReadAll(world_.get()));
    ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
    ASSERT_NO_FATAL_FAILURE(ExpectOpens(before, /*previous=*/true));
  }
}

// As the older of two knows it, a segment that was open has fewer rows than the newer one's.
TEST_F(TwoCheckpoints, AFooterOfTheOlderOneIsNotTheNewerOnes) {
  ASSERT_TRUE(world_.Open().ok());
  Table* const table = *world_->catalog().Open("t");
  for (const Key first : {1000, 2000}) {
    Put(table, KeysFrom(first, 10), 1.0f);
    ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  }
  const Tables now = *ReadAll(world_.get());
  ASSERT_TRUE(world_.Open(/*previous=*/true).ok());
  ASSERT_TRUE((*world_->catalog().Open("t"))->mover()->logs().lowest().appender().Flush().ok());
  ExpectOpens(now);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  ExpectOpens(now);
}

// Values that tell rows before and after a moment apart.
TEST_F(TwoCheckpoints, NumbersGoOnBehindACrash) {
  const auto load = [&](int checkpoint) {
    return *DecodeManifest(world_.disk().Contents(ManifestPath(checkpoint)));
  };
  Manifest last = load(2);
  for (int checkpoint = 3; checkpoint < 6; ++checkpoint) {
    ASSERT_TRUE(world_.Open().ok());
    Table* const table = *world_->catalog().Open("t");
    ASSERT_TRUE(Erase(table, KeysFrom(1, 400), {}).ok());
    Put(table, KeysFrom(1, 3), 1.0f);
    ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
    const Manifest next = load(checkpoint);
    EXPECT_EQ(next.store_id, last.store_id);
    EXPECT_GT(next.next_sequence, last.next_sequence);
    EXPECT_GT(next.next_segment_ids.values, last.next_segment_ids.values);
    ASSERT_EQ(next.segments.size(), 1u);
    const uint64_t id = next.segments[0].header.segment_id;
    EXPECT_GE(id, last.next_segment_ids[NumberedIn(id)]);
    last = next;
  }
}

TEST_F(TwoCheckpoints, SegmentsOfTheOlderOneAloneGoWithItThoughTheStoreWasOpenedAnew) {
  ASSERT_TRUE(world_.Open().ok());
  Put(*world_->catalog().Open("t"), KeysFrom(1, 300), 9.0f);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  const auto before = SegmentPaths(world_.disk());
  const Tables now = *ReadAll(world_.get());
  ASSERT_TRUE(world_.Open().ok());
  Table* const table = *world_->catalog().Open("t");
  const RowLogs& logs = table->mover()->logs();
  const uint64_t pmem_segments = WithPmem() ? SegmentCount(logs.pmem()->segments()) : 0;
  EXPECT_EQ(SegmentCount(logs.lowest().segments()) + pmem_segments, before.size())
      << "they take space";
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  const auto after = SegmentPaths(world_.disk());
  EXPECT_LT(after.size() + 2, before.size());
  ExpectOpens(now);
}

// ---- space ----

constexpr Key kManyRows = 3000;  // a third of them does not fit into memory

// A batch after the other over all rows; how many were refused.
uint64_t OverwriteAll(Table* table, float factor) {
  uint64_t refused = 0;
  for (Key first = 0; first < kManyRows; first += 250) {
    const std::vector<Key> keys = KeysFrom(first, 250);
    std::vector<uint8_t> outcomes(keys.size());
    const std::vector<float> rows = RowsOfKeys(keys, factor);
    EXPECT_TRUE(Upsert(table, keys, RowsOf(rows, kDim), outcomes).ok());
    refused += static_cast<uint64_t>(
        std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kRefused)));
  }
  return refused;
}

void ExpectAfterCrash(const SimulatedDisk& disk, uint64_t ssd_bytes, const Tables& expected,
                      bool previous = false) {
  for (const Persistence persistence : {Persistence::kNone, Persistence::kAll}) {
    SpillWorld again(kSeed, disk.AfterCrash(disk.changes(), persistence, 1), nullptr, ssd_bytes);
    const Status opened = again.Open(previous);
    ASSERT_TRUE(opened.ok()) << opened;
    ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), expected));
  }
}

TEST(CheckpointSpace, SpaceOfAKeptOneIsNotUsedAgain) {
  const uint64_t ssd_bytes = 170 * SmallLog().segment_bytes;
  SpillWorld world(kSeed, nullptr, ssd_bytes);
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_EQ(OverwriteAll(table, 1.0f), 0u);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  const Tables first = *ReadAll(world.get());
  for (const float factor : {2.0f, 3.0f, 4.0f}) ASSERT_EQ(OverwriteAll(table, factor), 0u);
  const RowLogCounters& counters = table->mover()->logs().lowest().counters();
  EXPECT_GT(counters.dead_segments, 40u) << "of neither: these are used again";
  ExpectAfterCrash(world.disk(), ssd_bytes, first);
  const Tables second = *ReadAll(world.get());
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  for (const float factor : {5.0f, 6.0f}) OverwriteAll(table, factor);
  ExpectAfterCrash(world.disk(), ssd_bytes, second);
  ExpectAfterCrash(world.disk(), ssd_bytes, first, /*previous=*/true);
  // Once nothing keeps it, the space of the first is there again.
  const uint64_t dead = counters.dead_segments;
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  EXPECT_GT(counters.dead_segments, dead + 40);
}

TEST(CheckpointSpace, AFullLogRefusesAndTheStoreRecovers) {
  const uint64_t ssd_bytes = 75 * SmallLog().segment_bytes;
  SpillWorld world(kSeed, nullptr, ssd_bytes);
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_EQ(OverwriteAll(table, 1.0f), 0u);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  const Tables first = *ReadAll(world.get());
  uint64_t refused = 0;
  for (const float factor : {2.0f, 3.0f, 4.0f}) refused += OverwriteAll(table, factor);
  EXPECT_GT(refused, 0u);
  const Tables now = *ReadAll(world.get());
  ExpectAfterCrash(world.disk(), ssd_bytes, first);
  // A store that was opened can make checkpoints.
  const auto next = world->checkpoints()->Make({});
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), now));
  ExpectAfterCrash(world.disk(), ssd_bytes, now);
  ExpectAfterCrash(world.disk(), ssd_bytes, first, /*previous=*/true);
  // The store goes on with more space.
  world.options().ssd_bytes = 0;
  ASSERT_TRUE(world.Open().ok());
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), now));
  EXPECT_EQ(OverwriteAll(*world->catalog().Open("t"), 7.0f), 0u);
  const Tables then = *ReadAll(world.get());
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ExpectAfterCrash(world.disk(), 0, then);
}

}  // namespace
}  // namespace embank::test::damaged_checkpoints_test
