#include "train/dense/loss.h"

#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "base/numeric.h"
#include "train/dense/activation.h"

namespace embank {
namespace {

// -log(sigmoid(z)) for the label 1 and -log(1 - sigmoid(z)) for 0, without a cancellation.
double LogLossOf(double logit, double label) {
  const double positive = logit < 0.0 ? 0.0 : logit;
  const double tail = NaturalLog(1.0 + Exponential(-std::fabs(logit)));
  return positive - logit * label + tail;
}

}  // namespace

double SumLogLoss(std::span<const float> logits, std::span<const float> labels) {
  EMBANK_CHECK(logits.size() == labels.size());
  double sum = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) {
    sum += LogLossOf(static_cast<double>(logits[i]), static_cast<double>(labels[i]));
  }
  return sum;
}

double SumLogLossBackward(std::span<const float> logits, std::span<const float> labels, float scale,
                          std::span<float> gradients) {
  EMBANK_CHECK(gradients.size() == logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double difference =
        Sigmoid(static_cast<double>(logits[i])) - static_cast<double>(labels[i]);
    gradients[i] = static_cast<float>(difference * static_cast<double>(scale));
  }
  return SumLogLoss(logits, labels);
}

bool IsLessLoss(double loss, double other) {
  return !std::isnan(loss) && (std::isnan(other) || loss < other);
}

}  // namespace embank
