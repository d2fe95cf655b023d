// The area under the ROC curve.
#ifndef EMBANK_TRAIN_DENSE_AUC_H_
#define EMBANK_TRAIN_DENSE_AUC_H_

#include <cstdint>
#include <span>

#include "base/status_or.h"

namespace embank {

// The share of pairs of a positive and a negative sample in which the positive one has the higher
// score; equal scores count half. Counted in integers and divided once. Labels are 0 or 1; at most
// kAucSamplesMax samples. Thread-safe; allocates.
// FAILED_PRECONDITION: all samples have the same label.
// INVALID_ARGUMENT: a score is NaN.
StatusOr<double> Auc(std::span<const float> scores, std::span<const float> labels);

// Twice the sum of all ranks, n (n + 1), is below 2^64.
inline constexpr uint64_t kAucSamplesMax = uint64_t{1} << 31;

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_AUC_H_
