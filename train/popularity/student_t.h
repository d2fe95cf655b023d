// Quantiles of Student's t distribution.
#ifndef EMBANK_TRAIN_POPULARITY_STUDENT_T_H_
#define EMBANK_TRAIN_POPULARITY_STUDENT_T_H_

#include <cstdint>

namespace embank {

// Returns the t for which a variable of Student's distribution is in [-t, t] with probability
// `confidence`, which is above 0 and below 1. At least one degree of freedom, at most 2^30. The
// relative error is below 1e-6. The bits are the same on every machine.
double StudentT(double confidence, uint32_t degrees);

}  // namespace embank

#endif  // EMBANK_TRAIN_POPULARITY_STUDENT_T_H_
