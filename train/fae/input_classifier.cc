#include "train/fae/input_classifier.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {
namespace {

// Samples of a part. A feature's ids and places take 4,096 x 12 bytes = 48 KiB, which the second
// cache holds; and 1,024 samples of 26 features take some 0.2 ms, beside some 10 us until another
// thread begins.
constexpr uint32_t kPartSamplesMin = 1024;
constexpr uint32_t kPartSamplesMax = 4096;

bool IsCold(uint32_t place) { return place == IdPlaces::kNone; }

uint32_t IdsOf(const FeatureIds& feature, uint32_t sample) {
  return feature.offsets.empty() ? 1 : feature.offsets[sample + 1] - feature.offsets[sample];
}

// Looks up the ids of the samples of a part that are hot as yet: of all from `begin` to `end` in
// their place, or of those in `hot`.
void FindPlaces(const FeatureIds& feature, const IdPlaces& hot_ids, uint32_t begin, uint32_t end,
                const std::vector<uint32_t>* hot, std::vector<Key>* ids,
                std::vector<uint32_t>* places) {
  std::span<const Key> wanted;
  if (hot == nullptr) {
    const bool has_bags = !feature.offsets.empty();
    const uint32_t first = has_bags ? feature.offsets[begin] : begin;
    const uint32_t last = has_bags ? feature.offsets[end] : end;
    wanted = std::span(feature.ids).subspan(first, last - first);
  } else {
    ids->clear();
    if (feature.offsets.empty()) {
      for (const uint32_t sample : *hot) ids->push_back(feature.ids[sample]);
    } else {
      for (const uint32_t sample : *hot) {
        const std::span<const Key> bag = feature.OfSample(sample);
        ids->insert(ids->end(), bag.begin(), bag.end());
      }
    }
    wanted = *ids;
  }
  places->resize(wanted.size());
  hot_ids.PlacesOf(wanted, places->data());
}

// Removes the samples that have a cold id of a feature.
void DropCold(const FeatureIds& feature, const std::vector<uint32_t>& places,
              std::vector<uint32_t>* hot) {
  const uint32_t* place = places.data();
  size_t kept = 0;
  for (const uint32_t sample : *hot) {
    const uint32_t count = IdsOf(feature, sample);
    const bool is_cold = std::any_of(place, place + count, IsCold);
    place += count;
    (*hot)[kept] = sample;
    kept += is_cold ? 0 : 1;
  }
  hot->resize(kept);
}

}  // namespace

// Columns without an order have their own, so that the first batch is as good as any.
void InputClassifier::OrderColumns(Part* part) const {
  const size_t columns = is_known_hot_.size();
  if (part->columns.size() != columns) {
    part->columns.resize(columns);
    std::iota(part->columns.begin(), part->columns.end(), 0u);
    part->cold_share.assign(columns, 0.0);
  }
  std::ranges::stable_sort(part->columns, [&](uint32_t a, uint32_t b) {
    return part->cold_share[a] > part->cold_share[b];
  });
}

void InputClassifier::ClassifyPart(const ClickBatch& batch, uint32_t begin, uint32_t end,
                                   Part* part, uint8_t* is_hot) const {
  OrderColumns(part);
  std::vector<uint32_t>& hot = part->hot;
  bool are_all_hot = true;  // as yet: then `hot` is not filled
  for (const uint32_t column : part->columns) {
    if (is_known_hot_[column] != 0) continue;
    if (Seeded(SeededBug::kOneColdIdIsHot) && column == 0) continue;
    const FeatureIds& feature = batch.features[column];
    const size_t before = are_all_hot ? end - begin : hot.size();
    if (before == 0) break;
    FindPlaces(feature, hot_ids_.OfColumn(column), begin, end, are_all_hot ? nullptr : &hot,
               &part->ids, &part->places);
    part->cold_share[column] = 0.0;
    if (std::ranges::none_of(part->places, IsCold)) continue;
    if (are_all_hot) {
      hot.resize(end - begin);
      std::iota(hot.begin(), hot.end(), begin);
      are_all_hot = false;
    }
    DropCold(feature, part->places, &hot);
    part->cold_share[column] =
        static_cast<double>(before - hot.size()) / static_cast<double>(before);
  }
  if (are_all_hot) {
    std::fill(is_hot + begin, is_hot + end, uint8_t{1});
    return;
  }
  for (const uint32_t sample : hot) is_hot[sample] = 1;
}

void InputClassifier::Classify(const ClickBatch& batch, std::span<const uint32_t> hot_columns,
                               Executor* executor, std::vector<uint8_t>* is_hot) {
  EMBANK_CHECK(batch.features.size() == hot_ids_.table_of_column.size());
  is_known_hot_.assign(batch.features.size(), 0);
  for (const uint32_t column : hot_columns) is_known_hot_[column] = 1;
  is_hot->assign(batch.samples, 0);
  const uint32_t threads = executor == nullptr ? 1 : executor->concurrency();
  const uint32_t samples = std::clamp(batch.samples / threads, kPartSamplesMin, kPartSamplesMax);
  const uint32_t parts = (batch.samples + samples - 1) / samples;
  if (parts_.size() < parts) parts_.resize(parts);
  const auto classify = [&](uint32_t part) {
    const uint32_t begin = part * samples;
    ClassifyPart(batch, begin, std::min(begin + samples, batch.samples), &parts_[part],
                 is_hot->data());
  };
  if (executor != nullptr) {
    executor->ParallelFor(parts, classify);
    return;
  }
  for (uint32_t part = 0; part < parts; ++part) classify(part);
}

}  // namespace embank
