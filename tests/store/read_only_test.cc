// Stores opened read-only: they answer as their last checkpoint, and nothing of it changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/prefetch.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "store/inspect/memory_report.h"
#include "store/store.h"
#include "tests/support/events.h"
#include "tests/support/export_world.h"
#include "tests/support/row_values.h"
#include "tests/support/store_files.h"
#include "tests/support/threads.h"

namespace embank::test::read_only_test {
namespace {

constexpr uint64_t kSeed = 5;
constexpr Key kKeys = 4500;  // more than twice of what memory holds
constexpr Key kAbsent = 500;
#if defined(__SANITIZE_ADDRESS__)
constexpr int kSteps = 60;
#else
constexpr int kSteps = 300;
#endif

// The last contents that a writer has seen: rows by table, and the state of those that have one.
struct Contents {
  Tables tables;
  std::map<Key, std::vector<float>> state;  // of "s"
};

// A closed store of two row classes, most of whose rows are in the log alone.
Contents MakeLargeStore(SpillWorld* world) {
  Contents contents;
  Table* const plain = world->Create("t", Optimizer::kNone);
  Table* const stateful = world->Create("s", Optimizer::kAdagrad);
  for (Key first = 0; first < kKeys; first += 500) Put(plain, KeysFrom(first, 500), 1.0f);
  const std::vector<Key> keys = KeysFrom(0, 300);
  Put(stateful, keys, 2.0f);
  const std::vector<float> gradients = RowsOfKeys(keys, 0.25f);
  EXPECT_TRUE(ApplyGradients(stateful, keys, RowsOf(gradients, kDim), {}).ok());
  EXPECT_TRUE((*world)->checkpoints()->Make(BlobOf(kExportBlob)).ok());
  contents.tables = *ReadAll(world->get());
  std::vector<float> state(keys.size() * kDim);
  EXPECT_TRUE(GetState(stateful, keys, RowsIn(&state, kDim), {}).ok());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto begin = state.begin() + static_cast<ptrdiff_t>(i * kDim);
    contents.state[keys[i]].assign(begin, begin + kDim);
  }
  // Nobody else will ever see this.
  Put(plain, KeysFrom(0, 200), 77.0f);
  world->Close();
  return contents;
}

// Reading calls of one open store, drawn; each answers as the contents say.
class Reads {
 public:
  Reads(Store* store, const Contents& contents, uint64_t seed)
      : store_(store), contents_(contents), random_(seed) {}

  void Step() {
    const char* const name = random_.OneIn(4) ? "s" : "t";
    table_ = *store_->catalog().Open(name);
    rows_ = &contents_.tables.at(name);
    keys_ = DrawKeys();
    outcomes_.assign(keys_.size(), 99);
    const uint64_t choice = random_.Below(100);
    if (choice < 60) return DoLookup(static_cast<MissingRule>(random_.Below(4)));
    if (choice < 70) return DoContains();
    if (choice < 75) return DoHeat();
    if (choice < 85) return DoPrefetch();
    if (choice < 95) return DoState();
    if (random_.OneIn(3)) return DoScan();
  }
  const Events& events() const { return events_; }

 private:
  std::vector<Key> DrawKeys() {
    const size_t n = random_.OneIn(40) ? 2500 : random_.Between(0, 60);
    std::vector<Key> keys(n);
    const bool hot = random_.OneIn(3);
    for (Key& key : keys) key = random_.Below(hot ? 200 : kKeys + kAbsent);
    return keys;
  }
  void ExpectOutcomes() {
    for (size_t i = 0; i < keys_.size(); ++i) {
      const Outcome expected = rows_->contains(keys_[i]) ? Outcome::kFound : Outcome::kAbsent;
      ASSERT_EQ(outcomes_[i], static_cast<uint8_t>(expected)) << "key " << keys_[i];
      events_.Count(expected == Outcome::kFound ? "found" : "absent");
    }
  }
  void DoLookup(MissingRule rule) {
    std::vector<float> found(keys_.size() * kDim, -7.0f);
    const bool asks = !random_.OneIn(4);
    const Status status = Lookup(table_, keys_, rule, RowsIn(&found, kDim),
                                 asks ? OutcomeSpan(outcomes_) : OutcomeSpan());
    ASSERT_TRUE(status.ok()) << status;
    if (asks) {
      ASSERT_NO_FATAL_FAILURE(ExpectOutcomes());
    }
    // A key that a writer would create is answered here, and still does not exist.
    const float absent = rule == MissingRule::kZero   ? 0.0f
                         : rule == MissingRule::kSkip ? -7.0f
                                                      : 5.0f;
    for (size_t i = 0; i < keys_.size(); ++i) {
      const auto expected = rows_->find(keys_[i]);
      const float value = expected == rows_->end() ? absent : expected->second;
      ASSERT_TRUE(IsRowOf(found, i, kDim, value)) << "key " << keys_[i];
    }
    events_.Count(rule == MissingRule::kCreate ? "lookup that would create" : "lookup");
  }
  void DoContains() {
    ASSERT_TRUE(Contains(table_, keys_, outcomes_).ok());
    ASSERT_NO_FATAL_FAILURE(ExpectOutcomes());
    events_.Count("contains");
  }
  void DoHeat() {
    std::vector<uint32_t> heat(keys_.size());
    ASSERT_TRUE(GetHeat(table_, keys_, heat, outcomes_).ok());
    ASSERT_NO_FATAL_FAILURE(ExpectOutcomes());
    for (const uint32_t one : heat) events_.Count("rows with heat", one > 0 ? 1 : 0);
  }
  void DoPrefetch() {
    const uint64_t before = table_->counters().prefetched_rows;
    ASSERT_TRUE(Prefetch(table_, keys_).ok());
    events_.Count("rows prefetched", table_->counters().prefetched_rows - before);
  }
  void DoState() {
    std::vector<float> state(keys_.size() * kDim, -7.0f);
    const Status status = GetState(table_, keys_, RowsIn(&state, kDim), outcomes_);
    if (table_->layout().state_floats == 0) {
      ASSERT_TRUE(IsFailedPrecondition(status)) << status;
      return;
    }
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_NO_FATAL_FAILURE(ExpectOutcomes());
    for (size_t i = 0; i < keys_.size(); ++i) {
      const auto row = state.begin() + static_cast<ptrdiff_t>(i * kDim);
      const auto expected = contents_.state.find(keys_[i]);
      if (expected == contents_.state.end()) continue;
      ASSERT_TRUE(std::equal(row, row + kDim, expected->second.begin())) << "key " << keys_[i];
      events_.Count("states");
    }
  }
  void DoScan() {
    const StatusOr<Rows> seen = ReadAll(table_);
    ASSERT_TRUE(seen.ok()) << seen.status();
    ASSERT_EQ(*seen, *rows_);
    events_.Count("scan");
  }

  Store* const store_;
  const Contents& contents_;
  Random random_;
  Events events_;
  Table* table_ = nullptr;
  const Rows* rows_ = nullptr;
  std::vector<Key> keys_;
  std::vector<uint8_t> outcomes_;
};

void ExpectNothingLogged(const Store& store) {
  const RowLogCounters& counters = store.logs()->lowest().counters();
  EXPECT_EQ(counters.appended_rows, 0u);
  EXPECT_EQ(counters.compacted_rows, 0u);
  EXPECT_EQ(counters.written_bytes, 0u);
  EXPECT_EQ(counters.dead_segments, 0u);
  for (const Table* const table : store.catalog().List()) {
    EXPECT_TRUE(table->store().compactions.empty()) << table->name();
  }
}

TEST(ReadOnly, AnswersLikeTheCheckpointHoweverLittleMemoryHolds) {
  SpillWorld world(kSeed);
  const Contents contents = MakeLargeStore(&world);
  const auto before = Everything(world.disk());
  const size_t changes = world.disk().changes();
  world.disk().SetReadOnly(true);
  world.options().read_only = true;
  ASSERT_TRUE(world.Open().ok());
  Reads reads(world.get(), contents, kSeed);
  for (int step = 0; step < kSteps; ++step) {
    ASSERT_NO_FATAL_FAILURE(reads.Step()) << "step " << step;
    ASSERT_LE(ReportMemory(*world).used_bytes, kDramBytes);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), contents.tables));
  EXPECT_TRUE(std::ranges::equal(*world->checkpoints()->Blob(), BlobOf(kExportBlob)));
  const uint64_t rows = contents.tables.at("t").size() + contents.tables.at("s").size();
  EXPECT_GT(world->logs()->lowest().counters().read_rows, 2 * rows)
      << "rows left memory, and came back";
  EXPECT_LT((*world->catalog().Open("t"))->rows_in_log(), kKeys) << "rows stay in memory";
  ExpectNothingLogged(*world.get());
  world.Close();
  EXPECT_EQ(world.disk().changes(), changes);
  EXPECT_TRUE(Everything(world.disk()) == before);
  Events events = reads.events();
  for (const char* const name :
       {"found", "absent", "lookup", "lookup that would create", "contains", "rows with heat",
        "rows prefetched", "states", "scan"}) {
    events.Expect(name);
  }
  std::fputs(events.Table().c_str(), stdout);
  // Few steps may miss rare cases.
  if (kSteps >= 300) {
    EXPECT_EQ(events.Missing(), "");
  }
}

// Two stores in one process, with threads of their own and some that share one.
TEST(ReadOnly, ManyThreadsAndStoresReadTheSameFiles) {
  SpillWorld world(kSeed);
  const Contents contents = MakeLargeStore(&world);
  const auto before = Everything(world.disk());
  world.disk().SetReadOnly(true);
  world.options().read_only = true;
  const auto one = world.OpenBeside(false, MakeThreadPool(2));
  ASSERT_TRUE(one.ok()) << one.status();
  const auto other = world.OpenBeside(false, MakeThreadPool(2));
  ASSERT_TRUE(other.ok()) << other.status();
  OnThreads(5, [&](uint64_t thread) {
    Reads reads(thread < 3 ? one->get() : other->get(), contents, thread);
    for (int step = 0; step < kSteps / 3; ++step) ASSERT_NO_FATAL_FAILURE(reads.Step());
  });
  ASSERT_NO_FATAL_FAILURE(ExpectIs(one->get(), contents.tables));
  ASSERT_NO_FATAL_FAILURE(ExpectIs(other->get(), contents.tables));
  ExpectNothingLogged(**one);
  EXPECT_TRUE(Everything(world.disk()) == before);
}

// ---- refused calls ----

class SmallStore : public testing::Test {
 protected:
  SmallStore() : world_(kExportSeed) {
    MakeLast(&world_);
    last_ = *ReadAll(world_.get());
    before_ = Everything(world_.disk());
    world_.Close();
    world_.options().read_only = true;
    EXPECT_TRUE(world_.Open().ok());
  }

  SpillWorld world_;
  Tables last_;
  std::map<std::string, std::vector<std::byte>> before_;
};

struct Refused {
  const char* name;
  std::function<Status(Store*, OutcomeSpan)> call;
};

const std::vector<float> kOnes(size_t{10} * 2 * kDim, 1.0f);
const std::vector<float> kNotANumber(size_t{10} * kDim, std::numeric_limits<float>::quiet_NaN());

Table* Wide(Store* store) { return *store->catalog().Open("wide"); }

const std::vector<Refused>& AllRefused() {
  static const auto* const all = new std::vector<Refused>{
      {"upsert of rows that are there",
       [](Store* s, OutcomeSpan o) {
         return Upsert(Wide(s), KeysFrom(1, 10), RowsOf(kOnes, kDim), o);
       }},
      {"upsert of new rows",
       [](Store* s, OutcomeSpan o) {
         return Upsert(Wide(s), KeysFrom(5000, 10), RowsOf(kOnes, kDim), o);
       }},
      {"upsert of nothing",
       [](Store* s, OutcomeSpan) { return Upsert(Wide(s), {}, RowsOf(kOnes, kDim), {}); }},
      {"gradients",
       [](Store* s, OutcomeSpan o) {
         return ApplyGradients(Wide(s), KeysFrom(1, 10), RowsOf(kOnes, kDim), o);
       }},
      {"gradients that are no numbers",
       [](Store* s, OutcomeSpan o) {
         return ApplyGradients(Wide(s), KeysFrom(1, 10), RowsOf(kNotANumber, kDim), o);
       }},
      {"erase", [](Store* s, OutcomeSpan o) { return Erase(Wide(s), KeysFrom(1, 10), o); }},
      {"erase of absent rows",
       [](Store* s, OutcomeSpan o) { return Erase(Wide(s), KeysFrom(5000, 10), o); }},
      {"state",
       [](Store* s, OutcomeSpan o) {
         return SetState(Wide(s), KeysFrom(1, 10), RowsOf(kOnes, kDim), o);
       }},
      {"a new table",
       [](Store* s, OutcomeSpan) { return s->CreateTable("new", OptionsOf(8)).status(); }},
      {"a table that is there",
       [](Store* s, OutcomeSpan) { return s->CreateTable("t", OptionsOf(kDim)).status(); }},
      {"a drop", [](Store* s, OutcomeSpan) { return s->DropTable("t"); }},
      {"a drop of no table", [](Store* s, OutcomeSpan) { return s->DropTable("none"); }},
      {"a checkpoint", [](Store* s, OutcomeSpan) { return s->checkpoints()->Make({}).status(); }},
      {"a checkpoint with a blob",
       [](Store* s, OutcomeSpan) { return s->checkpoints()->Make(BlobOf(kExportBlob)).status(); }}};
  return *all;
}

TEST_F(SmallStore, CallsThatWouldChangeItAreRefusedBeforeAnythingIsTouched) {
  const size_t changes = world_.disk().changes();
  for (const Refused& refused : AllRefused()) {
    SCOPED_TRACE(refused.name);
    std::vector<uint8_t> outcomes(10, 99);
    const uint64_t calls = world_.disk().calls();
    const Status status = refused.call(world_.get(), outcomes);
    EXPECT_TRUE(IsFailedPrecondition(status)) << status;
    EXPECT_NE(status.message().find("read-only"), std::string::npos) << status;
    EXPECT_EQ(outcomes, std::vector<uint8_t>(10, 99));
    EXPECT_EQ(world_.disk().calls(), calls) << "the disk was asked";
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), last_));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectNothingLogged(*world_.get()));
  world_.Close();
  EXPECT_EQ(world_.disk().changes(), changes);
  EXPECT_TRUE(Everything(world_.disk()) == before_);
  // A store that is open to be changed can do all of these.
  world_.options().read_only = false;
  ASSERT_TRUE(world_.Open().ok());
  for (const Refused& refused : AllRefused()) {
    const Status status = refused.call(world_.get(), {});
    EXPECT_EQ(status.message().find("read-only"), std::string::npos) << status;
  }
}

TEST_F(SmallStore, NonsenseIsStillNonsense) {
  EXPECT_TRUE(IsInvalidArgument(world_->CreateTable("", OptionsOf(8)).status()));
  EXPECT_TRUE(IsInvalidArgument(world_->CreateTable("new", OptionsOf(0)).status()));
  EXPECT_TRUE(IsInvalidArgument(world_->DropTable("a/b")));
  EXPECT_TRUE(IsNotFound(world_->catalog().Open("none").status()));
}

TEST_F(SmallStore, NoLimitOfTheLogIsLookedAt) {
  for (const uint64_t ssd_bytes : {uint64_t{1}, uint64_t{3} << 20, ~uint64_t{0}}) {
    world_.options().ssd_bytes = ssd_bytes;
    const Status opened = world_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), last_));
    const LogSpace space = *ReportMemory(*world_).logs[Tier::kSsd];
    EXPECT_EQ(space.budget_bytes, 0u);
    EXPECT_EQ(space.dirty_bytes, 0u);
    EXPECT_EQ(space.reserved_bytes, 0u);
    EXPECT_GT(space.live_bytes, 0u);
  }
}

// ---- exports ----

TEST_F(SmallStore, ExportsWhatItHasOpenBesideOthers) {
  const auto previous = world_.OpenBeside(/*previous=*/true);
  ASSERT_TRUE(previous.ok()) << previous.status();
  const Tables older = *ReadAll(previous->get());
  ASSERT_NE(older, last_);
  const Status exported = world_->checkpoints()->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  ASSERT_TRUE((*previous)->checkpoints()->Export("older", GoOn).ok());
  EXPECT_TRUE(IsAlreadyExists(world_->checkpoints()->Export("log", GoOn))) << "its own directory";
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), last_));
  EXPECT_TRUE(FilesOfStore(world_.disk()) == before_);
  // Exports are stores like others, also to be changed.
  world_.options().read_only = false;
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", last_));
  const auto changed = OpenAt(&world_, "older");
  ASSERT_TRUE(changed.ok()) << changed.status();
  ASSERT_NO_FATAL_FAILURE(ExpectIs(changed->get(), older));
  ASSERT_NO_FATAL_FAILURE(ChangeAll(changed->get(), 4.0f));
  ASSERT_TRUE((*changed)->checkpoints()->Make({}).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), last_));
  ASSERT_NO_FATAL_FAILURE(ExpectIs(previous->get(), older));
  EXPECT_TRUE(FilesOfStore(world_.disk()) == before_);
}

}  // namespace
}  // namespace embank::test::read_only_test
