#include "train/samples/shuffled_samples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// Uniform below `bound`, but for a share of bound / 2^32, by the upper half of a product.
uint32_t Below(uint64_t bits, uint32_t bound) {
  return static_cast<uint32_t>((bits >> 32) * bound >> 32);
}

}  // namespace

ShuffledSamples::ShuffledSamples(std::unique_ptr<ClickSource> source, uint32_t window,
                                 uint64_t seed)
    : source_(std::move(source)), window_samples_(window), random_(seed) {
  EMBANK_CHECK(window > 0);
}

StatusOr<bool> ShuffledSamples::HasSample() {
  if (next_ < order_.size()) return true;
  EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, source_->Next(window_samples_, &window_));
  order_.resize(samples);
  next_ = 0;
  std::iota(order_.begin(), order_.end(), 0u);
  // Fisher and Yates, with the number of each sample in the source.
  for (uint32_t i = samples; i > 1; --i) {
    std::swap(order_[i - 1], order_[Below(random_.Bits(position_ + i), i)]);
  }
  return samples > 0;
}

StatusOr<uint32_t> ShuffledSamples::Next(uint32_t samples_max, ClickBatch* batch) {
  EMBANK_CHECK(samples_max > 0);
  batch->Clear(columns().ids.size());
  while (batch->samples < samples_max) {
    EMBANK_ASSIGN_OR_RETURN(const bool has_sample, HasSample());
    if (!has_sample) break;
    AppendSample(window_, order_[next_++], batch);
    ++position_;
  }
  return batch->samples;
}

Status ShuffledSamples::SkipTo(uint64_t position) {
  EMBANK_CHECK(position >= position_);
  while (position_ < position) {
    EMBANK_ASSIGN_OR_RETURN(const bool has_sample, HasSample());
    if (!has_sample) {
      return OutOfRangeError(StrCat("the data have ", position_, " samples, and not ", position));
    }
    const uint64_t left = order_.size() - next_;
    const auto skipped = static_cast<uint32_t>(std::min(left, position - position_));
    next_ += skipped;
    position_ += skipped;
  }
  return OkStatus();
}

double ShuffledSamples::FractionRead() const {
  const double read = source_->FractionRead();
  if (order_.empty() || position_ == 0) return position_ == 0 ? 0.0 : read;
  // The source is ahead by what is left of the window.
  const auto given = static_cast<double>(position_);
  return read * given / (given + static_cast<double>(order_.size() - next_));
}

}  // namespace embank
