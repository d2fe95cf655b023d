// The area under the ROC curve.
#ifndef EMBANK_TRAIN_DENSE_AUC_H_
#define EMBANK_TRAIN_DENSE_AUC_H_

#include <cstdint>
#include <span>
#include <vector>

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

// The AUC of any number of samples in constant memory. It counts scores in 2^20 bins, and scores of
// one bin are taken as equal: the error is at most half the share of pairs of a positive and a
// negative sample in one bin. From 2^k - 1 to 2^(k+1) - 1, and below 0 alike, a bin has a width of
// 2^(k-15), for k up to 15; all larger scores have one bin. One thread.
class AucCounts {
 public:
  // Allocates 16 MiB with the first samples. Labels are 0 or 1.
  void Add(std::span<const float> scores, std::span<const float> labels);
  // The statuses of embank::Auc.
  StatusOr<double> Auc() const;

 private:
  struct Bin {
    uint64_t positives = 0;
    uint64_t negatives = 0;
  };
  std::vector<Bin> bins_;  // by rising scores; empty: there are no samples
  bool has_nan_ = false;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_AUC_H_
