// Stores of one number of ranks made into those of another one: the rows, states and heat, tables
// and counters that they keep, and the sources that are refused.
#include "store/inspect/reshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/hash.h"
#include "base/str_cat.h"
#include "store/batch/gradients.h"
#include "store/batch/state.h"
#include "store/inspect/store_writer.h"
#include "store/inspect/verify.h"
#include "tests/support/export_world.h"
#include "tests/support/files_below.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::reshard_test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSeed = 11;
constexpr size_t kRows = 3000;
constexpr const char* kReplicated = "all have it";

struct Row {
  std::vector<std::byte> vector;
  std::vector<float> state;
  uint32_t heat = 0;

  bool operator==(const Row&) const = default;
};
using Contents = std::map<std::string, std::map<Key, Row>>;

struct Kind {
  const char* name;
  uint32_t dim;
  ValueType value_type = ValueType::kF32;
  Optimizer optimizer = Optimizer::kNone;
  OnFull on_full = OnFull::kRefuse;
  EvictionPolicy eviction = EvictionPolicy::kClock;
};
constexpr Kind kKinds[] = {
    {"wide", 8, ValueType::kF32, Optimizer::kAdam},
    {"half", 5, ValueType::kF16, Optimizer::kAdagrad},  // with padding before the state
    {"weights", 1, ValueType::kF32, Optimizer::kFtrl},
    {"forgets", 4, ValueType::kBf16, Optimizer::kRowwiseAdagrad, OnFull::kForget},
    {"lru", 3, ValueType::kF32, Optimizer::kSgd, OnFull::kRefuse, EvictionPolicy::kLru},
    {"empty", 6},
    {kReplicated, 16, ValueType::kF32, Optimizer::kAdagrad}};

TableOptions OptionsOfKind(const Kind& kind) {
  TableOptions options = OptionsOf(kind.dim, kind.optimizer);
  options.value_type = kind.value_type;
  options.on_full = kind.on_full;
  options.eviction = kind.eviction;
  options.initializer = {.kind = InitializerKind::kUniform, .a = -1.0f, .b = 1.0f};
  if (kind.value_type != ValueType::kF32) options.rule.rounding = Rounding::kStochastic;
  return options;
}

std::unique_ptr<Store> OpenIn(const std::string& directory, bool read_only = false,
                              uint64_t seed = kSeed) {
  auto store = Store::Open(
      {.worker_threads = 1, .seed = seed, .path = directory, .read_only = read_only}, {});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// Makes rows with states and heat.
void Train(Table* table, const std::vector<Key>& keys, float gradient) {
  const uint32_t dim = table->layout().dim;
  std::vector<std::byte> rows(keys.size() * table->layout().vector_bytes);
  ASSERT_TRUE(
      Lookup(table, keys, MissingRule::kCreate, {rows.data(), table->layout().vector_bytes}, {})
          .ok());
  if (table->layout().optimizer == Optimizer::kNone) return;
  const std::vector<float> gradients(keys.size() * dim, gradient);
  ASSERT_TRUE(ApplyGradients(table, keys, RowsOf(gradients, dim), {}).ok());
}

Contents ContentsOf(Store* store) {
  Contents contents;
  for (Table* const table : store->catalog().List()) {
    const RowLayout& layout = table->layout();
    auto& rows = contents[table->name()];
    constexpr size_t kAtOnce = 500;
    std::vector<Key> keys(kAtOnce);
    std::vector<std::byte> vectors(kAtOnce * layout.vector_bytes);
    std::vector<float> states(kAtOnce * std::max(layout.state_floats, 1u));
    std::vector<uint32_t> heats(kAtOnce);
    const RowSpan states_in = {
        layout.state_floats == 0 ? nullptr : reinterpret_cast<std::byte*>(states.data()),
        layout.state_bytes()};
    Scan scan(table);
    while (true) {
      const auto count = scan.Next(
          {keys, {vectors.data(), layout.vector_bytes}, states_in, heats.data()}, kAtOnce);
      EXPECT_TRUE(count.ok()) << count.status();
      if (!count.ok() || *count == 0) break;
      for (size_t i = 0; i < *count; ++i) {
        const auto vector = vectors.begin() + static_cast<ptrdiff_t>(i * layout.vector_bytes);
        const auto state = states.begin() + static_cast<ptrdiff_t>(i * layout.state_floats);
        const Row row = {
            {vector, vector + layout.vector_bytes}, {state, state + layout.state_floats}, heats[i]};
        EXPECT_TRUE(rows.emplace(keys[i], row).second) << "key " << keys[i] << " twice";
      }
    }
    EXPECT_EQ(rows.size(), table->rows());
  }
  return contents;
}

class ReshardTest : public testing::Test {
 protected:
  ReshardTest() : files_(MakePosixFileSystem({})) {}

  std::string In(const std::string& name) const { return scratch_.path() + "/" + name; }

  // The one store, of two checkpoints; some of the heat is beside the records.
  std::string MakeOne(const std::string& name = "one") {
    const std::string directory = In(name);
    const auto store = OpenIn(directory);
    EXPECT_TRUE(store->CreateTable("gone", OptionsOf(2)).ok());
    for (const Kind& kind : kKinds) {
      const auto table = store->CreateTable(kind.name, OptionsOfKind(kind));
      EXPECT_TRUE(table.ok()) << table.status();
      if (std::string(kind.name) == "empty") continue;
      const bool is_replicated = std::string(kind.name) == kReplicated;
      Train(*table, KeysFrom(1, is_replicated ? 20 : kRows), 0.25f);
    }
    EXPECT_TRUE(store->DropTable("gone").ok());
    EXPECT_TRUE(store->checkpoints()->Make(BlobOf("older")).ok());
    Table* const wide = *store->catalog().Open("wide");
    for (int i = 0; i < 3; ++i) Train(wide, KeysFrom(100, 700), 0.5f);
    Train(*store->catalog().Open("half"), KeysFrom(50, 900), -0.125f);
    // Rows that are looked up alone gain heat beside their records.
    Table* const lru = *store->catalog().Open("lru");
    std::vector<float> rows(size_t{900} * 3);
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(Lookup(lru, KeysFrom(700, 900), MissingRule::kSkip, RowsIn(&rows, 3), {}).ok());
    }
    EXPECT_TRUE(Erase(wide, KeysFrom(2000, 300), {}).ok());
    EXPECT_TRUE(wide->ChangeRule([](UpdateRule* rule) { rule->learning_rate = 0.75f; }).ok());
    EXPECT_TRUE(store->checkpoints()->Make(BlobOf("newest")).ok());
    return directory;
  }

  StatusOr<ReshardReport> Reshard(const std::vector<std::string>& from,
                                  const std::vector<std::string>& to,
                                  const std::vector<std::string>& replicated = {kReplicated},
                                  ReshardProgress progress = GoOn) {
    std::vector<std::unique_ptr<CheckpointRows>> sources;
    for (const std::string& directory : from) {
      auto opened = CheckpointRows::Open(files_.get(), directory);
      if (!opened.ok()) return opened.status();
      sources.push_back(*std::move(opened));
    }
    const Status chosen = ChooseCheckpoints(sources, std::vector<size_t>(from.size()));
    if (!chosen.ok()) return chosen;
    std::vector<ReshardTarget> targets;
    for (const std::string& directory : to) targets.push_back({directory, "of " + directory});
    return ReshardStores(files_.get(), sources, targets,
                         {.replicated = replicated, .now_ns = ++now_ns_}, progress);
  }
  // The directories of the ranks, in a new directory.
  std::vector<std::string> Ranks(const std::string& name, size_t count) {
    std::filesystem::create_directory(In(name));
    std::vector<std::string> ranks;
    for (size_t i = 0; i < count; ++i) ranks.push_back(In(name) + "/" + std::to_string(i));
    return ranks;
  }
  // Reshards with success, and leaves the sources as they are.
  std::vector<std::string> Resharded(const std::vector<std::string>& from, size_t count) {
    std::map<std::string, std::string> before;
    for (const std::string& one : from) before.merge(BytesBelow(one));
    const std::vector<std::string> to =
        Ranks(std::to_string(from.size()) + " to " + std::to_string(count), count);
    const auto report = Reshard(from, to);
    EXPECT_TRUE(report.ok()) << report.status();
    std::map<std::string, std::string> after;
    for (const std::string& one : from) after.merge(BytesBelow(one));
    EXPECT_TRUE(before == after) << "a source has changed";
    EXPECT_TRUE(report.ok() && report->heat_lost.empty());
    return to;
  }

  // All rows of the ranks, each of which is on its owner, or on all.
  Contents ContentsOfRanks(const std::vector<std::string>& ranks) {
    Contents all;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const auto store = OpenIn(ranks[rank], /*read_only=*/true);
      if (store == nullptr) return {};
      for (const auto& [name, rows] : ContentsOf(store.get())) {
        const Table* const table = *store->catalog().Open(name);
        for (const auto& [key, row] : rows) {
          const bool is_new = all[name].emplace(key, row).second;
          if (name == kReplicated) {
            EXPECT_TRUE(all[name][key] == row) << "key " << key << " on rank " << rank;
            continue;
          }
          EXPECT_TRUE(is_new) << "key " << key << " of " << name << " twice";
          EXPECT_EQ(OwnerOf(table->HashOf(key), static_cast<uint32_t>(ranks.size())), rank);
        }
        all.try_emplace(name);
      }
      const auto report = VerifyStore(files_.get(), ranks[rank], GoOn);
      EXPECT_TRUE(report.ok() && report->clean()) << ranks[rank];
      EXPECT_EQ(report->orphans.count, 0u);
      const auto blob = store->checkpoints()->Blob();
      EXPECT_EQ(
          std::string(reinterpret_cast<const char*>(blob->data()), blob->size()),
          ranks.size() == 1 && rank == 0 && ranks[0] == In("one") ? "newest" : "of " + ranks[rank]);
    }
    return all;
  }

  void ExpectRefused(const StatusOr<ReshardReport>& report, StatusCode code,
                     const std::string& what) {
    EXPECT_EQ(report.status().code(), code) << report.status();
    EXPECT_THAT(std::string(report.status().message()), HasSubstr(what));
  }

  const std::unique_ptr<FileSystem> files_;
  const ScratchDirectory scratch_;
  uint64_t now_ns_ = 0;
};

TEST_F(ReshardTest, RowsStatesAndHeatAreTheSameForAnyNumberOfRanks) {
  std::vector<std::string> ranks = {MakeOne()};
  const Contents expected = ContentsOfRanks(ranks);
  ASSERT_EQ(expected.size(), std::size(kKinds));
  EXPECT_EQ(expected.at("wide").size(), kRows - 300);
  EXPECT_TRUE(expected.at("empty").empty());
  EXPECT_EQ(expected.at("wide").at(100).heat, 4u);
  EXPECT_EQ(expected.at("lru").at(700).heat, 6u);
  EXPECT_EQ(expected.at("lru").at(699).heat, 1u);
  for (const size_t count : {4u, 2u, 8u, 3u, 1u, 31u}) {
    SCOPED_TRACE(count);
    ranks = Resharded(ranks, count);
    const Contents contents = ContentsOfRanks(ranks);
    ASSERT_EQ(contents.size(), expected.size());
    for (const auto& [name, rows] : expected) EXPECT_TRUE(contents.at(name) == rows) << name;
  }
}

// Its rows are rounded by random draws that follow from the seed, the key and the number of the
// call; a step uses the learning rate and the states.
TEST_F(ReshardTest, TheStoreThatIsMadeGoesOnWithTheSameBits) {
  const std::string one = MakeOne();
  const std::vector<std::string> back = Resharded(Resharded({one}, 4), 1);
  std::vector<Contents> trained;
  for (const std::string& directory : {one, back[0]}) {
    {
      const auto store = OpenIn(directory);
      for (Table* const table : store->catalog().List()) {
        Train(table, KeysFrom(2900, 400), 0.3f);
      }
      ASSERT_TRUE(store->checkpoints()->Make({}).ok());
      ASSERT_TRUE(store->checkpoints()->Make({}).ok());
    }
    const auto store = OpenIn(directory, /*read_only=*/true);
    trained.push_back(ContentsOf(store.get()));
  }
  for (const auto& [name, rows] : trained[0]) EXPECT_TRUE(trained[1].at(name) == rows) << name;
  EXPECT_EQ(trained[0].at("half").size(), 3299u);
}

TEST_F(ReshardTest, TablesKeepTheirOptionsAndCountersAndTheReportCounts) {
  const std::string one = MakeOne();
  const std::vector<std::string> two = Ranks("two", 2);
  const auto report = Reshard({one}, two);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->rows, 5 * kRows - 300 + 20);
  EXPECT_GT(report->written_bytes, report->rows * 48);
  const auto before = OpenIn(one, /*read_only=*/true);
  std::set<uint64_t> ids;
  for (const std::string& rank : two) {
    const auto store = OpenIn(rank, /*read_only=*/true);
    EXPECT_EQ(store->catalog().List().size(), std::size(kKinds));
    for (size_t i = 0; i < std::size(kKinds); ++i) {
      Table* const table = store->catalog().List()[i];
      const Table* const source = before->catalog().List()[i];
      EXPECT_EQ(table->name(), source->name());
      EXPECT_EQ(report->tables[i].name, source->name());
      EXPECT_EQ(report->tables[i].rows, source->rows());
      EXPECT_EQ(report->tables[i].is_replicated, source->name() == kReplicated);
      EXPECT_EQ(table->layout(), source->layout());
      EXPECT_TRUE(RowClassOf(table->options()) == RowClassOf(source->options()));
      EXPECT_EQ(table->rule().learning_rate, source->rule().learning_rate);
      EXPECT_EQ(table->rule().rounding, source->rule().rounding);
      EXPECT_EQ(table->options().initializer.b, source->options().initializer.b);
      EXPECT_EQ(table->counters().gradient_calls.load(), source->counters().gradient_calls.load());
    }
    const auto rows = CheckpointRows::Open(files_.get(), rank);
    ids.insert((*rows)->kept()[0].manifest->store_id);
  }
  EXPECT_EQ(ids.size(), 2u);
}

// Tables that forget erase the records that were written first.
TEST_F(ReshardTest, OldRowsOfAllSourcesComeBeforeYoungOnes) {
  constexpr Key kKeys = 1000;
  const ManifestTable table = {.id = 0, .name = "t", .options = OptionsOf(4)};
  const std::vector<std::byte> payload(RowClassOf(table.options).slot_bytes - sizeof(RowHeader));
  const std::vector<std::string> two = Ranks("two", 2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const auto writer = StoreWriter::Make(files_.get(), two[rank],
                                          {.store_id = 7 + rank,
                                           .tables = {table},
                                           .buffer_bytes = StoreWriter::kBufferBytesMin,
                                           .segment_rows_max = 10});
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (Key key = 0; key < kKeys; ++key) {
      if (OwnerOf(HashKey(TableHash("t"), key), 2) != rank) continue;
      ASSERT_TRUE((*writer)->Add(0, key, 3, payload).ok());
    }
    ASSERT_TRUE((*writer)->Finish({}, 0, rank + 1).ok());
  }
  ASSERT_TRUE(Reshard(two, {In("to")}, {}).ok());
  std::vector<std::unique_ptr<CheckpointRows>> made;
  made.push_back(*CheckpointRows::Open(files_.get(), In("to")));
  ASSERT_TRUE(ChooseCheckpoints(made, std::vector<size_t>{0}).ok());
  EXPECT_EQ(made[0]->manifest().rows_lost, 3u) << "those of both sources";
  uint64_t place = 0;
  ASSERT_TRUE(made[0]
                  ->VisitSegment(0,
                                 [&](const CheckpointRow& row) {
                                   EXPECT_EQ(row.heat, 3u);
                                   EXPECT_LT(place, row.key + kKeys / 10);
                                   EXPECT_LT(row.key, place++ + kKeys / 10);
                                   return OkStatus();
                                 })
                  .ok());
  EXPECT_EQ(place, kKeys);
}

TEST_F(ReshardTest, ProgressComesToItsEndAndCancels) {
  const std::string one = MakeOne();
  std::vector<std::pair<uint64_t, uint64_t>> told;
  const auto note = [&](uint64_t done, uint64_t total) {
    told.emplace_back(done, total);
    return true;
  };
  ASSERT_TRUE(Reshard({one}, Ranks("a", 2), {kReplicated}, note).ok());
  EXPECT_EQ(told.front().first, 0u);
  EXPECT_EQ(told.back().first, told.back().second);
  for (size_t steps = 0; steps < told.size(); ++steps) {
    size_t left = steps;
    const auto stop = [&](uint64_t, uint64_t) { return left-- > 0; };
    const auto ranks = Ranks("b" + std::to_string(steps), 2);
    const auto report = Reshard({one}, ranks, {kReplicated}, stop);
    EXPECT_TRUE(IsCancelled(report.status())) << report.status();
    EXPECT_FALSE(Store::Open({.path = ranks[0], .may_create = false}, {}).ok());
  }
}

// ---- refused sources ----

// A change of rank 1 of two, which a reshard sees.
using ChangeStore = FunctionRef<void(Store*)>;

class RefusedReshard : public ReshardTest {
 protected:
  StatusOr<ReshardReport> AfterChange(ChangeStore change, const std::string& name = "to") {
    const std::vector<std::string> two = Ranks("of " + name, 2);
    const auto made = Reshard({MakeOne("one " + name)}, two);
    if (!made.ok()) return made;
    {
      const auto store = OpenIn(two[1]);
      change(store.get());
      EXPECT_TRUE(store->checkpoints()->Make({}).ok());
    }
    return Reshard(two, Ranks(name, 4));
  }
  static Table* Replicated(Store* store) { return *store->catalog().Open(kReplicated); }
};

TEST_F(RefusedReshard, CopiesWhoseLastNumberDiffers) {
  for (const bool is_of_state : {false, true}) {
    SCOPED_TRACE(is_of_state);
    const auto report = AfterChange(
        [&](Store* store) {
          Table* const table = Replicated(store);
          std::vector<float> vector(16);
          std::vector<float> state(16);
          const Key key = 7;
          ASSERT_TRUE(Lookup(table, {&key, 1}, MissingRule::kZero, RowsIn(&vector, 16), {}).ok());
          ASSERT_TRUE(GetState(table, {&key, 1}, RowsIn(&state, 16), {}).ok());
          (is_of_state ? state : vector)[15] += 1e-3f;
          RowsToWrite rows(RowsOf(vector, 16));
          rows.states = RowsOf(state, 16);
          ASSERT_TRUE(Upsert(table, {&key, 1}, rows, {}).ok());
        },
        StrCat("of state ", is_of_state ? 1 : 0));
    ExpectRefused(report, StatusCode::kFailedPrecondition,
                  "table \"all have it\" is replicated, and the row of key 7 on rank 0 differs "
                  "from that on rank 1");
  }
}

TEST_F(RefusedReshard, ARowThatOneRankAloneHas) {
  const Key key = 12345;
  ExpectRefused(AfterChange([&](Store* store) { Train(Replicated(store), {key}, 0.0f); }),
                StatusCode::kFailedPrecondition, "key 12345 is on rank 1, and not on rank 0");
}

TEST_F(RefusedReshard, ARowThatOneRankLacks) {
  const Key key = 3;
  const auto report = AfterChange([&](Store* store) {
    ASSERT_TRUE(Erase(Replicated(store), {&key, 1}, {}).ok());
  });
  ExpectRefused(report, StatusCode::kFailedPrecondition, "key 3 is on rank 0, and not on rank 1");
}

TEST_F(RefusedReshard, ATableThatOneRankLacks) {
  const auto report =
      AfterChange([](Store* store) { ASSERT_TRUE(store->DropTable(kReplicated).ok()); });
  ExpectRefused(report, StatusCode::kFailedPrecondition, "and rank 1 does not have it");
}

TEST_F(RefusedReshard, ATableWithOtherOptions) {
  const auto report = AfterChange([](Store* store) {
    Table* const wide = *store->catalog().Open("wide");
    ASSERT_TRUE(wide->ChangeRule([](UpdateRule* rule) { rule->learning_rate = 2.0f; }).ok());
  });
  ExpectRefused(report, StatusCode::kFailedPrecondition,
                "table \"wide\" has other options on rank 1");
}

// Heat is each rank's own: that of rank 0 goes on.
TEST_F(RefusedReshard, ButNotCopiesWhoseHeatAloneDiffers) {
  const auto report = AfterChange([](Store* store) {
    Table* const table = Replicated(store);
    Train(table, KeysFrom(1, 20), 0.0f);
  });
  EXPECT_TRUE(report.ok()) << report.status();
}

TEST_F(RefusedReshard, ARowThatIsNotOnItsOwner) {
  const std::vector<std::string> two = Resharded({MakeOne()}, 2);
  std::vector<std::string> turned = {two[1], two[0]};
  ExpectRefused(Reshard(turned, Ranks("to", 4)), StatusCode::kFailedPrecondition,
                "on rank 0, and its owner is rank 1");
  ExpectRefused(Reshard(two, Ranks("other", 4), {}), StatusCode::kFailedPrecondition,
                "table \"all have it\": the row of key");
  ExpectRefused(Reshard(two, Ranks("third", 4), {"no such"}), StatusCode::kInvalidArgument,
                "no rank has a table \"no such\"");
}

TEST_F(RefusedReshard, StoresWithOtherSeeds) {
  const std::string one = MakeOne();
  ASSERT_TRUE(OpenIn(In("other"), false, kSeed + 1)->checkpoints()->Make({}).ok());
  ExpectRefused(Reshard({one, In("other")}, Ranks("to", 2)), StatusCode::kFailedPrecondition,
                "rank 1 has the seed 12, and rank 0 has 11");
}

TEST_F(RefusedReshard, AStoreThatIsOpenAndATargetWithAFile) {
  const std::string one = MakeOne();
  const auto ranks = Ranks("to", 2);
  {
    const auto store = OpenIn(one);
    ExpectRefused(Reshard({one}, ranks), StatusCode::kUnavailable, "open");
  }
  std::filesystem::create_directory(ranks[1]);
  std::ofstream(ranks[1] + "/notes") << "mine";
  ExpectRefused(Reshard({one}, ranks), StatusCode::kAlreadyExists, ranks[1]);
  ExpectRefused(Reshard({In("nowhere")}, ranks), StatusCode::kNotFound, "not a store");
}

}  // namespace
}  // namespace embank::test::reshard_test
