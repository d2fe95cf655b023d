// The files of a store that is opened read-only: other openings of them, damage in them, leftovers
// of a crash. All of them stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/survey.h"
#include "store/inspect/verify.h"
#include "store/store.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/events.h"
#include "tests/support/segment_count.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_files.h"
#include "tests/support/trial_begin.h"

namespace embank::test::readers_of_files_test {
namespace {

constexpr uint64_t kSeed = 13;

// One in some where a sanitizer makes each slow.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStride = 5;
#else
constexpr uint64_t kStride = 1;
#endif

// With PMem one in some: the suite runs without it, too.
uint64_t Stride() { return WithPmem() ? 5 * kStride : kStride; }

// A store of two checkpoints, closed, and opened read-only by all tests that do not say otherwise.
class FilesOfReaders : public testing::Test {
 protected:
  FilesOfReaders() : world_(kSeed) {
    Table* const table = world_.Create("t", Optimizer::kNone);
    for (const Key first : {1, 100}) {
      Put(table, KeysFrom(first, 150), static_cast<float>(first));
      EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
      states_.push_back(*ReadAll(world_.get()));
    }
    world_.Close();
    world_.options().read_only = true;
  }

  // Whatever comes of it, the files stay as they are, and nobody is kept from them.
  void ExpectRefused(StatusCode code, const std::string& what, bool previous = false) {
    const auto before = Everything(world_.disk());
    const size_t changes = world_.disk().changes();
    const Status status = world_.Open(previous);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(what), std::string::npos) << status;
    EXPECT_EQ(world_.disk().changes(), changes);
    EXPECT_TRUE(Everything(world_.disk()) == before);
  }
  void ExpectOpens(const Tables& expected, bool previous = false) {
    const auto before = Everything(world_.disk());
    const size_t changes = world_.disk().changes();
    const Status status = world_.Open(previous);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), expected));
    world_.Close();
    EXPECT_EQ(world_.disk().changes(), changes);
    EXPECT_TRUE(Everything(world_.disk()) == before);
  }
  StatusCode OpenToChange() {
    world_.options().read_only = false;
    const auto status = world_.OpenBeside().status();
    world_.options().read_only = true;
    EXPECT_TRUE(status.ok() || status.message().find("open already") != std::string::npos);
    return status.code();
  }
  StatusCode Verify() {
    return VerifyStore(&world_.disk(), "log", [](uint64_t, uint64_t) { return true; })
        .status()
        .code();
  }

  SpillWorld world_;
  std::vector<Tables> states_;
};

// ---- other openings ----

TEST_F(FilesOfReaders, ManyReadAndWhoChangesWaitsForAllOfThem) {
  auto one = world_.OpenBeside();
  auto other = world_.OpenBeside();
  auto older = world_.OpenBeside(/*previous=*/true);
  ASSERT_TRUE(one.ok() && other.ok() && older.ok()) << one.status() << other.status();
  ASSERT_NO_FATAL_FAILURE(ExpectIs(one->get(), states_[1]));
  ASSERT_NO_FATAL_FAILURE(ExpectIs(other->get(), states_[1]));
  ASSERT_NO_FATAL_FAILURE(ExpectIs(older->get(), states_[0]));
  EXPECT_LT(SegmentCount((*older)->logs()->lowest().segments()),
            SegmentCount((*one)->logs()->lowest().segments()))
      << "not its own";
  EXPECT_EQ(OpenToChange(), StatusCode::kUnavailable);
  EXPECT_EQ(Verify(), StatusCode::kOk);
  EXPECT_TRUE(SurveyStore(&world_.disk(), "log").ok());
  one->reset();
  older->reset();
  EXPECT_EQ(OpenToChange(), StatusCode::kUnavailable);
  ASSERT_NO_FATAL_FAILURE(ExpectIs(other->get(), states_[1]));
  other->reset();
  EXPECT_EQ(OpenToChange(), StatusCode::kOk);
}

TEST_F(FilesOfReaders, NobodyReadsBesideOneWhoChanges) {
  world_.options().read_only = false;
  ASSERT_TRUE(world_.Open().ok());
  world_.options().read_only = true;
  for (const bool previous : {false, true}) {
    const Status status = world_.OpenBeside(previous).status();
    EXPECT_TRUE(IsUnavailable(status)) << status;
    EXPECT_NE(status.message().find("open already to be changed"), std::string::npos) << status;
  }
  EXPECT_EQ(Verify(), StatusCode::kUnavailable);
  // The next reader finds the changes that the writer makes meanwhile.
  Put(*world_->catalog().Open("t"), KeysFrom(400, 50), 3.0f);
  const Tables now = *ReadAll(world_.get());
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  EXPECT_TRUE(IsUnavailable(world_.OpenBeside().status()));
  ExpectOpens(now);
}

TEST_F(FilesOfReaders, AnOpeningThatFailsKeepsNobodyOut) {
  world_.options().seed = kSeed + 1;
  ASSERT_NO_FATAL_FAILURE(ExpectOpens(states_[1]));  // a reader takes the store's seed
  world_.options().read_only = false;
  const Status refused = world_.Open();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
  EXPECT_NE(refused.message().find("seed"), std::string::npos) << refused;
  world_.options().seed = kSeed;
  EXPECT_EQ(OpenToChange(), StatusCode::kOk);
}

// ---- contents ----

TEST_F(FilesOfReaders, WhereThereIsNoStoreNoneIsMade) {
  world_.SetPath("other");
  ExpectRefused(StatusCode::kNotFound, "not a store");
  ExpectRefused(StatusCode::kNotFound, "not a store", /*previous=*/true);
  ASSERT_TRUE(world_.disk().CreateDirectory("other").ok());
  ExpectRefused(StatusCode::kNotFound, "not a store");
  ASSERT_TRUE(world_.disk().Open("other/LOCK", FileAccess::kCreate, FileCaching::kCached).ok());
  ExpectRefused(StatusCode::kNotFound, "not a store");
}

TEST_F(FilesOfReaders, AStoreWithoutACheckpointIsEmpty) {
  world_.SetPath("fresh");
  world_.options().read_only = false;
  ASSERT_TRUE(world_.Open().ok());
  world_.options().read_only = true;
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_TRUE(world_->catalog().List().empty());
  EXPECT_TRUE(IsNotFound(world_->checkpoints()->Blob().status()));
  const auto go_on = [](uint64_t, uint64_t) { return true; };
  EXPECT_TRUE(IsFailedPrecondition(world_->checkpoints()->Export("copy", go_on)));
  ExpectOpens({});
  ExpectRefused(StatusCode::kFailedPrecondition, "none previous", /*previous=*/true);
}

TEST_F(FilesOfReaders, TheOtherCheckpointMayBeDamagedOrGone) {
  ExpectOpens(states_[1]);
  ExpectOpens(states_[0], /*previous=*/true);
  FlipBits(&world_.disk(), ManifestPath(1), 200, 4);
  ExpectOpens(states_[1]);
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000001", /*previous=*/true);
  ASSERT_TRUE(world_.disk().Remove(ManifestPath(1)).ok());
  ExpectOpens(states_[1]);
  ExpectRefused(StatusCode::kNotFound, "MANIFEST-00000001", /*previous=*/true);
}

TEST_F(FilesOfReaders, ADamagedNewestOneNamesTheOlder) {
  FlipBits(&world_.disk(), ManifestPath(2), 200, 4);
  ExpectRefused(StatusCode::kDataLoss, "checkpoint 1 can be opened as the previous one");
  ExpectOpens(states_[0], /*previous=*/true);
  // The next opening reports the damage, too.
  ExpectRefused(StatusCode::kDataLoss, "MANIFEST-00000002");
}

TEST_F(FilesOfReaders, AMissingSegmentIsNamed) {
  const std::string path = SegmentPaths(world_.disk()).back();
  ASSERT_TRUE(world_.disk().Remove(path).ok());
  ExpectRefused(StatusCode::kDataLoss, path);
  ExpectRefused(StatusCode::kDataLoss, "checkpoint 1 can be opened as the previous one");
  ExpectOpens(states_[0], /*previous=*/true);
}

TEST_F(FilesOfReaders, SegmentsWithoutAManifestAreDataLoss) {
  for (const int checkpoint : {1, 2}) {
    ASSERT_TRUE(world_.disk().Remove(ManifestPath(checkpoint)).ok());
  }
  ExpectRefused(StatusCode::kDataLoss, "no manifest");
}

// The next opening that may writes it anew.
TEST_F(FilesOfReaders, ADamagedFooterIsMadeUpForAndStays) {
  std::string path;
  const Manifest manifest = *DecodeManifest(world_.disk().Contents(ManifestPath(2)));
  for (const SegmentRows& rows : manifest.segments) {
    // The manifest has the keys of one that was not full, which needs no footer.
    if (rows.keys.empty() && path.empty()) path = SegmentPath(rows.header.segment_id);
  }
  ASSERT_NE(path, "");
  const auto footer_offset = world_.disk().Contents(path).size() - 10;
  FlipBits(&world_.disk(), path, footer_offset, 4);
  const auto damaged = Everything(world_.disk());
  ExpectOpens(states_[1]);
  ExpectOpens(states_[1]);
  world_.options().read_only = false;
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  EXPECT_FALSE(world_.disk().Contents(path) == damaged.at(path)) << "it was no footer that counts";
}

TEST_F(FilesOfReaders, ADamagedRecordIsALossOfItsRowAlone) {
  // A row of the last checkpoint.
  const std::string path = SegmentPaths(world_.disk()).back();
  FlipBits(&world_.disk(), path, kBlockBytes + 100, 4);
  const auto before = Everything(world_.disk());
  ASSERT_TRUE(world_.Open().ok());
  Table* const table = *world_->catalog().Open("t");
  const std::vector<Key> keys = KeysFrom(1, 249);
  std::vector<float> rows(keys.size() * kDim, -7.0f);
  std::vector<uint8_t> outcomes(keys.size());
  for (int round = 0; round < 2; ++round) {
    // Never made anew, neither.
    const Status status = Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, kDim), outcomes);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(std::ranges::count(outcomes, static_cast<uint8_t>(Outcome::kDataLoss)), 1);
    EXPECT_EQ(std::ranges::count(outcomes, static_cast<uint8_t>(Outcome::kFound)), 248);
    EXPECT_EQ(std::ranges::count(rows, -7.0f), kDim);
  }
  EXPECT_TRUE(IsDataLoss(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, kDim), {})));
  world_.Close();
  EXPECT_TRUE(Everything(world_.disk()) == before);
}

// ---- faults ----

TEST_F(FilesOfReaders, ReadsThatFailAreLossesUntilTheyWork) {
  ASSERT_TRUE(world_.Open().ok());
  Table* const table = *world_->catalog().Open("t");
  const std::vector<Key> keys = KeysFrom(1, 249);
  const std::vector<Key> warm = KeysFrom(1, 50);
  std::vector<float> rows(keys.size() * kDim);
  ASSERT_TRUE(Lookup(table, warm, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
  world_.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kRead ? UnavailableError("no") : OkStatus();
  });
  std::vector<uint8_t> outcomes(keys.size());
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, kDim), outcomes).ok());
  if (!WithPmem()) {
    EXPECT_EQ(std::ranges::count(outcomes, static_cast<uint8_t>(Outcome::kFound)), 50);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const RowId id = table->IdOf(keys[i], table->HashOf(keys[i]));
    // A row in PMem is answered from memory that is mapped.
    const bool is_on_ssd = table->store().index->Find(id).location().tier() == Tier::kSsd;
    const Outcome expected = is_on_ssd ? Outcome::kDataLoss : Outcome::kFound;
    ASSERT_EQ(outcomes[i], static_cast<uint8_t>(expected))
        << keys[i] << " of tier "
        << static_cast<int>(table->store().index->Find(id).location().tier());
  }
  world_.disk().SetFaults(nullptr);
  ExpectIs(world_.get(), states_[1]);
}

TEST_F(FilesOfReaders, AnyCallThatFailsAtOpeningIsToldAndNoMore) {
  Events events;
  events.Expect("not opened");
  bool met = true;
  for (uint64_t n = 1; met; n += Stride()) {
    SCOPED_TRACE(n);
    const uint64_t first = world_.disk().calls() + n;
    const size_t changes = world_.disk().changes();
    world_.disk().SetFaults([first](const DiskCall& call) {
      return call.number == first ? UnavailableError("no answer") : OkStatus();
    });
    const Status opened = world_.Open();
    met = world_.disk().calls() >= first;
    world_.disk().SetFaults(nullptr);
    ASSERT_TRUE(met || opened.ok()) << opened;
    ASSERT_TRUE(opened.ok() || IsUnavailable(opened)) << opened;
    if (!opened.ok()) events.Count("not opened");
    if (opened.ok()) {
      ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), states_[1]));
    }
    world_.Close();
    ASSERT_EQ(world_.disk().changes(), changes);
    ASSERT_LT(n, 1000u);
  }
  EXPECT_EQ(events.Missing(), "");
  EXPECT_EQ(OpenToChange(), StatusCode::kOk);
}

TEST_F(FilesOfReaders, AnyAllocationThatFailsAtOpeningIsToldAndNoMore) {
  world_.memory().AskFirst(&AllocationFaults::MustFail);
  const size_t changes = world_.disk().changes();
  uint64_t refused = 0;
  for (const FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
    bool met = true;
    for (uint64_t n = 1; met; n += Stride()) {
      SCOPED_TRACE(n);
      world_.Close();
      Status opened;
      {
        const AllocationFaults faults(n, kind);
        try {
          opened = world_.Open();
        } catch (const std::bad_alloc&) {  // as the C API does it
          const Unfaulted own;
          opened = ResourceExhaustedError("no memory");
        }
        met = AllocationFaults::Failed() > 0;
      }
      ASSERT_TRUE(met || opened.ok()) << opened;
      ASSERT_TRUE(opened.ok() || IsResourceExhausted(opened)) << opened;
      ASSERT_EQ(world_.memory().outstanding() == 0, !opened.ok());
      refused += opened.ok() ? 0 : 1;
      ASSERT_LT(n, 3000u);
    }
  }
  EXPECT_GT(refused, 0u);
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), states_[1]));
  EXPECT_EQ(world_.disk().changes(), changes);
}

// ---- crashes ----

// A crash in the middle of a checkpoint leaves drafts and orphans. The survey shows them as they
// are, and they stay for the next opening that may remove them.
TEST_F(FilesOfReaders, FindAfterACrashWhatTheNextOneWhoChangesItFinds) {
  world_.options().read_only = false;
  ASSERT_TRUE(world_.Open().ok());
  Put(*world_->catalog().Open("t"), KeysFrom(200, 150), 6.0f);
  const Tables under_way = *ReadAll(world_.get());
  const size_t from = world_.disk().changes();
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  const std::unique_ptr<SimulatedDisk> disk = world_.TakeDisk();
  Random random(3);
  Events events;
  for (const char* const name : {"found the last", "found one under way", "orphans"}) {
    events.Expect(name);
  }
  for (size_t change = from; change <= disk->changes(); change += Stride()) {
    for (const Persistence persistence : kPersistences) {
      world_.SetDisk(disk->AfterCrash(change, persistence, random.Bits()));
      const auto before = Everything(world_.disk());
      // In half of the trials the disk refuses writes, so that an attempt fails; in the others a
      // write leaves a trace.
      world_.disk().SetReadOnly(random.OneIn(2));
      world_.options().read_only = true;
      ASSERT_TRUE(world_.Open().ok());
      const Tables found = *ReadAll(world_.get());
      ASSERT_TRUE(found == states_[1] || found == under_way);
      events.Count(found == under_way ? "found one under way" : "found the last");
      world_.Close();
      ASSERT_EQ(world_.disk().changes(), 0u);
      ASSERT_TRUE(Everything(world_.disk()) == before);
      world_.disk().SetReadOnly(false);
      world_.options().read_only = false;
      ASSERT_TRUE(world_.Open().ok());
      ASSERT_EQ(*ReadAll(world_.get()), found);
      events.Count("orphans", world_.disk().Files().size() < before.size() ? 1 : 0);
    }
  }
  std::fputs(events.Table().c_str(), stdout);
  if (Stride() == 1) {
    EXPECT_EQ(events.Missing(), "");
  }
}

}  // namespace
}  // namespace embank::test::readers_of_files_test
