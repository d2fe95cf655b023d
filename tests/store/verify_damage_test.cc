// Bits of a store's files are flipped, and verify tells the truth: a checkpoint opens or not as it
// said. If one opens, every row has its value or is DATA_LOSS, and those are exactly the rows that
// it named.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/lookup.h"
#include "store/inspect/verify.h"
#include "store/store.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/flipped_store.h"
#include "tests/support/random.h"
#include "tests/support/simulated_disk.h"

namespace embank::test::verify_damage_test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kFlips = 1'000;
#else
constexpr uint64_t kFlips = 10'000;
#endif

// With PMem a quarter: the suite runs without it, too.
uint64_t Flips() { return kFlips * TestScale() / (WithPmem() ? 4 : 1); }

using Keys = std::map<std::string, std::set<Key>>;  // by table

// The rows that verify reports as lost in the checkpoint; all are named where it opens.
Keys NamedKeys(const VerifyReport& report, uint32_t checkpoint) {
  Keys keys;
  uint64_t rows = 0;
  for (const Damage& damage : report.damage) {
    for (const LostRows& lost : damage.lost) {
      if (lost.checkpoint != checkpoint) continue;
      keys[lost.table].insert(lost.keys.begin(), lost.keys.end());
      rows += lost.rows;
    }
  }
  for (const VerifiedCheckpoint& verified : report.checkpoints) {
    if (verified.checkpoint != checkpoint) continue;
    EXPECT_EQ(verified.rows_lost, rows);
  }
  uint64_t named = 0;
  for (const auto& [table, of_table] : keys) named += of_table.size();
  EXPECT_EQ(named, rows);
  return keys;
}

// The rows that the store reports as lost; the others are as they were.
Keys LostKeys(Store* store, const Contents& contents) {
  Keys lost;
  for (const auto& [name, values] : contents) {
    Table* const table = *store->catalog().Open(name);
    const uint32_t dim = table->layout().dim;
    std::vector<Key> keys;
    for (const auto& [key, value] : values) keys.push_back(key);
    std::vector<float> rows(keys.size() * dim);
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_TRUE(Lookup(table, keys, MissingRule::kSkip, RowsIn(&rows, dim), outcomes).ok());
    EXPECT_EQ(table->rows(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (outcomes[i] == static_cast<uint8_t>(Outcome::kDataLoss)) {
        lost[name].insert(keys[i]);
        continue;
      }
      EXPECT_EQ(outcomes[i], static_cast<uint8_t>(Outcome::kFound)) << name << " " << keys[i];
      const std::vector<float> expected(dim, values.at(keys[i]));
      const auto row = rows.begin() + static_cast<ptrdiff_t>(i * dim);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), row)) << name << " " << keys[i];
    }
  }
  return lost;
}

void CountParts(const VerifyReport& report, Events* events) {
  if (report.clean()) events->Count("clean: nobody reads it");
  for (const Damage& damage : report.damage) events->Count(PartName(damage.part));
}

void ExpectAsVerified(const FlippedStore& world, const SimulatedDisk& damaged,
                      const VerifyReport& report, Events* events) {
  for (const VerifiedCheckpoint& checkpoint : report.checkpoints) {
    // An opening writes damaged footers anew.
    const auto disk = damaged.AfterCrash(damaged.changes(), Persistence::kAll, 0);
    const auto store = OpenOn(disk.get(), !checkpoint.is_newest);
    ASSERT_EQ(store.ok(), checkpoint.opens) << store.status();
    if (!store.ok()) {
      EXPECT_TRUE(IsDataLoss(store.status())) << store.status();
      events->Count("a checkpoint does not open");
      continue;
    }
    const Keys named = NamedKeys(report, checkpoint.checkpoint);
    EXPECT_EQ(LostKeys(store->get(), world.ContentsOf(checkpoint.checkpoint)), named);
    events->Count(named.empty() ? "opens whole" : "opens but for rows that are named");
  }
}

TEST(VerifyDamage, IsWhatHappensThen) {
  const FlippedStore world;
  ASSERT_GT(SegmentPaths(world.disk()).size(), 3u);
  Events events;
  for (const char* name :
       {"clean: nobody reads it", "manifest", "header", "footer", "records", "opens whole",
        "a checkpoint does not open", "opens but for rows that are named"}) {
    events.Expect(name);
  }
  uint64_t done = 0;
  uint64_t run = 0;
  for (; done < Flips() && !HasFailure(); ++run) {
    Random random(Random(kFlippedSeed + FirstSeed()).Bits() + run);
    const std::unique_ptr<SimulatedDisk> disk = world.Copy();
    const uint64_t flips = random.Below(2) == 0 ? 1 : 2 + random.Below(3);
    done += flips;
    SCOPED_TRACE("run " + std::to_string(run) + ": " + Flip(disk.get(), flips, &random));
    const auto report = VerifyStore(disk.get(), "log", [](uint64_t, uint64_t) { return true; });
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->checkpoints.size(), 2u);
    CountParts(*report, &events);
    // Some of the clean stores are opened, too.
    if (report->clean() && run % 8 != 0) continue;
    ExpectAsVerified(world, *disk, *report, &events);
  }
  std::printf("%squantities: %llu bits flipped in %llu copies of a store's files\n",
              events.Table().c_str(), static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(run));
  EXPECT_GE(done, Flips());
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test::verify_damage_test
