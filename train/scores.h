// Loss and AUC of samples, batch by batch.
#ifndef EMBANK_TRAIN_SCORES_H_
#define EMBANK_TRAIN_SCORES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status_or.h"
#include "train/dense/auc.h"
#include "train/dense/loss.h"

namespace embank {

// One thread.
class Scores {
 public:
  // Samples whose AUC is exact, because they are kept. That of more is of AucCounts.
  static constexpr uint64_t kKeptMax = uint64_t{1} << 21;

  // Adds a batch.
  void Add(std::span<const float> logits, std::span<const float> labels) {
    loss_ += SumLogLoss(logits, labels);
    samples_ += logits.size();
    if (samples_ <= kKeptMax) {
      logits_.insert(logits_.end(), logits.begin(), logits.end());
      labels_.insert(labels_.end(), labels.begin(), labels.end());
      return;
    }
    counts_.Add(logits_, labels_);
    counts_.Add(logits, labels);
    // Frees them, as clear() does not.
    logits_ = std::vector<float>();
    labels_ = std::vector<float>();
  }
  // The mean loss; 0 where there are no samples.
  double loss() const { return samples_ == 0 ? 0.0 : loss_ / static_cast<double>(samples_); }
  uint64_t samples() const { return samples_; }
  // That of all samples. A half where all labels are equal.
  double auc() const {
    const StatusOr<double> auc = samples_ <= kKeptMax ? Auc(logits_, labels_) : counts_.Auc();
    return auc.ok() ? *auc : 0.5;
  }

 private:
  double loss_ = 0.0;
  uint64_t samples_ = 0;
  std::vector<float> logits_, labels_;  // empty after kKeptMax samples
  AucCounts counts_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_SCORES_H_
