// The hot rows of a table in an array: values and states by place, with notes of which differ from
// the rows of the store.
//
//   hot ids    17   4  99        places 0 1 2
//   rows     |  a |  b |  c |    a row: values, padding, state, as device memory has it
//   notes       d    s    -      d: the store's row is out of date; s: this one is
#ifndef EMBANK_TRAIN_HOT_HOT_TABLE_H_
#define EMBANK_TRAIN_HOT_HOT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "store/table/table.h"
#include "train/pipeline/row_steps.h"
#include "train/popularity/id_places.h"

namespace embank {

// Returns the bytes that a hot row of a table takes: values and state, in units of 16.
uint64_t HotRowBytes(uint32_t dim, Optimizer optimizer);

// Sums of gradients, and the places of their ids where these are known; nullptr: they are not.
struct HotSums {
  const SumRun* run = nullptr;
  const uint32_t* places = nullptr;
};

// One thread at a time, but for Copy, which any number of threads may call at once.
class HotTable {
 public:
  // Both outlive it. The rows are the first ones of the table, and all of them are stale.
  // `has_replicas`: Crc32c is asked for.
  HotTable(Table* table, const IdPlaces* places, bool has_replicas);

  Table* table() const { return table_; }
  uint32_t rows() const { return places_->size(); }
  uint64_t row_bytes() const { return row_bytes_; }

  // Copies the values of rows to `rows`, dim floats each, and their places to `places`. DATA_LOSS
  // names an id that is not hot; nothing was copied then.
  Status Copy(KeySpan ids, float* rows, uint32_t* places) const;
  // Makes a step of the table's rule for each distinct id of the runs, with the sum of its
  // gradients in their order, as ApplyGradientsPacked does (docs/arithmetic.md). All ids are hot.
  // Returns how many steps were not made, because their results would not be finite.
  uint64_t Step(std::span<const HotSums> runs);
  // Marks rows that the store lacks as to be written: a lookup in the store would have created
  // them, even without a step. All ids are hot.
  void NoteTouched(KeySpan ids);

  // Notes that the store's rows have changed. Ids that are not hot are left out.
  void NoteStale(KeySpan ids);
  // Rows as they travel: row_bytes of each, and their places.
  struct Rows {
    std::vector<uint32_t> places;
    std::vector<std::byte> bytes;
  };
  // Adds the stale rows of the store that `owns` says yes to. A row that is not in the store is
  // left out. The statuses of Lookup and GetState; DATA_LOSS: a row cannot be read.
  Status ReadStale(FunctionRef<bool(Key id)> owns, Rows* rows);
  // Takes rows that ReadStale has read, here or on another rank.
  void Take(std::span<const uint32_t> places, std::span<const std::byte> bytes);
  // Forgets which rows are stale: all of those were taken, or are not in the store.
  void ClearStale();
  // Writes the changed rows that `owns` says yes to into the store, states included, and forgets
  // which rows have changed. Returns how many it wrote. The statuses of Upsert; the changed rows
  // are still known then.
  StatusOr<uint64_t> WriteBack(FunctionRef<bool(Key id)> owns);

  // A checksum of all rows that were taken and all steps that were made, in their order.
  uint32_t crc32c() const { return crc32c_; }

 private:
  // Notes of a row.
  static constexpr uint8_t kStale = 1;   // the store's row has changed
  static constexpr uint8_t kDirty = 2;   // this row has changed, or the store lacks it
  static constexpr uint8_t kStored = 4;  // the store has the row, or gets it by a write-back

  static constexpr uint32_t kNone = UINT32_MAX;
  // The gradient of an occurrence of an id, and the entry behind it.
  struct Entry {
    const std::byte* gradient;
    uint32_t next;
  };
  struct First {
    uint32_t place;
    uint32_t entry;
  };

  // The image of a row (tiers/row/row_update.h). Nothing reads or writes its header, whose place
  // the end of the row before it has.
  std::byte* Image(uint32_t place) { return memory_.data() + place * row_bytes_; }
  std::byte* Payload(uint32_t place) { return Image(place) + sizeof(RowHeader); }
  const std::byte* Payload(uint32_t place) const {
    return memory_.data() + place * row_bytes_ + sizeof(RowHeader);
  }
  void Fetch(uint32_t place, uint64_t bytes) const;
  void NoteDirty(uint32_t place);
  void ChainGradients(const SumRun& run, std::span<const uint32_t> places, size_t begin);
  const float* SumOf(uint32_t entry, float limit);
  Status ReadRows(std::span<const uint32_t> places, Rows* rows);

  Table* const table_;
  const IdPlaces* const places_;
  const bool has_replicas_;
  const uint64_t row_bytes_;
  std::vector<std::byte> memory_;
  std::vector<uint8_t> notes_;
  std::vector<uint32_t> stale_, dirty_;  // the places of rows with such a note
  uint32_t crc32c_ = 0;
  // Those of a step.
  std::vector<uint32_t> last_;  // of each row: its last entry; kNone between steps
  std::vector<Entry> entries_;
  std::vector<First> firsts_;
  std::vector<float> sum_, run_sum_;
  std::vector<std::byte> former_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HOT_HOT_TABLE_H_
