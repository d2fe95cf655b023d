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
  // AUC is that of so many samples at least: the last ones.
  static constexpr size_t kSamplesMax = size_t{1} << 20;

  // Adds a batch.
  void Add(std::span<const float> logits, std::span<const float> labels) {
    loss_ += SumLogLoss(logits, labels);
    samples_ += logits.size();
    if (logits_.size() + logits.size() > 2 * kSamplesMax) {
      logits_.erase(logits_.begin(), logits_.end() - kSamplesMax);
      labels_.erase(labels_.begin(), labels_.end() - kSamplesMax);
    }
    logits_.insert(logits_.end(), logits.begin(), logits.end());
    labels_.insert(labels_.end(), labels.begin(), labels.end());
  }
  // The mean loss; 0 where there are no samples.
  double loss() const { return samples_ == 0 ? 0.0 : loss_ / static_cast<double>(samples_); }
  uint64_t samples() const { return samples_; }
  // A half where all labels are equal.
  double auc() const {
    const StatusOr<double> auc = Auc(logits_, labels_);
    return auc.ok() ? *auc : 0.5;
  }

 private:
  double loss_ = 0.0;
  uint64_t samples_ = 0;
  std::vector<float> logits_, labels_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_SCORES_H_
