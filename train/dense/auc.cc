#include "train/dense/auc.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/check.h"

namespace embank {
namespace {

struct Scored {
  float score;
  bool is_positive;
};

}  // namespace

StatusOr<double> Auc(std::span<const float> scores, std::span<const float> labels) {
  EMBANK_CHECK(scores.size() == labels.size() && scores.size() <= kAucSamplesMax);
  std::vector<Scored> samples(scores.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (std::isnan(scores[i])) return InvalidArgumentError("AUC: a score is NaN");
    samples[i] = {scores[i], labels[i] > 0.5f};
  }
  std::ranges::sort(samples, {}, &Scored::score);
  // Ranks begin at 1. Samples begin..end-1 with one score share the mean of ranks begin+1..end,
  // which doubled is begin + 1 + end.
  uint64_t positives = 0, doubled_ranks = 0;
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    uint64_t tied_positives = 0;
    for (; end < samples.size() && samples[end].score == samples[begin].score; ++end) {
      tied_positives += samples[end].is_positive ? 1 : 0;
    }
    positives += tied_positives;
    doubled_ranks += tied_positives * (begin + 1 + end);
  }
  const uint64_t negatives = samples.size() - positives;
  if (positives == 0 || negatives == 0) {
    return FailedPreconditionError("AUC: all samples have the same label");
  }
  // Each positive counts the positives up to itself, too: these ranks are 1..positives.
  const uint64_t doubled_pairs = doubled_ranks - positives * (positives + 1);
  return static_cast<double>(doubled_pairs) /
         (2.0 * static_cast<double>(positives) * static_cast<double>(negatives));
}

}  // namespace embank
