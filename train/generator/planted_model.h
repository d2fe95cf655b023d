// The planted model: the function from which labels of a generated click log are drawn. The score
// of a sample is a sum of
//   - a normal number for the id of each planted field,
//   - the inner products of hidden vectors of the ids of the first fields, two by two,
//   - dense features times fixed weights;
// its logit is bias + scale * score.
#ifndef EMBANK_TRAIN_GENERATOR_PLANTED_MODEL_H_
#define EMBANK_TRAIN_GENERATOR_PLANTED_MODEL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace embank {

// Thread-safe after Calibrate.
class PlantedModel {
 public:
  static constexpr uint32_t kFieldsMax = 8;  // planted fields
  static constexpr uint32_t kPaired = 3;     // of these, with hidden vectors
  static constexpr uint32_t kHiddenDim = 4;
  static constexpr uint32_t kDenseMax = 4;  // planted dense features, the first ones

  explicit PlantedModel(uint64_t seed) : random_(seed) {}

  // Returns the score for the ids of the planted fields, at most kFieldsMax, and all dense
  // features.
  double Score(std::span<const uint64_t> ids, std::span<const float> dense) const;

  // Chooses bias and scale so that samples with these scores have this share of clicks, and the
  // probabilities this AUC, as nearly as a scale up to kScaleMax allows. 0 < click_share < 1 and
  // 0.5 <= auc < 1.
  void Calibrate(std::vector<double> scores, double click_share, double auc);
  static constexpr double kScaleMax = 16.0;

  double Logit(double score) const { return bias_ + scale_ * score; }

 private:
  CounterRandom random_;
  double bias_ = 0.0;
  double scale_ = 1.0;
};

// Returns 1 / (1 + e^-logit).
double ClickProbability(double logit);

// Returns the AUC that these logits are expected to have when each label is drawn with its own
// probability: no model has more, but by chance. At least two samples.
double ExpectedAuc(std::span<const double> logits);

}  // namespace embank

#endif  // EMBANK_TRAIN_GENERATOR_PLANTED_MODEL_H_
