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

uint64_t LargestOf(uint64_t bucket) {
  if (bucket < kSubBuckets) return bucket;
  const uint64_t shift = bucket / kSubBuckets - 1;
  const uint64_t smallest = (kSubBuckets + bucket % kSubBuckets) << shift;
  return smallest + ((uint64_t{1} << shift) - 1);
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

}  // namespace embank
