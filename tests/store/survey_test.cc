#include "store/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_files.h"

namespace embank::test {
namespace {

using testing::HasSubstr;

// Two tables of one class, one of another; rows of the first are written twice.
class Surveying : public testing::Test {
 protected:
  Surveying() : world_(5) {
    Put(world_.Create("first", Optimizer::kNone), KeysFrom(1, 200), 1.0f);
    Put(world_.Create("second", Optimizer::kNone), KeysFrom(1, 30), 1.0f);
    world_.Create("empty", Optimizer::kAdam, 8);
    EXPECT_TRUE(world_->Checkpoint(BlobOf("blob")).ok());
    Put(*world_->OpenTable("first"), KeysFrom(1, 50), 2.0f);
    EXPECT_TRUE(world_->Checkpoint(BlobOf("longer blob")).ok());
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
  EXPECT_GE(of_first.dead_rows, 50u);
  EXPECT_EQ(of_first.segment_bytes, of_first.segments * SmallLog().segment_bytes);
  EXPECT_EQ(survey.segments, SegmentPaths(world_.disk()).size());
  EXPECT_GT(of_first.utilisation(), 0.4);
  EXPECT_LT(of_first.utilisation(), 0.9);
}

TEST_F(Surveying, RowsWhoseFooterIsDamagedOrGoneAreUnknown) {
  const std::string path = SegmentPaths(world_.disk())[0];
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

}  // namespace
}  // namespace embank::test
