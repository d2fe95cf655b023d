#include "train/dense/auc.h"

#include <algorithm>
#include <bit>
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

// Bins of negative scores, and as many of others: 16 powers of 2.
constexpr uint32_t kBinsOfSign = 1u << 19;
constexpr uint32_t kBinsOfPowerLog2 = 15;
constexpr uint32_t kMantissaLog2 = 23;

// The size plus 1 has at least the exponent of 1, and its bits rise with it.
uint32_t BinOf(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(std::fabs(score) + 1.0f);
  const uint32_t above_one = bits - std::bit_cast<uint32_t>(1.0f);
  const uint32_t bin = std::min(above_one >> (kMantissaLog2 - kBinsOfPowerLog2), kBinsOfSign - 1);
  return score < 0.0f ? kBinsOfSign - 1 - bin : kBinsOfSign + bin;
}

Status NanScore() { return InvalidArgumentError("AUC: a score is NaN"); }
Status OneLabel() { return FailedPreconditionError("AUC: all samples have the same label"); }

}  // namespace

StatusOr<double> Auc(std::span<const float> scores, std::span<const float> labels) {
  EMBANK_CHECK(scores.size() == labels.size() && scores.size() <= kAucSamplesMax);
  std::vector<Scored> samples(scores.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    if (std::isnan(scores[i])) return NanScore();
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
  if (positives == 0 || negatives == 0) return OneLabel();
  // Each positive counts the positives up to itself, too: these ranks are 1..positives.
  const uint64_t doubled_pairs = doubled_ranks - positives * (positives + 1);
  return static_cast<double>(doubled_pairs) /
         (2.0 * static_cast<double>(positives) * static_cast<double>(negatives));
}

void AucCounts::Add(std::span<const float> scores, std::span<const float> labels) {
  EMBANK_CHECK(scores.size() == labels.size());
  if (scores.empty()) return;
  bins_.resize(size_t{2} * kBinsOfSign);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      has_nan_ = true;
      continue;
    }
    Bin& bin = bins_[BinOf(scores[i])];
    ++(labels[i] > 0.5f ? bin.positives : bin.negatives);
  }
}

// Pairs of more than 2^32 samples have more than 64 bits.
StatusOr<double> AucCounts::Auc() const {
  if (has_nan_) return NanScore();
  double doubled_pairs = 0.0;
  uint64_t positives = 0, negatives = 0;
  for (const Bin& bin : bins_) {
    doubled_pairs +=
        static_cast<double>(bin.positives) * static_cast<double>(2 * negatives + bin.negatives);
    positives += bin.positives;
    negatives += bin.negatives;
  }
  if (positives == 0 || negatives == 0) return OneLabel();
  return doubled_pairs / (2.0 * static_cast<double>(positives) * static_cast<double>(negatives));
}

}  // namespace embank
