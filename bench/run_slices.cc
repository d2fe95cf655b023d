#include "bench/run_slices.h"

#include <limits>

namespace embank {
namespace {

double PerSecond(uint64_t count, uint64_t nanoseconds) {
  if (nanoseconds == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(count) * 1e9 / static_cast<double>(nanoseconds);
}

void AddTo(const RunSlice& part, RunSlice* sum) {
  sum->positions += part.positions;
  sum->lookup_ns += part.lookup_ns;
  sum->gradients_ns += part.gradients_ns;
  sum->accesses += part.accesses;
  sum->hits += part.hits;
}

}  // namespace

double RunSlice::LookupsPerSecond() const { return PerSecond(positions, lookup_ns); }
double RunSlice::GradientsPerSecond() const { return PerSecond(positions, gradients_ns); }
double RunSlice::HitRatio() const {
  if (accesses == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(hits) / static_cast<double>(accesses);
}

void RunSlices::Add(const RunSlice& batch) {
  const bool begins = slices_.empty() || batches_in_last_ == batches_per_slice_;
  if (begins && slices_.size() == kSlicesMax) {
    for (size_t i = 0; i < kSlicesMax / 2; ++i) {
      RunSlice joined = slices_[2 * i];
      AddTo(slices_[2 * i + 1], &joined);
      slices_[i] = joined;
    }
    slices_.resize(kSlicesMax / 2);
    batches_per_slice_ *= 2;
  }
  if (begins) {
    slices_.emplace_back();
    batches_in_last_ = 0;
  }
  AddTo(batch, &slices_.back());
  ++batches_in_last_;
}

}  // namespace embank
