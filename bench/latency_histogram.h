// A histogram of the durations of batches in nanoseconds. Buckets grow with the value, so that
// every percentile, of a microsecond or of a minute, is off by less than 1 %.
#ifndef EMBANK_BENCH_LATENCY_HISTOGRAM_H_
#define EMBANK_BENCH_LATENCY_HISTOGRAM_H_

#include <cstdint>
#include <vector>

namespace embank {

// Log-linear: values below 2^7 ns have a bucket each, every further power of two has 2^7 buckets.
// One writer; threads fill one each and merge.
class LatencyHistogram {
 public:
  static constexpr uint32_t kSubBucketBits = 7;

  LatencyHistogram();

  // Counts one batch.
  void Record(uint64_t nanoseconds);

  // Adds the counts of `other`.
  void Merge(const LatencyHistogram& other);

  // The smallest duration that at least `fraction` (0..1) of the batches do not exceed; at most
  // 2^-7 of it too high, never too low. 0 when nothing was counted.
  uint64_t PercentileNs(double fraction) const;

  // Batches that took at least begin_ns and less than end_ns (the last of all bins: at most).
  struct Bin {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    uint64_t count = 0;
  };
  // The counts in `bins_per_power` (1, 2, 4, ... 128) bins for each power of two, from the first
  // bin that has any to the last.
  std::vector<Bin> Bins(uint32_t bins_per_power) const;

  // Batches counted.
  uint64_t count() const { return count_; }
  // The longest of them, exactly.
  uint64_t max_ns() const { return max_ns_; }

 private:
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t max_ns_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_LATENCY_HISTOGRAM_H_
