#include "bench/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace embank {
namespace {

constexpr uint32_t kBits = LatencyHistogram::kSubBucketBits;
constexpr uint64_t kSubBuckets = uint64_t{1} << kBits;
// One linear part for values below 2^7, then 2^7 buckets for each of the powers 7..63.
constexpr uint64_t kBucketCount = (64 - kBits + 1) * kSubBuckets;

uint64_t BucketOf(uint64_t value) {
  if (value < kSubBuckets) return value;
  const uint32_t power = 63 - static_cast<uint32_t>(std::countl_zero(value));
  const uint32_t shift = power - kBits;
  return (shift + 1) * kSubBuckets + ((value >> shift) - kSubBuckets);
}

uint64_t SmallestOf(uint64_t bucket) {
  if (bucket < kSubBuckets) return bucket;
  return (kSubBuckets + bucket % kSubBuckets) << (bucket / kSubBuckets - 1);
}

uint64_t LargestOf(uint64_t bucket) {
  if (bucket < kSubBuckets) return bucket;
  return SmallestOf(bucket) + ((uint64_t{1} << (bucket / kSubBuckets - 1)) - 1);
}

}  // namespace

LatencyHistogram::LatencyHistogram() : counts_(kBucketCount) {}

void LatencyHistogram::Record(uint64_t nanoseconds) {
  ++counts_[BucketOf(nanoseconds)];
  ++count_;
  max_ns_ = std::max(max_ns_, nanoseconds);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  for (uint64_t i = 0; i < kBucketCount; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

uint64_t LatencyHistogram::PercentileNs(double fraction) const {
  if (count_ == 0) return 0;
  const double rank = std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(count_));
  const uint64_t wanted = std::clamp<uint64_t>(static_cast<uint64_t>(rank), 1, count_);
  uint64_t seen = 0;
  uint64_t bucket = 0;
  while ((seen += counts_[bucket]) < wanted) ++bucket;
  return std::min(LargestOf(bucket), max_ns_);
}

std::vector<LatencyHistogram::Bin> LatencyHistogram::Bins(uint32_t bins_per_power) const {
  const uint64_t buckets_per_bin = kSubBuckets / bins_per_power;
  std::vector<Bin> bins;
  size_t last = 0;  // that is not empty, and those before it
  for (uint64_t first = 0; first < kBucketCount; first += buckets_per_bin) {
    const uint64_t end = first + buckets_per_bin;
    uint64_t count = 0;
    for (uint64_t bucket = first; bucket < end; ++bucket) count += counts_[bucket];
    if (count == 0 && bins.empty()) continue;
    const uint64_t largest = LargestOf(end - 1);
    bins.push_back({SmallestOf(first), std::max(largest, largest + 1), count});
    if (count > 0) last = bins.size();
  }
  bins.resize(last);
  return bins;
}

}  // namespace embank
