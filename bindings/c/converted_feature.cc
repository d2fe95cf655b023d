#include "bindings/c/converted_feature.h"

#include <algorithm>

#include "bindings/c/embank.h"

namespace embank {
namespace {

// No outcome has this number.
constexpr uint8_t kNotSet = 0;

std::unique_ptr<uint64_t[]> Widen(const void* numbers, int32_t type, uint64_t first,
                                  uint64_t count) {
  auto wide = std::make_unique_for_overwrite<uint64_t[]>(count);
  if (type == EMBANK_INDEX_U32) {
    std::copy_n(static_cast<const uint32_t*>(numbers) + first, count, wide.get());
  } else {
    std::copy_n(static_cast<const int32_t*>(numbers) + first, count,
                reinterpret_cast<int64_t*>(wide.get()));
  }
  return wide;
}

}  // namespace

bool IsNarrow(int32_t type) { return type == EMBANK_INDEX_U32 || type == EMBANK_INDEX_I32; }

uint64_t NumberAt(const void* numbers, int32_t type, uint64_t i) {
  if (type == EMBANK_INDEX_U32) return static_cast<const uint32_t*>(numbers)[i];
  if (type != EMBANK_INDEX_I32) return static_cast<const uint64_t*>(numbers)[i];
  return static_cast<uint64_t>(int64_t{static_cast<const int32_t*>(numbers)[i]});
}

KeySpan ConvertedFeature::WidenKeys(const void* keys, int32_t type, uint64_t first,
                                    uint64_t count) {
  keys_ = Widen(keys, type, first, count);
  return {keys_.get(), count};
}

std::span<const uint64_t> ConvertedFeature::WidenOffsets(const void* offsets, int32_t type,
                                                         uint64_t count) {
  offsets_ = Widen(offsets, type, 0, count);
  return {offsets_.get(), count};
}

void ConvertedFeature::RemovePadding(uint64_t padding_key, Feature* feature) {
  const KeySpan keys = feature->keys;
  // Keys that were widened are ours, and stay where they are or move down.
  if (keys_ == nullptr) keys_ = std::make_unique_for_overwrite<uint64_t[]>(keys.size());
  places_ = std::make_unique_for_overwrite<uint32_t[]>(keys.size());
  for (uint64_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == padding_key) continue;
    places_[kept_] = static_cast<uint32_t>(i);
    keys_[kept_++] = keys[i];
  }
  feature->keys = {keys_.get(), kept_};
  if (feature->pooling == Pooling::kNone) {
    feature->padded_rows = keys.size();
    feature->row_numbers = {places_.get(), kept_};
  } else {
    RemovePaddingOfBags(feature);
  }
  if (feature->outcomes.empty()) return;
  outcomes_ = std::make_unique<uint8_t[]>(kept_);
  callers_outcomes_ = feature->outcomes;
  feature->outcomes = {outcomes_.get(), kept_};
}

void ConvertedFeature::RemovePaddingOfBags(Feature* feature) {
  const std::span<const uint64_t> offsets = feature->offsets;
  const uint64_t first = offsets[0];
  if (feature->weights != nullptr) {
    weights_ = std::make_unique_for_overwrite<float[]>(kept_);
    for (uint64_t i = 0; i < kept_; ++i) weights_[i] = feature->weights[first + places_[i]];
    feature->weights = weights_.get();
  }
  // Offsets that were widened are ours, too: each is read before it is written.
  if (offsets_ == nullptr) offsets_ = std::make_unique_for_overwrite<uint64_t[]>(offsets.size());
  uint64_t kept = 0;
  for (uint64_t i = 0; i < offsets.size(); ++i) {
    while (kept < kept_ && places_[kept] < offsets[i] - first) ++kept;
    offsets_[i] = kept;
  }
  feature->offsets = {offsets_.get(), offsets.size()};
}

void ConvertedFeature::GiveOutcomes(bool succeeded) const {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < callers_outcomes_.size(); ++i) {
    if (kept < kept_ && places_[kept] == i) {
      if (outcomes_[kept] != kNotSet) callers_outcomes_[i] = outcomes_[kept];
      ++kept;
    } else if (succeeded) {
      callers_outcomes_[i] = EMBANK_ROW_ABSENT;
    }
  }
}

}  // namespace embank
