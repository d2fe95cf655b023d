// The score of a row, and the cutoff from which rows are hot.
#ifndef EMBANK_TRAIN_POPULARITY_CUTOFF_H_
#define EMBANK_TRAIN_POPULARITY_CUTOFF_H_

#include <cstdint>

#include "base/hash.h"
#include "train/popularity/id_counts.h"

namespace embank {

// Returns the cutoff H = t T x of a table in a sample (Adnan et al. 2021, Eq 1, with x as a share
// instead of percent): a row is hot if its score in the sample is at least H. `threshold` is t,
// `accesses` the lookups in the table by the whole log, T, and `share` the sampled part x. The
// lookups of the sample itself are T x: they are given with the share 1.
constexpr double CutoffOf(double threshold, uint64_t accesses, double share) {
  return threshold * static_cast<double>(accesses) * share;
}

// Returns the count of a row, plus a fraction in [0, 1) that follows from its id. Rows of one count
// would all be hot or none, and the size of the hot rows could meet no budget. 20 bits of fraction
// and 32 of the count are exact in a double.
constexpr double ScoreOf(const IdCount& entry) {
  return entry.count + static_cast<double>(Mix(entry.id + kGoldenRatio) >> 44) * 0x1p-20;
}

}  // namespace embank

#endif  // EMBANK_TRAIN_POPULARITY_CUTOFF_H_
