// Schedules of learning rates against their formulas.
#include "train/rate_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace embank::test::rate_schedule_test {
namespace {

TEST(RateSchedule, RisesOverTheWarmUp) {
  const RateSchedule schedule = {.warmup_steps = 4};
  for (uint64_t step = 0; step < 4; ++step) {
    EXPECT_FLOAT_EQ(RateFactor(schedule, step), static_cast<float>(step + 1) / 5.0f);
  }
  for (const uint64_t step : {uint64_t{4}, uint64_t{5}, UINT64_MAX}) {
    EXPECT_EQ(RateFactor(schedule, step), 1.0f);
  }
  EXPECT_EQ(RateFactor({}, 0), 1.0f);
}

TEST(RateSchedule, FallsByACosineToTheLastRate) {
  const RateSchedule schedule = {
      .curve = RateCurve::kCosine, .warmup_steps = 10, .steps = 110, .factor = 0.25f};
  EXPECT_FLOAT_EQ(RateFactor(schedule, 4), 5.0f / 11.0f);
  EXPECT_EQ(RateFactor(schedule, 10), 1.0f);
  for (uint64_t step = 10; step <= 110; ++step) {
    const double angle = 3.14159265358979323846 * static_cast<double>(step - 10) / 100.0;
    EXPECT_FLOAT_EQ(RateFactor(schedule, step),
                    static_cast<float>(0.25 + 0.75 * (1.0 + std::cos(angle)) / 2.0));
  }
  EXPECT_EQ(RateFactor(schedule, 110), 0.25f);
  EXPECT_EQ(RateFactor(schedule, 100'000), 0.25f);
  EXPECT_EQ(RateFactor({.curve = RateCurve::kCosine, .steps = 7}, 7), 0.0f);
}

TEST(RateSchedule, FallsInSteps) {
  const RateSchedule schedule = {.curve = RateCurve::kStep, .steps = 3, .factor = 0.5f};
  const float expected[] = {1, 1, 1, 0.5f, 0.5f, 0.5f, 0.25f};
  for (uint64_t step = 0; step < 7; ++step) EXPECT_EQ(RateFactor(schedule, step), expected[step]);
  EXPECT_EQ(RateFactor(schedule, UINT64_MAX), 0.0f);
}

TEST(RateSchedule, IsToldInWords) {
  EXPECT_EQ(TextOf(RateSchedule{}), "constant");
  EXPECT_EQ(TextOf({.curve = RateCurve::kCosine, .warmup_steps = 5, .steps = 90, .factor = 0.5f}),
            "cosine to 0.5 at step 90, warm-up 5 steps");
  EXPECT_EQ(TextOf({.curve = RateCurve::kStep, .steps = 7, .factor = 0.1f}),
            "times 0.1 every 7 steps");
}

TEST(RateSchedule, IsRefused) {
  EXPECT_TRUE(Validate(RateSchedule{}).ok());
  EXPECT_TRUE(Validate({.curve = RateCurve::kCosine, .steps = 1}).ok());
  for (const RateSchedule& wrong :
       {RateSchedule{.curve = RateCurve::kStep, .factor = 0.5f},
        RateSchedule{.curve = RateCurve::kStep, .steps = 5},
        RateSchedule{.curve = RateCurve::kCosine},
        RateSchedule{.curve = RateCurve::kCosine, .warmup_steps = 5, .steps = 5},
        RateSchedule{.factor = 1.5f}, RateSchedule{.factor = -0.5f}, RateSchedule{.factor = NAN}}) {
    EXPECT_TRUE(IsInvalidArgument(Validate(wrong))) << TextOf(wrong);
  }
}

}  // namespace
}  // namespace embank::test::rate_schedule_test
