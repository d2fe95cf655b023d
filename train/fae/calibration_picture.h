// The shares of rows and inputs that are hot, by threshold, and their picture.
#ifndef EMBANK_TRAIN_FAE_CALIBRATION_PICTURE_H_
#define EMBANK_TRAIN_FAE_CALIBRATION_PICTURE_H_

#include <span>
#include <string>
#include <vector>

#include "train/popularity/hot_choice.h"

namespace embank {

struct PopularityPoint {
  double threshold = 0.0;
  double rows_share = 0.0;    // of the rows of large tables that the sample has
  double inputs_share = 0.0;  // of the inputs: all their ids are hot
};

// Returns points at thresholds of equal ratios, from the one at which all rows are hot to the one
// at which none is. An input is hot up to its number in `input_thresholds`. Without large tables
// there are no points.
std::vector<PopularityPoint> PopularityCurve(std::span<const TablePopularity> tables,
                                             std::span<const double> input_thresholds);

// Returns an SVG file with both shares over the threshold, like figure 5 of Adnan et al. 2021, and
// with a mark at the chosen threshold.
std::string CalibrationSvg(std::span<const PopularityPoint> curve, double chosen);

}  // namespace embank

#endif  // EMBANK_TRAIN_FAE_CALIBRATION_PICTURE_H_
