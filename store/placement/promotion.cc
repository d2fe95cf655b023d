#include "store/placement/promotion.h"

#include <algorithm>

#include "base/check.h"
#include "store/table/table.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_write.h"

namespace embank {

Match Promotion::Promote(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                         std::span<const std::byte> record, uint32_t touches) {
  Location slot;
  if (eviction_.TakeSlots(shard, {&slot, 1}) == 0) {
    log_rows_.Touch(id.hash, record, touches);
    return {};
  }
  return PromoteTo(slot, shard, id, match, record, touches);
}

Match Promotion::PromoteIfHotter(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                                 std::span<const std::byte> record, uint32_t touches) {
  if (match.location().tier() != Tier::kPmem) return Promote(shard, id, match, record, touches);
  Location slot;
  if (eviction_.TakeFreeSlots({&slot, 1}) == 1) {
    return PromoteTo(slot, shard, id, match, record, touches);
  }
  if (HasMoreHeatThanVictim(shard, id.hash, record, touches)) {
    return Promote(shard, id, match, record, touches);
  }
  log_rows_.Touch(id.hash, record, touches);
  return {};
}

bool Promotion::HasMoreHeatThanVictim(KeyIndex::Shard* shard, KeyHash hash,
                                      std::span<const std::byte> record, uint32_t touches) {
  SlotOrders::Order& order = rows_.orders().Of(shard);
  const uint32_t victim = order.Peek();
  // Another shard gives a slot, if any does.
  if (victim == kNoVictim) return true;
  const RowHeader* const header = rows_.HeaderAt(rows_.notes().LocationOf(victim));
  const uint32_t victims = HeatOf(LoadMark(header).usage, store_.heat_clock->now());
  return log_rows_.HeatOfRecord(hash, record) + touches > victims;
}

bool Promotion::PromoteAhead(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                             std::span<const std::byte> record, bool may_evict) {
  Location slot;
  const std::span<Location> one(&slot, 1);
  const size_t taken = may_evict ? eviction_.TakeSlots(shard, one) : eviction_.TakeFreeSlots(one);
  if (taken == 0) return false;
  PromoteTo(slot, shard, id, match, record, 0);
  SlotNote& note = rows_.NoteAt(slot);
  note.pin = store_.tables->Get(id.table)->pins().Add();
  note.untouched = 1;
  return true;
}

Match Promotion::PromoteTo(Location slot, KeyIndex::Shard* shard, const RowId& id,
                           const Match& match, std::span<const std::byte> record,
                           uint32_t touches) {
  EMBANK_CHECK(record.size() == sizeof(RecordHeader) + rows_.slot_bytes() - sizeof(RowHeader));
  EMBANK_CHECK(slot.IsInDram() && touches <= kHeatMax);
  RowHeader* const header = rows_.HeaderAt(slot);
  const RecordHeader logged = LoadRecordHeader(record);
  const uint64_t now = store_.heat_clock->epochs();
  const uint32_t left_with = store_.heat_sketch->Take(id.hash, now);
  const uint32_t heat = std::min(std::max(logged.heat, left_with), kHeatMax - touches) + touches;
  // Readers of the slot's former row may still look at it.
  std::atomic_ref(header->key).store(id.key, std::memory_order_relaxed);
  std::atomic_ref(header->usage)
      .store(PackUsage(heat == logged.heat ? 0 : kGainedFlag, heat, static_cast<HeatEpoch>(now)),
             std::memory_order_relaxed);
  const uint32_t identity = BeginRowWrite(header);
  CopyToRow(record.data() + sizeof(RecordHeader),
            static_cast<uint32_t>(record.size() - sizeof(RecordHeader)),
            reinterpret_cast<std::byte*>(header + 1));
  EndRowWrite(header, identity, id.table);
  const Location logged_at = match.location();
  EMBANK_CHECK(logged_at.IsInLog());
  const Match promoted = store_.index->Move(shard, id.hash, match, slot);
  SlotNote clean = {};
  clean.SetLogged(logged_at);
  rows_.OnInsert(shard, slot, &clean);
  rows_.CountInLog(*store_.tables->Get(id.table), logged_at.tier(), -1);
  return promoted;
}

}  // namespace embank
