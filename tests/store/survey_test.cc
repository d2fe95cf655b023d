#include "store/inspect/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_files.h"

namespace embank::test::survey_test {
namespace {

using testing::HasSubstr;

// Two tables of one class, one of another; rows of the first are written twice.
class Surveying : public testing::Test {
 protected:
  Surveying() : world_(5) {
    Put(world_.Create("first", Optimizer::kNone), KeysFrom(1, 200), 1.0f);
    Put(world_.Create("second", Optimizer::kNone), KeysFrom(1, 30), 1.0f);
    world_.Create("empty", Optimizer::kAdam, 8);
    EXPECT_TRUE(world_->checkpoints()->Make(BlobOf("blob")).ok());
    Put(*world_->catalog().Open("first"), KeysFrom(1, 50), 2.0f);
    EXPECT_TRUE(world_->checkpoints()->Make(BlobOf("longer blob")).ok());
    world_.Close();
  }
  Survey Look() {
    const auto before = Everything(world_.disk());
    StatusOr<Survey> survey = SurveyStore(&world_.disk(), "log");
    EXPECT_TRUE(survey.ok()) << survey.status();
    EXPECT_TRUE(Everything(world_.disk()) == before) << "it has written";
    return survey.ok() ? *std::move(survey) : Survey();
  }

  SpillWorld world_;
};

TEST_F(Surveying, CountsRowsByTableAndBytesByClass) {
  const Survey survey = Look();
  ASSERT_EQ(survey.tables.size(), 3u);
  EXPECT_EQ(survey.tables[0].rows, 200u);
  EXPECT_EQ(survey.tables[1].rows, 30u);
  EXPECT_EQ(survey.tables[2].rows, 0u);
  EXPECT_EQ(survey.tables[0].row_class, survey.tables[1].row_class);
  EXPECT_NE(survey.tables[0].row_class, survey.tables[2].row_class);
  EXPECT_EQ(survey.unknown_rows, 0u);
  EXPECT_EQ(survey.seed, 5u);
  EXPECT_EQ(survey.blob_bytes, 11u);
  ASSERT_EQ(survey.checkpoints.size(), 2u);
  EXPECT_EQ(survey.checkpoints[0].checkpoint, 2u);
  EXPECT_EQ(survey.checkpoints[1].rows, 230u);
  const SurveyedClass& of_first = survey.classes[survey.tables[0].row_class];
  EXPECT_EQ(of_first.live_rows, 230u);
  // PMem gives the space of segments back in which all rows are dead.
  EXPECT_GE(of_first.dead_rows, WithPmem() ? 1u : 50u);
  EXPECT_EQ(of_first.segment_bytes, of_first.segments * SmallLog().segment_bytes);
  EXPECT_EQ(survey.segments, SegmentPaths(world_.disk()).size());
  EXPECT_GT(of_first.utilisation(), 0.4);
  EXPECT_LT(of_first.utilisation(), 0.9);
}

TEST_F(Surveying, TheNewestManifestIsReadAlone) {
  const StatusOr<Manifest> manifest = ReadNewestManifest(&world_.disk(), "log");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->checkpoint, 2u);
  EXPECT_EQ(manifest->seed, 5u);
  EXPECT_TRUE(std::ranges::equal(manifest->blob, BlobOf("longer blob")));
  EXPECT_TRUE(IsNotFound(ReadNewestManifest(&world_.disk(), "nowhere").status()));
}

uint64_t TakenBytes(const Survey& survey) {
  return survey.taken_bytes[Tier::kSsd] + survey.taken_bytes[Tier::kPmem];
}

TEST_F(Surveying, SpaceIsToldByMedium) {
  const Survey survey = Look();
  EXPECT_EQ(survey.taken_bytes[Tier::kPmem] > 0, WithPmem());
  EXPECT_GE(TakenBytes(survey), survey.kept_bytes);
  // As files that cannot be opened, those of which the size is not told take none.
  std::map<std::string, int> asked;
  world_.disk().SetFaults([&](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kSize && ++asked[call.path] == 2;
    return fails ? UnavailableError("the device fails") : OkStatus();
  });
  const Survey untold = Look();
  world_.disk().SetFaults({});
  EXPECT_LT(TakenBytes(untold), TakenBytes(survey));
  EXPECT_EQ(untold.kept_bytes, survey.kept_bytes);
}

TEST_F(Surveying, RowsWhoseFooterIsDamagedOrGoneAreUnknown) {
  const std::string path = SegmentPathsOf(world_.disk(), 2)[0];
  FlipBits(&world_.disk(), path, world_.disk().Contents(path).size() - 9, 4);
  const Survey damaged = Look();
  EXPECT_GT(damaged.unknown_rows, 5u);
  EXPECT_EQ(damaged.unknown_rows + damaged.tables[0].rows + damaged.tables[1].rows, 230u);
  ASSERT_TRUE(world_.disk().Remove(path).ok());
  EXPECT_EQ(Look().unknown_rows, damaged.unknown_rows);
}

TEST_F(Surveying, ADamagedPreviousManifestIsToldADamagedNewestIsTheEnd) {
  FlipBits(&world_.disk(), ManifestPath(1), 70, 1);
  EXPECT_THAT(Look().checkpoints.at(1).unreadable, HasSubstr("MANIFEST-00000001"));
  FlipBits(&world_.disk(), ManifestPath(2), 70, 1);
  const Status status = SurveyStore(&world_.disk(), "log").status();
  EXPECT_TRUE(IsDataLoss(status)) << status;
  EXPECT_TRUE(IsNotFound(SurveyStore(&world_.disk(), "elsewhere").status()));
}

// ---- beside a store that is being changed ----

// Calls made(n) before the n-th time that a manifest is read.
void BeforeManifests(SimulatedDisk* disk, std::function<void(uint64_t)> made) {
  disk->SetOpenHook([made = std::move(made), count = uint64_t{0},
                     inside = false](const std::string& path) mutable {
    if (inside || path.find("MANIFEST-") == std::string::npos) return;
    inside = true;
    made(++count);
    inside = false;
  });
}

TEST_F(Surveying, AStoreThatIsOpenShowsItsLastCheckpoint) {
  const Survey before = Look();
  ASSERT_TRUE(world_.Open().ok());
  Put(*world_->catalog().Open("first"), KeysFrom(1000, 70), 3.0f);
  EXPECT_EQ(Look().tables[0].rows, 200u);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  const Survey after = Look();
  EXPECT_EQ(after.checkpoints[0].checkpoint, before.checkpoints[0].checkpoint + 1);
  EXPECT_EQ(after.tables[0].rows, 270u);
}

// Files that the survey reads are removed meanwhile: manifests, and segments of which all rows were
// overwritten.
TEST_F(Surveying, ACheckpointThatComesMeanwhileIsShownAlone) {
  ASSERT_TRUE(world_.Open().ok());
  BeforeManifests(&world_.disk(), [&](uint64_t n) {
    if (n != 1 && n != 4) return;
    for (int i = 0; i < 3; ++i) {
      Put(*world_->catalog().Open("first"), KeysFrom(1, 200), static_cast<float>(10 * n + i));
      Put(*world_->catalog().Open("second"), KeysFrom(1, 30 + n), 1.0f);
      ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
    }
  });
  const StatusOr<Survey> survey = SurveyStore(&world_.disk(), "log");
  world_.disk().SetOpenHook(nullptr);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_EQ(survey->checkpoints[0].checkpoint, 8u);
  EXPECT_EQ(survey->checkpoints[1].checkpoint, 7u);
  EXPECT_EQ(survey->checkpoints[1].unreadable, "");
  EXPECT_EQ(survey->tables[0].rows, 200u);
  EXPECT_EQ(survey->tables[1].rows, 34u);
  EXPECT_EQ(survey->unknown_rows, 0u);
}

TEST_F(Surveying, CheckpointsThatNeverEndAreToldAfterSomeTries) {
  ASSERT_TRUE(world_.Open().ok());
  uint64_t made = 0;
  BeforeManifests(&world_.disk(), [&](uint64_t) {
    ++made;
    ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  });
  const Status status = SurveyStore(&world_.disk(), "log").status();
  world_.disk().SetOpenHook(nullptr);
  EXPECT_TRUE(IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("directory: log had a new checkpoint"));
  EXPECT_LE(made, 40u) << "it gives up";
}

}  // namespace
}  // namespace embank::test::survey_test
