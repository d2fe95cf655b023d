#include "store/catalog/row_classes.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/placement/memory_plan.h"
#include "store/placement/page_mover.h"

namespace embank {

uint64_t RowClasses::TableBytesMax(const TableOptions& options, uint64_t segment_bytes) {
  const SegmentGeometry geometry =
      SegmentGeometry::Of(RecordBytesOf(RowClassOf(options).slot_bytes), segment_bytes);
  return kTableFixedBytes + RowMover::kFixedBytes + LogMemory::ClassBytesMax(geometry);
}

StatusOr<const RowClasses::Entry*> RowClasses::FindOrAdd(const RowClass& row_class) {
  const bool has_log = !store_.logs->empty();
  // With a log it is the mover that forgets.
  const bool forgets = row_class.on_full == OnFull::kForget && !has_log;
  const bool has_notes = has_log || forgets;
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& one) { return one.row_class == row_class; });
  if (entry == entries_.end()) {
    // The push_back behind the tier's new class must not fail.
    if (entries_.size() == entries_.capacity()) entries_.reserve(2 * entries_.size() + 8);
    const SlotClass slot_class = store_.tier->AddClass(row_class.slot_bytes, has_notes);
    EMBANK_CHECK(slot_class == entries_.size());
    entries_.push_back({row_class, slot_class, nullptr, nullptr});
    entry = entries_.end() - 1;
  }
  if (has_notes) EMBANK_RETURN_IF_ERROR(CheckNotesReach(row_class));
  if (entry->mover == nullptr) EMBANK_RETURN_IF_ERROR(MakeMover(&*entry, has_notes));
  if (forgets && entry->forgetter == nullptr) {
    entry->forgetter = std::make_unique<RowForgetter>(&entry->mover->rows());
  }
  return &*entry;
}

std::vector<RowClass> RowClasses::List() const {
  std::vector<RowClass> row_classes;
  row_classes.reserve(entries_.size());
  for (const Entry& entry : entries_) row_classes.push_back(entry.row_class);
  return row_classes;
}

Status RowClasses::CheckNotesReach(const RowClass& row_class) const {
  const uint64_t bytes_max = SlotNotes::AddressBytesMax(row_class.slot_bytes);
  if (RowAddressBytes(*store_.options) <= bytes_max) return OkStatus();
  return ResourceExhaustedError(
      StrCat("rows of ", row_class.slot_bytes, " bytes can have at most ", bytes_max,
             " bytes of dram_bytes in a store with a path, and in tables that forget"));
}

Status RowClasses::MakeMover(Entry* entry, bool has_notes) {
  const uint32_t slot_bytes = entry->row_class.slot_bytes;
  const bool forgets = entry->row_class.on_full == OnFull::kForget;
  if (!store_.logs->AddRowClass(entry->slot_class, RecordBytesOf(slot_bytes), forgets).ok()) {
    return NoThrowStatus(StatusCode::kResourceExhausted, [&] {
      return StrCat("dram_bytes: ", store_.options->dram_bytes, ", of which ",
                    store_.budget->used_bytes(), " are used, leaves no memory for saving rows of ",
                    slot_bytes, " bytes; embank_estimate says how much such tables need");
    });
  }
  auto mover = std::make_unique<RowMover>(store_, entry->slot_class, entry->row_class, has_notes);
  if (has_notes) EMBANK_RETURN_IF_ERROR(store_.budget->Charge(RowMover::kFixedBytes));
  if (store_.pages != nullptr) store_.pages->AddClass(mover.get());
  entry->mover = std::move(mover);
  return OkStatus();
}

}  // namespace embank
