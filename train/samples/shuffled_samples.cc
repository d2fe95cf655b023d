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

Status ShuffledSamples::ReadWindow(uint32_t samples_max) {
  EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, source_->Next(samples_max, &window_));
  window_begin_ = window_end();
  order_.resize(samples);
  next_ = 0;
  std::iota(order_.begin(), order_.end(), 0u);
  // Fisher and Yates, with the number of each sample in the source.
  for (uint32_t i = samples; i > 1; --i) {
    std::swap(order_[i - 1], order_[Below(random_.Bits(window_begin_ + i), i)]);
  }
  return OkStatus();
}

StatusOr<bool> ShuffledSamples::HasSample() {
  if (next_ == order_.size()) EMBANK_RETURN_IF_ERROR(ReadWindow(window_samples_));
  return !order_.empty();
}

StatusOr<uint32_t> ShuffledSamples::Next(uint32_t samples_max, ClickBatch* batch) {
  EMBANK_CHECK(samples_max > 0);
  batch->Clear(columns().ids.size());
  while (batch->samples < samples_max) {
    EMBANK_ASSIGN_OR_RETURN(const bool has_sample, HasSample());
    if (!has_sample) break;
    AppendSample(window_, order_[next_++], batch);
  }
  return batch->samples;
}

DataPosition ShuffledSamples::position() const {
  DataPosition position = window_begin_ + next_;
  if (next_ == order_.size()) return position;
  position.window_begin = window_begin_;
  position.window_samples = static_cast<uint32_t>(order_.size());
  return position;
}

Status ShuffledSamples::ReadWholeWindow(uint32_t samples, uint64_t place) {
  EMBANK_RETURN_IF_ERROR(ReadWindow(samples));
  if (order_.size() == samples) return OkStatus();
  return OutOfRangeError(StrCat("the data have ", window_end(), " samples, and not ", place));
}

Status ShuffledSamples::SkipTo(DataPosition position) {
  EMBANK_CHECK(position.place >= window_begin_ + next_);
  const bool is_inside = position.window_samples > 0;
  const uint64_t begin = is_inside ? position.window_begin : position.place;
  if (!is_inside || begin != window_begin_ || position.window_samples != order_.size()) {
    while (window_end() < begin) {
      const uint64_t samples = std::min<uint64_t>(window_samples_, begin - window_end());
      EMBANK_RETURN_IF_ERROR(ReadWholeWindow(static_cast<uint32_t>(samples), begin));
    }
    if (is_inside) {
      EMBANK_RETURN_IF_ERROR(
          ReadWholeWindow(position.window_samples, begin + position.window_samples));
    }
  }
  EMBANK_CHECK(position.place >= window_begin_ && position.place <= window_end());
  next_ = static_cast<uint32_t>(position.place - window_begin_);
  return OkStatus();
}

double ShuffledSamples::FractionRead() const {
  const double read = source_->FractionRead();
  const auto given = static_cast<double>(window_begin_ + next_);
  if (order_.empty() || given == 0.0) return given == 0.0 ? 0.0 : read;
  // The source is ahead by what is left of the window.
  return read * given / (given + static_cast<double>(order_.size() - next_));
}

}  // namespace embank
