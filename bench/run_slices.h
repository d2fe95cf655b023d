// A run in slices of its batches, for a plot over time.
#ifndef EMBANK_BENCH_RUN_SLICES_H_
#define EMBANK_BENCH_RUN_SLICES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace embank {

// A run of consecutive batches.
struct RunSlice {
  uint64_t positions = 0;  // keys of the batches
  uint64_t lookup_ns = 0;  // spent in the store's calls
  uint64_t gradients_ns = 0;
  uint64_t accesses = 0;  // rows that were asked for, and those of them that were found
  uint64_t hits = 0;

  // Keys per second of either verb, and hits / accesses. NaN where there was none.
  double LookupsPerSecond() const;
  double GradientsPerSecond() const;
  double HitRatio() const;
};

// Keeps at most kSlicesMax slices of a run of unknown length. When they are used up, neighbours are
// joined, and slices are twice as long from then on. All have equally many batches, except the
// last.
class RunSlices {
 public:
  static constexpr size_t kSlicesMax = 64;

  // The next batch.
  void Add(const RunSlice& batch);

  const std::vector<RunSlice>& slices() const { return slices_; }

 private:
  std::vector<RunSlice> slices_;
  uint64_t batches_per_slice_ = 1;
  uint64_t batches_in_last_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_RUN_SLICES_H_
