#include "train/dense/softmax_gate.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/numeric.h"

namespace embank {
namespace {

// The largest logit is subtracted first: no power overflows.
void Softmax(std::span<const float> logits, std::span<float> weights) {
  const float largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += Exponential(static_cast<double>(logit - largest));
  for (size_t e = 0; e < logits.size(); ++e) {
    weights[e] = static_cast<float>(Exponential(static_cast<double>(logits[e] - largest)) / sum);
  }
}

}  // namespace

void SoftmaxGateForward(ConstMatrix logits, std::span<const ConstMatrix> experts, Matrix weights,
                        Matrix output) {
  EMBANK_CHECK(!experts.empty() && logits.columns == experts.size());
  EMBANK_CHECK(weights.HasShapeOf(logits) && output.rows == logits.rows);
  for (uint32_t sample = 0; sample < logits.rows; ++sample) {
    Softmax(logits.Row(sample), weights.Row(sample));
    const std::span<float> sum = output.Row(sample);
    std::ranges::fill(sum, 0.0f);
    for (uint32_t e = 0; e < experts.size(); ++e) {
      EMBANK_CHECK(experts[e].HasShapeOf(output));
      const float weight = weights.Row(sample)[e];
      const float* const expert = experts[e].Row(sample).data();
      for (uint32_t d = 0; d < sum.size(); ++d) sum[d] += weight * expert[d];
    }
  }
}

void SoftmaxGateBackward(ConstMatrix weights, std::span<const ConstMatrix> experts,
                         ConstMatrix output_gradient, const SoftmaxGateGradients& gradients) {
  EMBANK_CHECK(weights.columns == experts.size() && gradients.experts.size() == experts.size());
  EMBANK_CHECK(gradients.logits.HasShapeOf(weights) && output_gradient.rows == weights.rows);
  for (uint32_t sample = 0; sample < weights.rows; ++sample) {
    const std::span<const float> weight = weights.Row(sample);
    const std::span<const float> g = output_gradient.Row(sample);
    const std::span<float> logit_gradient = gradients.logits.Row(sample);
    float mean = 0.0f;
    for (uint32_t e = 0; e < experts.size(); ++e) {
      const float* const expert = experts[e].Row(sample).data();
      float* const expert_gradient = gradients.experts[e].Row(sample).data();
      float product = 0.0f;
      for (uint32_t d = 0; d < g.size(); ++d) {
        product += g[d] * expert[d];
        expert_gradient[d] += weight[e] * g[d];
      }
      logit_gradient[e] = product;
      mean += weight[e] * product;
    }
    for (uint32_t e = 0; e < experts.size(); ++e) {
      logit_gradient[e] = weight[e] * (logit_gradient[e] - mean);
    }
  }
}

}  // namespace embank
