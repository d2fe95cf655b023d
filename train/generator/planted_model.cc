#include "train/generator/planted_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "base/numeric.h"

namespace embank {
namespace {

// Bisections end where doubles of this size would hardly change a probability: 24 / 2^32 = 6e-9.
constexpr uint32_t kBisections = 32;
constexpr double kBiasMax = 24.0;
constexpr double kDenseWeight = 0.25;

// The mean probability of a click with this bias.
double MeanProbability(std::span<const double> scores, double bias, double scale) {
  double sum = 0.0;
  for (const double score : scores) sum += ClickProbability(bias + scale * score);
  return sum / static_cast<double>(scores.size());
}

double BiasFor(std::span<const double> scores, double scale, double click_share) {
  double low = -kBiasMax, high = kBiasMax;
  for (uint32_t i = 0; i < kBisections; ++i) {
    const double middle = 0.5 * (low + high);
    (MeanProbability(scores, middle, scale) < click_share ? low : high) = middle;
  }
  return 0.5 * (low + high);
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
  double low = 0.0, high = kScaleMax;
  for (uint32_t i = 0; i < kBisections; ++i) {
    scale_ = 0.5 * (low + high);
    bias_ = BiasFor(scores, scale_, click_share);
    for (size_t s = 0; s < scores.size(); ++s) logits[s] = Logit(scores[s]);
    (ExpectedAuc(logits) < auc ? low : high) = scale_;
  }
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
