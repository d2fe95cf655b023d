#include "train/samples/epochs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// No log has 2^48 lines.
constexpr uint32_t kPositionBits = 48;
constexpr uint64_t kPositionMask = (uint64_t{1} << kPositionBits) - 1;
// Lines or samples, in milliseconds.
constexpr uint64_t kSkippedAtOnce = 1024;

}  // namespace

StatusOr<std::unique_ptr<Epochs>> Epochs::Open(OpenEpoch open, uint32_t epochs) {
  EMBANK_CHECK(epochs >= 1 && epochs <= kEpochsMax);
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ClickSource> first, open(0));
  return std::unique_ptr<Epochs>(new Epochs(std::move(open), epochs, std::move(first)));
}

Epochs::Epochs(OpenEpoch open, uint32_t epochs, std::unique_ptr<ClickSource> first)
    : open_(std::move(open)), epochs_(epochs), source_(std::move(first)) {}

StatusOr<uint32_t> Epochs::Next(uint32_t samples_max, ClickBatch* batch) {
  for (;;) {
    EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, source_->Next(samples_max, batch));
    if (samples > 0 || epoch_ + 1 == epochs_) return samples;
    EMBANK_RETURN_IF_ERROR(Begin(epoch_ + 1));
  }
}

DataPosition Epochs::position() const {
  DataPosition position = source_->position();
  EMBANK_CHECK(position.place <= kPositionMask);
  position.place |= uint64_t{epoch_} << kPositionBits;
  return position;
}

uint64_t Epochs::InEpoch(const DataPosition& position) { return position.place & kPositionMask; }

Status Epochs::SkipTo(DataPosition position) {
  return SkipTo(position, [](double, uint64_t) {});
}

Status Epochs::SkipTo(DataPosition position,
                      FunctionRef<void(double fraction, uint64_t place)> show) {
  EMBANK_CHECK(position.place >= this->position().place);
  const uint64_t epoch = position.place >> kPositionBits;
  if (epoch >= epochs_) {
    return OutOfRangeError(StrCat("--epochs is ", epochs_, ", and the data go on in epoch ",
                                  epoch + 1, ": give --epochs ", epoch + 1, " or more"));
  }
  if (epoch > epoch_) EMBANK_RETURN_IF_ERROR(Begin(static_cast<uint32_t>(epoch)));
  position.place = InEpoch(position);
  // Places between have orders that are not known.
  if (!position.order.empty()) return source_->SkipTo(position);
  // A window is skipped as a whole. A line without an end is known by the whole position.
  const uint64_t lines = position.place - (position.open_line_bytes > 0 ? 1 : 0);
  const uint64_t end = position.window_samples > 0 ? position.window_begin : lines;
  while (source_->position().place < end) {
    const uint64_t next = std::min(end, source_->position().place + kSkippedAtOnce);
    EMBANK_RETURN_IF_ERROR(source_->SkipTo(next));
    show(static_cast<double>(next) / static_cast<double>(end), next);
  }
  return source_->SkipTo(position);
}

double Epochs::FractionRead() const {
  return (epoch_ + source_->FractionRead()) / static_cast<double>(epochs_);
}

Status Epochs::Begin(uint32_t epoch) {
  EMBANK_ASSIGN_OR_RETURN(source_, open_(epoch));
  epoch_ = epoch;
  return OkStatus();
}

}  // namespace embank
