#include "train/generator/planted_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/hash.h"
#include "base/numeric.h"

namespace embank {
namespace {

constexpr double kDenseWeight = 0.25;
constexpr double kLogitMax = 24.0;  // a click for sure, but for 4e-11
// Roots are within this of the true ones, if they are looked for between numbers below some 10^6.
// As a bias it changes a probability by a quarter of it at most, and as a scale by that times a
// score.
constexpr double kRootError = 1e-9;

// Returns where an increasing function is zero: by the secant method between points of opposite
// sign, and the Illinois rule, which halves the value at an end that has stayed. Points keep off
// both ends, so that both close in on the zero. Without a zero, returns the end whose value is
// nearest to it.
template <typename Function>
double RootOf(const Function& function, double low, double high) {
  double below = function(low), above = function(high);
  if (below >= 0.0) return low;
  if (above <= 0.0) return high;
  // Beyond, doubles are not that near to each other: some of their last bits are the error then.
  const double error = std::max(kRootError, 0x1p-50 * std::max(std::abs(low), std::abs(high)));
  for (int stayed = 0; high - low > 2.0 * error;) {
    const double secant = low + (high - low) * (below / (below - above));
    const double point = std::clamp(secant, low + error, high - error);
    const double value = function(point);
    if (value == 0.0) return point;
    if (value < 0.0) {
      if (stayed > 0) above *= 0.5;
      stayed = 1;
      low = point;
      below = value;
    } else {
      if (stayed < 0) below *= 0.5;
      stayed = -1;
      high = point;
      above = value;
    }
  }
  return 0.5 * (low + high);
}

// Returns the bias with which logits of `scale` times these scores have a mean probability of
// `click_share`. The scores are sorted.
double BiasFor(std::span<const double> scores, double scale, double click_share) {
  const auto share_beyond = [&](double bias) {
    double sum = 0.0;
    for (const double score : scores) sum += ClickProbability(bias + scale * score);
    return sum / static_cast<double>(scores.size()) - click_share;
  };
  return RootOf(share_beyond, -kLogitMax - scale * scores.back(),
                kLogitMax - scale * scores.front());
}

}  // namespace

double ClickProbability(double logit) { return 1.0 / (1.0 + Exponential(-logit)); }

double PlantedModel::Score(std::span<const uint64_t> ids, std::span<const float> dense) const {
  EMBANK_CHECK(ids.size() <= kFieldsMax);
  double score = 0.0;
  double hidden[kPaired][kHiddenDim] = {};
  for (uint32_t f = 0; f < ids.size(); ++f) {
    const CounterRandom values(Mix(random_.Bits(f) ^ ids[f]));
    score += NormalQuantile(values.UnitDouble(0));
    if (f >= kPaired) continue;
    for (uint32_t d = 0; d < kHiddenDim; ++d) {
      // The variance 1 / dim gives an inner product the variance 1 / dim, too.
      hidden[f][d] = 0.5 * NormalQuantile(values.UnitDouble(1 + d));
      for (uint32_t g = 0; g < f; ++g) score += hidden[g][d] * hidden[f][d];
    }
  }
  for (uint32_t d = 0; d < std::min<size_t>(dense.size(), kDenseMax); ++d) {
    score += (d % 2 == 0 ? kDenseWeight : -kDenseWeight) * static_cast<double>(dense[d]);
  }
  return score;
}

void PlantedModel::Calibrate(std::vector<double> scores, double click_share, double auc) {
  EMBANK_CHECK(scores.size() >= 2 && click_share > 0.0 && click_share < 1.0);
  EMBANK_CHECK(auc >= 0.5 && auc < 1.0);
  std::ranges::sort(scores);
  std::vector<double> logits(scores.size());
  const auto auc_beyond = [&](double scale) {
    scale_ = scale;
    bias_ = BiasFor(scores, scale, click_share);
    std::ranges::transform(scores, logits.begin(), [&](double score) { return Logit(score); });
    return ExpectedAuc(logits) - auc;
  };
  scale_ = RootOf(auc_beyond, 0.0, kScaleMax);
  bias_ = BiasFor(scores, scale_, click_share);
}

double ExpectedAuc(std::span<const double> logits) {
  EMBANK_CHECK(logits.size() >= 2);
  std::vector<double> sorted(logits.begin(), logits.end());
  std::ranges::sort(sorted);
  // Clicks above the samples that are no clicks; equal logits count half, and a sample makes no
  // pair with itself.
  double clicks = 0.0, others = 0.0, above = 0.0, with_itself = 0.0;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    const double probability = ClickProbability(sorted[begin]);
    while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
    const auto count = static_cast<double>(end - begin);
    const double others_here = count * (1.0 - probability);
    above += count * probability * (others + 0.5 * others_here);
    with_itself += count * probability * (1.0 - probability);
    clicks += count * probability;
    others += others_here;
  }
  return (above - 0.5 * with_itself) / (clicks * others - with_itself);
}

}  // namespace embank
