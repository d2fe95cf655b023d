#include "train/rate_schedule.h"

#include <algorithm>

#include "base/exact_text.h"
#include "base/numeric.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr double kPi = 3.14159265358979323846;

double CurveAt(const RateSchedule& schedule, uint64_t step) {
  switch (schedule.curve) {
    case RateCurve::kConstant:
      return 1.0;
    case RateCurve::kCosine: {
      const uint64_t begin = std::min(step, schedule.warmup_steps);
      const auto done = static_cast<double>(step - begin);
      const auto all = static_cast<double>(schedule.steps - schedule.warmup_steps);
      const double last = schedule.factor;
      return last + (1.0 - last) * (1.0 + Cosine(kPi * std::min(1.0, done / all))) / 2.0;
    }
    case RateCurve::kStep:
      return Power(schedule.factor,
                   static_cast<uint32_t>(std::min<uint64_t>(step / schedule.steps, UINT32_MAX)));
  }
  return 1.0;
}

}  // namespace

const char* NameOf(RateCurve curve) {
  switch (curve) {
    case RateCurve::kConstant:
      return "constant";
    case RateCurve::kCosine:
      return "cosine";
    case RateCurve::kStep:
      return "step";
  }
  return "";
}

Status Validate(const RateSchedule& schedule) {
  if (!(schedule.factor >= 0.0f && schedule.factor <= 1.0f)) {
    return InvalidArgumentError(
        StrCat("the factor of the schedule is ", schedule.factor, "; it must be 0 to 1"));
  }
  if (schedule.curve == RateCurve::kStep && schedule.steps == 0) {
    return InvalidArgumentError("the schedule falls after 0 steps; it must be at least 1");
  }
  if (schedule.curve == RateCurve::kStep && schedule.factor == 0.0f) {
    return InvalidArgumentError(
        "the factor of the schedule is 0, and the rates are 0 after its first fall; it must be "
        "above 0");
  }
  if (schedule.curve != RateCurve::kCosine || schedule.steps > schedule.warmup_steps) {
    return OkStatus();
  }
  return InvalidArgumentError(StrCat("the schedule has ", schedule.steps,
                                     " steps and a warm-up of ", schedule.warmup_steps,
                                     "; it must have more steps than that"));
}

float RateFactor(const RateSchedule& schedule, uint64_t step) {
  const double warm =
      step >= schedule.warmup_steps
          ? 1.0
          : static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps + 1);
  return static_cast<float>(warm * CurveAt(schedule, step));
}

std::string TextOf(const RateSchedule& schedule) {
  std::string text = "constant";
  if (schedule.curve == RateCurve::kCosine) {
    text = StrCat("cosine to ", ExactText(schedule.factor), " at step ", schedule.steps);
  } else if (schedule.curve == RateCurve::kStep) {
    text = StrCat("times ", ExactText(schedule.factor), " every ", schedule.steps, " steps");
  }
  if (schedule.warmup_steps > 0) StrAppend(&text, ", warm-up ", schedule.warmup_steps, " steps");
  return text;
}

}  // namespace embank
