#include "store/placement/batch_keys.h"

#include <algorithm>

namespace embank {

Status BatchKeys::Allocate(const Table& table, KeySpan keys) {
  if (table.forgetter() == nullptr) return OkStatus();
  table_ = &table;
  keys_ = keys;
  return places_.Allocate(kPlacesPerKey * keys.size());
}

void BatchKeys::Collect() {
  if (table_ == nullptr) return;
  const std::span<uint32_t> places = places_.values();
  std::fill(places.begin(), places.end(), kNone);
  for (size_t i = 0; i < keys_.size(); ++i) {
    size_t place = PlaceOf(keys_[i]);
    while (places[place] != kNone && keys_[places[place]] != keys_[i]) {
      if (++place == places.size()) place = 0;
    }
    places[place] = static_cast<uint32_t>(i);
  }
}

bool BatchKeys::Has(TableId table, Key key) const {
  if (table_ == nullptr || table != table_->id()) return false;
  const std::span<const uint32_t> places = places_.values();
  for (size_t place = PlaceOf(key); places[place] != kNone;) {
    if (keys_[places[place]] == key) return true;
    if (++place == places.size()) place = 0;
  }
  return false;
}

}  // namespace embank
