#include "train/fae/hot_cold_samples.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// The words of an order, each with a number after it; the schedule is the rest of the line.
constexpr std::string_view kBatch = "batch ";
constexpr std::string_view kHotOnly = " hot-only ";
constexpr std::string_view kCold = " cold ";
constexpr std::string_view kHot = " hot ";
constexpr std::string_view kPhase = " phase ";
constexpr std::string_view kGivenInPhase = " given ";
constexpr std::string_view kAwaitsLoss = " awaits ";
constexpr std::string_view kSchedule = " schedule ";
constexpr size_t kWordsCharacters = kBatch.size() + kHotOnly.size() + kCold.size() + kHot.size() +
                                    kPhase.size() + kGivenInPhase.size() + kAwaitsLoss.size() +
                                    kSchedule.size();
// A number of 64 bits has up to 20 digits, and an exact one up to 24 characters.
static_assert(kWordsCharacters + 10u + size_t{3} * 1 + size_t{3} * 20 + (24u + 1 + 1 + 1 + 24) <=
              OrderText::kCharactersMax);

template <typename Number>
bool TakeNumber(std::string_view words, std::string_view* text, Number* number) {
  if (!text->starts_with(words)) return false;
  text->remove_prefix(words.size());
  const char* const begin = text->data();
  const std::from_chars_result result = std::from_chars(begin, begin + text->size(), *number);
  if (result.ec != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(result.ptr - begin));
  return true;
}

bool TakeBool(std::string_view words, std::string_view* text, bool* value) {
  uint32_t number = 0;
  if (!TakeNumber(words, text, &number) || number > 1) return false;
  *value = number == 1;
  return true;
}

}  // namespace

struct HotColdSamples::Order {
  uint32_t batch_samples = 0;
  bool hot_only = false;
  State state;
};

HotColdSamples::HotColdSamples(std::shared_ptr<const FaeFile> file, uint32_t batch_samples,
                               const ShuffleSchedule& schedule, const HotColdOptions& options)
    : file_(std::move(file)), batch_samples_(batch_samples), options_(options) {
  EMBANK_CHECK(batch_samples > 0);
  const uint64_t cold = file_->Batches(/*is_hot=*/false, batch_samples);
  batches_ = {options_.hot_only ? 0 : cold, file_->Batches(/*is_hot=*/true, batch_samples)};
  state_.is_hot = batches_[0] == 0;
  if (Seeded(SeededBug::kStartsHot)) state_.is_hot = batches_[1] > 0;
  state_.schedule = schedule;
}

// A batch of the phase changes neither its length nor whether the other class is at its end.
uint64_t HotColdSamples::PhaseBatchesLeft(const State& state) const {
  const uint64_t batches = batches_[state.is_hot];
  const uint64_t left = batches - state.given[state.is_hot];
  if (state.given[!state.is_hot] == batches_[!state.is_hot]) return left;
  const uint64_t phase = state.schedule.PhaseBatches(batches);
  return std::min(left, phase - std::min(phase, state.given_in_phase));
}

// Appends samples of the class of the phase by their places.
Status HotColdSamples::Append(uint64_t begin, uint64_t end, ClickBatch* batch) {
  const bool is_hot = state_.is_hot;
  Block& present = blocks_[is_hot];
  while (begin < end) {
    const size_t number = file_->BlockOf(is_hot, begin);
    if (number != present.number) {
      present.number = SIZE_MAX;
      EMBANK_RETURN_IF_ERROR(file_->ReadBlock(is_hot, number, &present.samples));
      present.number = number;
    }
    if (batch->samples > 0 && !HaveOneForm(*batch, present.samples)) {
      return InvalidArgumentError("not all samples of a batch have labels, bags and weights");
    }
    const uint64_t block_begin = file_->BlockBegin(is_hot, number);
    const uint64_t part_end = std::min(end, file_->BlockBegin(is_hot, number + 1));
    AppendSamples(present.samples, static_cast<uint32_t>(begin - block_begin),
                  static_cast<uint32_t>(part_end - block_begin), batch);
    begin = part_end;
  }
  return OkStatus();
}

StatusOr<uint32_t> HotColdSamples::Next(uint32_t samples_max, ClickBatch* batch) {
  EMBANK_CHECK(samples_max == batch_samples_);
  batch->Clear(columns().ids.size());
  const uint64_t left = PhaseBatchesLeft(state_);
  if (left == 0) return 0u;
  const bool is_hot = state_.is_hot;
  const uint64_t begin = state_.given[is_hot] * batch_samples_;
  const uint64_t end = std::min(begin + batch_samples_, file_->samples(is_hot));
  EMBANK_RETURN_IF_ERROR(Append(begin, end, batch));
  batch->is_hot = is_hot;
  batch->ends_phase = left == 1;
  ++state_.given[is_hot];
  ++state_.given_in_phase;
  state_.awaits_loss = batch->ends_phase;
  if (batch->ends_phase) {
    state_.is_hot = !is_hot;
    state_.given_in_phase = 0;
  }
  return batch->samples;
}

void HotColdSamples::ApplyLoss(double loss) {
  EMBANK_CHECK(state_.awaits_loss);
  state_.awaits_loss = false;
  const double rate = state_.schedule.rate();
  state_.schedule.ApplyLoss(loss);
  const bool falls = state_.schedule.rate() < rate;
  if (Seeded(SeededBug::kBatchIssuedTwice) && falls) --state_.given[!state_.is_hot];
}

uint64_t HotColdSamples::SamplesGiven(const State& state) const {
  uint64_t samples = 0;
  for (const bool is_hot : {false, true}) {
    samples += std::min(state.given[is_hot] * batch_samples_, file_->samples(is_hot));
  }
  return samples;
}

DataPosition HotColdSamples::position() const {
  DataPosition position = SamplesGiven(state_);
  const std::string order =
      StrCat(kBatch, batch_samples_, kHotOnly, int{options_.hot_only}, kCold, state_.given[0], kHot,
             state_.given[1], kPhase, int{state_.is_hot}, kGivenInPhase, state_.given_in_phase,
             kAwaitsLoss, int{state_.awaits_loss}, kSchedule, state_.schedule.ToText());
  position.order = std::string_view(order);
  return position;
}

bool HotColdSamples::ReadOrder(std::string_view text, Order* order) {
  State& state = order->state;
  const bool is_order =
      TakeNumber(kBatch, &text, &order->batch_samples) &&
      TakeBool(kHotOnly, &text, &order->hot_only) && TakeNumber(kCold, &text, &state.given[0]) &&
      TakeNumber(kHot, &text, &state.given[1]) && TakeBool(kPhase, &text, &state.is_hot) &&
      TakeNumber(kGivenInPhase, &text, &state.given_in_phase) &&
      TakeBool(kAwaitsLoss, &text, &state.awaits_loss);
  if (!is_order || !text.starts_with(kSchedule)) return false;
  const auto schedule = ShuffleSchedule::FromText(text.substr(kSchedule.size()));
  if (schedule) state.schedule = *schedule;
  return schedule.has_value();
}

Status HotColdSamples::SkipTo(DataPosition position) {
  if (position.order.empty()) {
    if (position.place == 0) return OkStatus();
    return InvalidArgumentError(
        "the checkpoint has a place in a log, and these are hot and cold batches: give the log");
  }
  Order order;
  Status is_none = InvalidArgumentError(StrCat("the order of the checkpoint, \"",
                                               std::string_view(position.order),
                                               "\", is none of these hot and cold batches"));
  if (!ReadOrder(position.order, &order)) return is_none;
  EMBANK_RETURN_IF_ERROR(CheckSetting(order));
  const State& state = order.state;
  for (const bool is_hot : {false, true}) {
    if (state.given[is_hot] <= batches_[is_hot]) continue;
    return OutOfRangeError(StrCat("the file has ", batches_[is_hot], is_hot ? " hot" : " cold",
                                  " batches, and the checkpoint is after ", state.given[is_hot]));
  }
  // Batches are left in a phase, unless all of them are given.
  const bool goes_on = PhaseBatchesLeft(state) > 0 || state.given == batches_;
  const bool is_state = state.given_in_phase <= state.given[state.is_hot] && goes_on &&
                        SamplesGiven(state) == position.place;
  if (!is_state) return is_none;
  state_ = state;
  return OkStatus();
}

Status HotColdSamples::CheckSetting(const Order& order) const {
  if (order.batch_samples != batch_samples_) {
    return InvalidArgumentError(StrCat("--batch was ", order.batch_samples,
                                       " at the checkpoint, and is ", batch_samples_,
                                       ": hot and cold batches go on in their size alone"));
  }
  if (order.hot_only == options_.hot_only) return OkStatus();
  return InvalidArgumentError(order.hot_only
                                  ? "the checkpoint is in hot batches alone, and not in all"
                                  : "the checkpoint is in all batches, and not in hot ones alone");
}

double HotColdSamples::FractionRead() const {
  const uint64_t cold = options_.hot_only ? 0 : file_->samples(/*is_hot=*/false);
  const uint64_t samples = file_->samples(/*is_hot=*/true) + cold;
  if (samples == 0) return 1.0;
  return static_cast<double>(SamplesGiven(state_)) / static_cast<double>(samples);
}

}  // namespace embank
