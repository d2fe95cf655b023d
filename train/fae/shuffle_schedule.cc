#include "train/fae/shuffle_schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/exact_text.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr std::string_view kNoLoss = "none";

template <typename Number>
bool ReadNumber(std::string_view text, Number* number) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *number);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

void ShuffleSchedule::ApplyLoss(double loss) {
  if (std::isnan(loss) || (last_loss_ && loss >= *last_loss_)) {
    rate_ = std::max(rate_ / 2.0, kRateMin);
    falls_ = 0;
  } else if (last_loss_ && ++falls_ == kFallsToDouble) {
    rate_ = std::min(rate_ * 2.0, kRateMax);
    falls_ = 0;
  }
  if (!std::isnan(loss)) last_loss_ = loss;
}

// The product comes first: it is exact, and so is a quotient without a rest.
uint64_t ShuffleSchedule::PhaseBatches(uint64_t batches_of_class) const {
  const double batches = std::ceil(static_cast<double>(batches_of_class) * rate_ / kRateMax);
  return std::max<uint64_t>(1, static_cast<uint64_t>(batches));
}

std::string ShuffleSchedule::ToText() const {
  return StrCat(ExactText(rate_), " ", falls_, " ",
                last_loss_ ? ExactText(*last_loss_) : std::string(kNoLoss));
}

std::optional<ShuffleSchedule> ShuffleSchedule::FromText(std::string_view text) {
  std::array<std::string_view, 3> words;
  for (std::string_view& word : words) {
    const size_t end = std::min(text.find(' '), text.size());
    word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  ShuffleSchedule schedule;
  if (!text.empty() || !ReadNumber(words[0], &schedule.rate_) ||
      !ReadNumber(words[1], &schedule.falls_)) {
    return std::nullopt;
  }
  if (words[2] != kNoLoss) {
    double loss = 0.0;
    if (!ReadNumber(words[2], &loss) || std::isnan(loss)) return std::nullopt;
    schedule.last_loss_ = loss;
  }
  const bool is_rate = schedule.rate_ >= kRateMin && schedule.rate_ <= kRateMax;
  if (!is_rate || schedule.falls_ >= kFallsToDouble) return std::nullopt;
  return schedule;
}

}  // namespace embank
