// Manifests that are another store's, or missing: an opening acts as verify says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "store/inspect/verify.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_files.h"

namespace embank::test::verify_manifests_test {
namespace {

using testing::HasSubstr;

// A store of two checkpoints, closed: rows 1 to 150, then 100 to 249 written again.
class VerifyingManifests : public testing::Test {
 protected:
  VerifyingManifests() : world_(19) {
    Table* const table = world_.Create("t", Optimizer::kNone);
    for (const Key first : {1, 100}) {
      Put(table, KeysFrom(first, 150), static_cast<float>(first));
      EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
    }
    world_.Close();
  }

  SimulatedDisk& disk() { return world_.disk(); }
  VerifyReport Report() {
    auto report = VerifyStore(&disk(), "log", [](uint64_t, uint64_t) { return true; });
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return {};
    EXPECT_EQ(report->checkpoints.size(), 2u);
    EXPECT_FALSE(report->damage.empty());
    return *std::move(report);
  }
  // The newest manifest, as if it were another store's.
  Manifest OfAnotherStore() {
    StatusOr<Manifest> manifest = DecodeManifest(disk().Contents(ManifestPath(2)));
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    manifest->store_id ^= 1;
    return *std::move(manifest);
  }
  void PutManifest(const Manifest& manifest) {
    const std::vector<std::byte> bytes = EncodeManifest(manifest);
    disk().Truncate(ManifestPath(2), bytes.size());
    disk().Corrupt(ManifestPath(2), 0, bytes);
  }
  // The report about the newest manifest, alone.
  void ExpectOneDamage(const VerifyReport& report, const std::string& what) {
    ASSERT_EQ(report.damage.size(), 1u) << FormatVerifyReport(report);
    EXPECT_EQ(report.damage[0].part, DamagedPart::kManifest);
    EXPECT_EQ("log/" + report.damage[0].file, ManifestPath(2));
    EXPECT_THAT(report.damage[0].what, HasSubstr(what));
  }

  SpillWorld world_;
};

// Which of two stores the segments are of, they say themselves.
TEST_F(VerifyingManifests, AManifestOfAnotherStoreDoesNotDamageTheOlderOne) {
  PutManifest(OfAnotherStore());
  const VerifyReport report = Report();
  const auto damage = std::ranges::find(report.damage, "MANIFEST-00000002", &Damage::file);
  ASSERT_NE(damage, report.damage.end()) << FormatVerifyReport(report);
  EXPECT_EQ(damage->part, DamagedPart::kManifest);
  EXPECT_THAT(damage->what, HasSubstr("another store's"));
  EXPECT_FALSE(report.checkpoints[0].opens);
  EXPECT_EQ(report.checkpoints[0].rows_lost, 249u);
  EXPECT_TRUE(report.checkpoints[1].opens);
  EXPECT_EQ(report.checkpoints[1].rows_lost, 0u);
  EXPECT_TRUE(IsDataLoss(world_.Open()));
  ASSERT_TRUE(world_.Open(/*previous=*/true).ok());
  EXPECT_EQ((*world_->catalog().Open("t"))->rows(), 150u);
}

TEST_F(VerifyingManifests, AnEmptyManifestOfAnotherStoreIsNamed) {
  Manifest other = OfAnotherStore();
  other.segments.clear();
  other.heat = {};
  PutManifest(other);
  const VerifyReport report = Report();
  ExpectOneDamage(report, "another store than MANIFEST-00000001");
  EXPECT_TRUE(report.checkpoints[1].opens);
  EXPECT_EQ(report.checkpoints[1].rows_lost, 0u);
}

TEST_F(VerifyingManifests, AMissingNewestManifestIsDamageAndNoFileIsAnOrphan) {
  ASSERT_TRUE(disk().Remove(ManifestPath(2)).ok());
  const VerifyReport report = Report();
  ExpectOneDamage(report, "missing");
  EXPECT_FALSE(report.checkpoints[0].is_readable);
  EXPECT_TRUE(report.checkpoints[1].opens);
  EXPECT_EQ(report.orphans.count, 0u);
  EXPECT_GT(report.undecided.count, 0u);
}

}  // namespace
}  // namespace embank::test::verify_manifests_test
