// How learning rates change from step to step: a factor of the rates at the beginning.
//
//   constant  ____________    cosine  ___          step  ____
//                                        \__                 |____
//   with a warm-up, all of them rise      \___                    |____
//   evenly to their first rate
#ifndef EMBANK_TRAIN_RATE_SCHEDULE_H_
#define EMBANK_TRAIN_RATE_SCHEDULE_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace embank {

enum class RateCurve { kConstant, kCosine, kStep };
// Returns "constant", "cosine" or "step".
const char* NameOf(RateCurve curve);

struct RateSchedule {
  RateCurve curve = RateCurve::kConstant;
  uint64_t warmup_steps = 0;
  // kCosine: the step from which on the rate is the last one. kStep: the steps between two falls.
  uint64_t steps = 0;
  // kCosine: the last rate by the first one. kStep: what each fall multiplies by, above 0.
  float factor = 0.0f;

  bool operator==(const RateSchedule&) const = default;
};

// INVALID_ARGUMENT: a curve that changes has no steps, kCosine's do not end behind the warm-up, or
// the factor is not 0 to 1, or that of kStep is 0.
Status Validate(const RateSchedule& schedule);

// Returns the factor of the rates for a step; the first step of a training is 0. The same bits on
// every machine. kCosine is that of Loshchilov and Hutter (ICLR 2017), equation 5, without
// restarts.
float RateFactor(const RateSchedule& schedule, uint64_t step);

// Returns the schedule in words, in one line.
std::string TextOf(const RateSchedule& schedule);

}  // namespace embank

#endif  // EMBANK_TRAIN_RATE_SCHEDULE_H_
