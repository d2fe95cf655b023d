#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "base/status_or.h"

namespace embank::test::status_test {
namespace {

TEST(Status, IsOkUntilToldOtherwise) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status, OkStatus());
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
}

TEST(Status, HasACodeAndAMessage) {
  const Status status = DataLossError("segment-1: bad checksum");
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(IsDataLoss(status));
  EXPECT_FALSE(IsNotFound(status));
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  std::ostringstream out;
  out << status;
  EXPECT_EQ(out.str(), "DATA_LOSS: segment-1: bad checksum");
}

TEST(Status, OkDropsItsMessage) { EXPECT_EQ(Status(StatusCode::kOk, "not said"), OkStatus()); }

TEST(Status, KeepsTheFirstError) {
  Status status;
  status.Update(NotFoundError("first"));
  status.Update(InternalError("second"));
  status.Update(OkStatus());
  EXPECT_EQ(status, NotFoundError("first"));
}

TEST(Status, SurvivesTheCopyItCameFrom) {
  Status copy;
  {
    const Status first = UnavailableError(std::string(100, 'x'));
    copy = first;
  }
  EXPECT_EQ(copy.message(), std::string(100, 'x'));
  EXPECT_NE(copy, UnavailableError("x"));
  EXPECT_NE(copy, UnknownError(copy.message()));
}

TEST(StatusOr, HoldsAValueOrAReason) {
  StatusOr<std::string> result = "text";
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, "text");
  EXPECT_EQ(result->size(), 4U);
  result = NotFoundError("nowhere");
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status(), NotFoundError("nowhere"));
  EXPECT_EQ(result.value_or("other"), "other");
  EXPECT_EQ(StatusOr<int>().status().code(), StatusCode::kUnknown);
}

TEST(StatusOr, GivesUpAValueThatCanOnlyBeMoved) {
  StatusOr<std::unique_ptr<int>> owned = std::make_unique<int>(7);
  StatusOr<std::shared_ptr<int>> shared = std::move(owned);
  ASSERT_TRUE(shared.ok());
  const std::shared_ptr<int> value = *std::move(shared);
  EXPECT_EQ(*value, 7);
}

TEST(StatusOr, StopsTheProcessWhereThereIsNoValue) {
  const StatusOr<int> none = NotFoundError("nowhere");
  EXPECT_DEATH(static_cast<void>(*none), "broken");
  EXPECT_DEATH(static_cast<void>(StatusOr<int>(OkStatus())), "broken");
}

}  // namespace
}  // namespace embank::test::status_test
