#include "store/batch_keys.h"

#include <algorithm>

namespace embank {

Status BatchKeys::Allocate(const Batch& batch) {
  if (batch.table().forgetter() == nullptr) return OkStatus();
  return places_.Allocate(kPlacesPerKey * batch.keys().size());
}

void BatchKeys::Collect(const Batch& batch) {
  if (batch.table().forgetter() == nullptr) return;
  batch_ = &batch;
  const KeySpan keys = batch.keys();
  const std::span<uint32_t> places = places_.values();
  std::fill(places.begin(), places.end(), kNone);
  for (size_t i = 0; i < keys.size(); ++i) {
    size_t place = PlaceOf(keys[i]);
    while (places[place] != kNone && keys[places[place]] != keys[i]) {
      if (++place == places.size()) place = 0;
    }
    places[place] = static_cast<uint32_t>(i);
  }
}

bool BatchKeys::Has(TableId table, Key key) const {
  if (batch_ == nullptr || table != batch_->table().id()) return false;
  const KeySpan keys = batch_->keys();
  const std::span<const uint32_t> places = places_.values();
  for (size_t place = PlaceOf(key); places[place] != kNone;) {
    if (keys[places[place]] == key) return true;
    if (++place == places.size()) place = 0;
  }
  return false;
}

}  // namespace embank
