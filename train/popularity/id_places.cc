#include "train/popularity/id_places.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/check.h"
#include "base/hash.h"
#include "base/seeded_bug.h"

namespace embank {
namespace {

constexpr uint64_t kSlotsMin = 16;
// Ids whose slots are fetched before they are needed: a probe takes some 5 ns of work, and a line
// of memory some 80 ns.
constexpr size_t kAhead = 16;

}  // namespace

// Returns the slot that has the id, or the empty one where it would be.
uint64_t IdPlaces::SlotOf(Key id) const { return SlotFrom(Mix(id) & (slots_.size() - 1), id); }

// `slot` is the first one of the id.
uint64_t IdPlaces::SlotFrom(uint64_t slot, Key id) const {
  const uint64_t mask = slots_.size() - 1;
  while (slots_[slot].place != kNone && slots_[slot].id != id) slot = (slot + 1) & mask;
  return slot;
}

void IdPlaces::GrowSlots() {
  slots_.assign(std::max(kSlotsMin, slots_.size() * 2), {});
  for (uint32_t place = 0; place < size(); ++place)
    slots_[SlotOf(ids_[place])] = {ids_[place], place};
}

uint32_t IdPlaces::Add(Key id) {
  if ((uint64_t{size()} + 1) * 2 > slots_.size()) GrowSlots();
  Slot& slot = slots_[SlotOf(id)];
  if (slot.place == kNone) {
    EMBANK_CHECK(size() < kIdsMax);
    slot = {id, size()};
    if (Seeded(SeededBug::kPlaceUsedTwice) && size() > 0) --slot.place;
    ids_.push_back(id);
  }
  return slot.place;
}

uint32_t IdPlaces::PlaceOf(Key id) const {
  return slots_.empty() ? kNone : slots_[SlotOf(id)].place;
}

void IdPlaces::PlacesOf(std::span<const Key> ids, uint32_t* places) const {
  if (slots_.empty()) {
    std::fill_n(places, ids.size(), kNone);
    return;
  }
  const uint64_t mask = slots_.size() - 1;
  std::array<uint64_t, kAhead> ahead;  // the first slots of the ids from the present one on
  const auto fetch = [&](size_t i) {
    const uint64_t slot = Mix(ids[i]) & mask;
    __builtin_prefetch(&slots_[slot]);
    ahead[i % kAhead] = slot;
  };
  for (size_t i = 0; i < std::min(kAhead, ids.size()); ++i) fetch(i);
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t first = ahead[i % kAhead];
    if (i + kAhead < ids.size()) fetch(i + kAhead);
    places[i] = slots_[SlotFrom(first, ids[i])].place;
  }
}

std::vector<uint32_t> HotIds::TablesOfColumns(std::span<const std::string> names) {
  std::map<std::string_view, uint32_t> tables;
  std::vector<uint32_t> of_columns;
  for (const std::string& name : names) {
    of_columns.push_back(tables.emplace(name, static_cast<uint32_t>(tables.size())).first->second);
  }
  return of_columns;
}

}  // namespace embank
