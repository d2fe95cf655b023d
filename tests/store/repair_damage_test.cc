// Bits of a store's files are flipped, files cut off and removed. The rows that repair saves are
// bit for bit as they were; it counts the others, and names their keys where these can be known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/batch/lookup.h"
#include "store/inspect/repair.h"
#include "store/inspect/verify.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/flipped_store.h"

namespace embank::test::repair_damage_test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kRuns = 200;
#else
constexpr uint64_t kRuns = 2'000;
#endif

// With PMem a quarter, where that is still many: the suite runs without it, too.
uint64_t Runs() { return kRuns * TestScale() / (WithPmem() && kRuns > 200 ? 4 : 1); }

using FileContents = std::map<std::string, std::vector<std::byte>>;

// Flips bits, and now and then cuts a file off, or removes it.
std::string Damage(SimulatedDisk* disk, Random* random) {
  std::string said = Flip(disk, random->Below(30) == 0 ? 200 : random->Below(6), random);
  const std::vector<std::string> segments = SegmentPaths(*disk);
  const std::string& path = segments[random->Below(segments.size())];
  switch (random->Below(10)) {
    case 0:
      said += path + " is missing; ";
      EXPECT_TRUE(disk->Remove(path).ok());
      break;
    case 1: {
      const uint64_t bytes = random->Below(disk->Contents(path).size());
      said += path + " is cut off after " + std::to_string(bytes) + " bytes; ";
      disk->Truncate(path, bytes);
      break;
    }
    case 2:
      said += "the newest manifest is missing; ";
      EXPECT_TRUE(disk->Remove(ManifestPath(2)).ok());
      break;
    default:
      break;
  }
  return said;
}

using Keys = std::map<std::string, std::set<Key>>;  // by table

// The keys without a row in the store; the rows of the others are those of the oracle.
Keys MissingKeys(Store* store, const Contents& contents) {
  Keys missing;
  for (const auto& [name, values] : contents) {
    const StatusOr<Table*> table = store->catalog().Open(name);
    EXPECT_TRUE(table.ok()) << table.status();
    if (!table.ok()) return {};
    const uint32_t dim = (*table)->layout().dim;
    std::vector<Key> keys;
    for (const auto& [key, value] : values) keys.push_back(key);
    std::vector<float> rows(keys.size() * dim);
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_TRUE(Lookup(*table, keys, MissingRule::kSkip, RowsIn(&rows, dim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (outcomes[i] == static_cast<uint8_t>(Outcome::kAbsent)) {
        missing[name].insert(keys[i]);
        continue;
      }
      EXPECT_EQ(outcomes[i], static_cast<uint8_t>(Outcome::kFound)) << name << " " << keys[i];
      const std::vector<float> expected(dim, values.at(keys[i]));
      const auto row = rows.begin() + static_cast<ptrdiff_t>(i * dim);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), row)) << name << " " << keys[i];
    }
    EXPECT_EQ((*table)->rows() + missing[name].size(), keys.size()) << name;
  }
  return missing;
}

void ExpectCounted(const RepairReport& report, const Contents& contents, const Keys& missing,
                   Events* events) {
  uint64_t all = 0;
  uint64_t gone = 0;
  for (const auto& [name, values] : contents) all += values.size();
  for (const auto& [name, keys] : missing) gone += keys.size();
  EXPECT_EQ(report.rows_lost, gone);
  EXPECT_EQ(report.rows_saved + report.rows_lost, all);
  uint64_t told = 0;
  Keys named;
  uint64_t unknown = 0;
  for (const RepairLoss& loss : report.losses) {
    told += loss.rows;
    named[loss.table].insert(loss.keys.begin(), loss.keys.end());
    EXPECT_TRUE(loss.keys.empty() || loss.keys.size() == loss.rows);
    if (loss.keys.empty()) unknown += loss.rows;
  }
  EXPECT_EQ(told, gone);
  EXPECT_EQ(report.losses.size(), report.loss_count);
  for (const auto& [name, keys] : named) {
    for (const Key key : keys) EXPECT_EQ(missing.at(name).count(key), 1u) << name << " " << key;
  }
  if (unknown == 0) {
    for (const auto& [name, keys] : missing) EXPECT_EQ(named[name], keys) << name;
  }
  for (const RepairedTable& table : report.tables) {
    EXPECT_EQ(table.rows_saved + missing.at(table.name).size(), contents.at(table.name).size());
    EXPECT_LE(table.rows_lost, missing.at(table.name).size());
  }
  if (unknown > 0) events->Count("keys that nobody knows");
  if (gone > unknown) events->Count("keys that are named");
  events->Count(gone == 0 ? "every row saved" : "some rows lost");
}

void ExpectSaved(const FlippedStore& world, SimulatedDisk* disk, const RepairReport& report,
                 Events* events) {
  const auto verified = VerifyStore(disk, "saved", [](uint64_t, uint64_t) { return true; });
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_TRUE(verified->clean()) << FormatVerifyReport(*verified);
  const auto store = OpenOn(disk, false, "saved");
  ASSERT_TRUE(store.ok()) << store.status();
  const Contents& contents = world.ContentsOf(report.checkpoint);
  ASSERT_EQ((*store)->catalog().List().size(), contents.size());
  const Keys missing = MissingKeys(store->get(), contents);
  ExpectCounted(report, contents, missing, events);
  events->Count(report.is_newest ? "the newest checkpoint" : "the previous checkpoint");
}

TEST(RepairDamage, SavesWhatVerifiesAndCountsTheRest) {
  const FlippedStore world;
  Events events;
  for (const char* name :
       {"every row saved", "some rows lost", "the newest checkpoint", "the previous checkpoint",
        "keys that nobody knows", "keys that are named", "no manifest can be read",
        "saved though no checkpoint opens"}) {
    events.Expect(name);
  }
  uint64_t rows_saved = 0;
  uint64_t rows_lost = 0;
  for (uint64_t run = 0; run < Runs() && !testing::Test::HasFailure(); ++run) {
    Random random(Random(kFlippedSeed + FirstSeed() + 1).Bits() + run);
    const std::unique_ptr<SimulatedDisk> disk = world.Copy();
    SCOPED_TRACE("run " + std::to_string(run) + ": " + Damage(disk.get(), &random));
    const FileContents before = FilesOfStore(*disk);
    const bool previous = random.Below(8) == 0;
    const auto report =
        RepairStore(disk.get(), {.directory = "log", .target = "saved", .previous = previous},
                    [](uint64_t, uint64_t) { return true; });
    EXPECT_TRUE(FilesOfStore(*disk) == before) << "it has written into the source";
    if (!report.ok()) {
      EXPECT_TRUE(IsDataLoss(report.status())) << report.status();
      EXPECT_NE(report.status().message().find("MANIFEST-"), std::string::npos) << report.status();
      EXPECT_FALSE(disk->List("saved").ok()) << "there is a part of a store";
      events.Count("no manifest can be read");
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSaved(world, disk.get(), *report, &events));
    rows_saved += report->rows_saved;
    rows_lost += report->rows_lost;
    if (run % (WithPmem() ? 4 : 16) == 0 &&
        !OpenOn(disk->AfterCrash(disk->changes(), Persistence::kAll, 0).get(), false).ok() &&
        !OpenOn(disk->AfterCrash(disk->changes(), Persistence::kAll, 0).get(), true).ok()) {
      events.Count("saved though no checkpoint opens");
    }
  }
  std::printf("%squantities: %llu stores repaired, %llu rows saved, %llu rows lost\n",
              events.Table().c_str(), static_cast<unsigned long long>(Runs()),
              static_cast<unsigned long long>(rows_saved),
              static_cast<unsigned long long>(rows_lost));
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test::repair_damage_test
