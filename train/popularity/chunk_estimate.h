// An estimate of the number of entries of a table that are hot at a cutoff.
#ifndef EMBANK_TRAIN_POPULARITY_CHUNK_ESTIMATE_H_
#define EMBANK_TRAIN_POPULARITY_CHUNK_ESTIMATE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/popularity/id_counts.h"

namespace embank {

// FAE's chunk estimator (Adnan et al. 2021, section 4.1.2, Eq 2 to 4), with three changes. The
// entries are shuffled once, because ids may be sorted by popularity. The number of chunks grows
// until the bound is near the estimate, because 35 are too few where few entries are hot. The last
// chunk, which may be short, is always counted. Thread-safe.
class ChunkEstimator {
 public:
  static constexpr uint32_t kChunkEntries = 1024;
  static constexpr uint32_t kChunksFirst = 35;
  static constexpr double kConfidence = 0.999;  // two-sided
  // Half of the width of the confidence interval, as a part of the estimate. With the number
  // inside of the interval, the bound is at most 1.045 / 0.955 - 1 = 9.4 % above it.
  static constexpr double kHalfWidthMax = 0.045;

  // Copies the scores of the entries. The estimates follow from the seed.
  ChunkEstimator(std::span<const IdCount> entries, uint64_t seed);

  struct Estimate {
    double entries = 0.0;
    double upper_bound = 0.0;  // equal to `entries` where all were counted
    uint32_t chunks = 0;       // whole ones that were counted
  };

  // Estimates the number of entries with a score of at least `cutoff` (train/popularity/cutoff.h),
  // from at least `chunks_min` chunks, or from all of them.
  Estimate EntriesFrom(double cutoff, uint32_t chunks_min = kChunksFirst) const;

  uint64_t size() const { return scores_.size(); }

 private:
  struct Stage {
    uint32_t chunks = 0;
    double quantile = 0.0;  // of Student's t
  };

  uint32_t Count(size_t begin, size_t end, double cutoff) const;

  std::vector<double> scores_;
  uint32_t chunks_;            // whole ones
  std::vector<Stage> stages_;  // growing numbers of chunks, below all of them
};

}  // namespace embank

#endif  // EMBANK_TRAIN_POPULARITY_CHUNK_ESTIMATE_H_
