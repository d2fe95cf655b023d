// The ids of hot rows of a table, and the place of each in an array of their rows.
#ifndef EMBANK_TRAIN_POPULARITY_ID_PLACES_H_
#define EMBANK_TRAIN_POPULARITY_ID_PLACES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace embank {

// A bijection between ids and the places 0, 1, 2, ... in the order in which ids were added: the
// remap of FAE (Adnan et al. 2021, section 4), which replicates hot rows in bags. One thread adds;
// any number of them may look up when none adds.
class IdPlaces {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kIdsMax = 1u << 31;

  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }
  // The ids, by place.
  std::span<const Key> ids() const { return ids_; }

  // Returns the place of an id, which is new if it is not there yet. At most kIdsMax ids.
  uint32_t Add(Key id);
  // Returns the place of an id; kNone: it is not hot.
  uint32_t PlaceOf(Key id) const;
  // Writes the place of each id, or kNone. The cache lines of later ids are fetched meanwhile.
  void PlacesOf(std::span<const Key> ids, uint32_t* places) const;

 private:
  struct Slot {
    Key id = 0;
    uint32_t place = kNone;
  };

  uint64_t SlotOf(Key id) const;
  uint64_t SlotFrom(uint64_t slot, Key id) const;
  void GrowSlots();

  std::vector<Key> ids_;
  std::vector<Slot> slots_;  // a power of two; at most half of them have an id
};

// The hot ids of all tables of a model. Features that share a table have its places.
struct HotIds {
  std::vector<IdPlaces> tables;
  std::vector<uint32_t> table_of_column;  // of each id feature

  const IdPlaces& OfColumn(uint32_t column) const { return tables[table_of_column[column]]; }
  // The table of each id feature, by the names of tables (ClickColumns::tables, or else ::ids):
  // tables are numbered in the order in which they first occur.
  static std::vector<uint32_t> TablesOfColumns(std::span<const std::string> names);
};

}  // namespace embank

#endif  // EMBANK_TRAIN_POPULARITY_ID_PLACES_H_
