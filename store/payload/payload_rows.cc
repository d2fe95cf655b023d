#include "store/payload/payload_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/payload/staged_rows.h"
#include "store/placement/page_rows.h"
#include "store/placement/row_mover.h"

namespace embank {
namespace {

// A chunk of rows is moved while the gate is closed. It looks for a moment without batches for 5 ms
// before it makes new ones wait.
constexpr uint32_t kLooksMax = 50;

// The note of a row that is new in its slots, but for the place of its payload.
void ResetNote(SlotNote* note) {
  note->logged = 0;  // dirty
  note->pin = Pins::kNone;
  note->untouched = 0;
}

}  // namespace

PayloadRows::PayloadRows(const StoreContext& store, std::unique_ptr<PayloadMemory> memory)
    : store_(store),
      memory_(std::move(memory)),
      notes_(*store.tier, DramTier::kHeaderSlotBytes),
      gate_(kLooksMax) {}

Location PayloadRows::TakeSlot(const Table& table, Location header) {
  EMBANK_CHECK(header.IsInDram());
  const std::optional<uint64_t> payload = memory_->slots().Take(PayloadBytesOf(table));
  if (!payload.has_value()) return kNoLocation;
  const Location location = LocationIn(Tier::kHbm, header.units);
  SlotNote& note = NoteOf(location);
  note.SetPayloadOffset(*payload);
  ResetNote(&note);
  table.AddRowsIn(Tier::kHbm, 1);
  return location;
}

void PayloadRows::Replace(const Table& former, const Table& table, Location location) {
  EMBANK_CHECK(location.HasDevicePayload() && HaveOneSize(former, table));
  ResetNote(&NoteOf(location));
  former.AddRowsIn(Tier::kHbm, -1);
  table.AddRowsIn(Tier::kHbm, 1);
}

void PayloadRows::Free(const Table& table, Location location) {
  EMBANK_CHECK(location.HasDevicePayload());
  RetireRow(reinterpret_cast<RowHeader*>(store_.tier->Row(location)));
  memory_->slots().Free(PayloadOf(location));
  const Location slot = DramSlotOf(location);
  notes_.MarkClean(notes_.NumberOf(slot));
  store_.tier->Free(kHeaderClass, {&slot, 1});
  table.AddRowsIn(Tier::kHbm, -1);
}

Status PayloadRows::FlushSlots(std::span<const Location> headers, std::atomic<uint64_t>* flushed) {
  EMBANK_CHECK(headers.size() <= kSlotsAtOnce);
  std::array<RowInSlot, kSlotsAtOnce> rows;
  size_t count = 0;
  ForEachOf(*store_.tier, *store_.tables, kHeaderClass, headers, [&](const SeenSlot& seen) {
    const Key key = LoadKey(seen.header);
    rows[count++] = {seen.table->IdOf(key, seen.table->HashOf(key)), seen.location};
  });
  if (Seeded(SeededBug::kFlushPassSkipsPayloads)) return OkStatus();
  return Flush(std::span(rows).first(count), flushed);
}

Status PayloadRows::FlushBeforeChange(std::span<const RowInSlot> rows) {
  if (Seeded(SeededBug::kNoPayloadPreImage)) return OkStatus();
  return Flush(rows, &counters_.pre_images);
}

// A pending flush is still pending under the lock only if no later change was enqueued: then the
// bytes that were read before are those of the barrier.
Status PayloadRows::Flush(std::span<const RowInSlot> rows, std::atomic<uint64_t>* counter) {
  size_t next = 0;
  while (next < rows.size()) {
    // A chunk has payloads of one size.
    const Table& first = *store_.tables->Get(rows[next].id.table);
    StagedRows staged(memory_.get(), PayloadBytesOf(first), LoggedPayloadBytesOf(first));
    const size_t begin = next;
    std::array<uint32_t, kSlotsAtOnce> chosen;
    for (; next < rows.size() && !staged.is_full() && staged.size() < chosen.size(); ++next) {
      const RowInSlot& row = rows[next];
      const Table& table = *store_.tables->Get(row.id.table);
      if (!HaveOneSize(table, first)) break;
      KeyIndex::Shard* const shard = store_.index->shard(KeyIndex::ShardOf(row.id.hash));
      MutexLock lock(&shard->mutex);
      ClassRows& class_rows = table.mover()->rows();
      if (!store_.index->MatchAt(shard, row.id, row.slot).any()) continue;
      if (!class_rows.IsFlushPending(row.slot)) continue;
      chosen[staged.size()] = static_cast<uint32_t>(next - begin);
      staged.Add(PayloadOf(row.slot));
    }
    EMBANK_CHECK(begin < next && staged.size() <= next - begin);
    if (staged.size() == 0) continue;
    staged.Gather(0);
    EMBANK_RETURN_IF_ERROR(staged.Wait());
    for (size_t i = 0; i < staged.size(); ++i) {
      const RowInSlot& row = rows[begin + chosen[i]];
      KeyIndex::Shard* const shard = store_.index->shard(KeyIndex::ShardOf(row.id.hash));
      MutexLock lock(&shard->mutex);
      ClassRows& class_rows = first.mover()->rows();
      if (!store_.index->MatchAt(shard, row.id, row.slot).any()) continue;
      if (!class_rows.IsFlushPending(row.slot)) continue;
      EMBANK_RETURN_IF_ERROR(class_rows.FlushPending(
          row.slot, std::span<const std::byte>(staged.Row(i), LoggedPayloadBytesOf(first))));
      counter->fetch_add(1, std::memory_order_relaxed);
    }
  }
  return OkStatus();
}

void PayloadGuard::Enter(PayloadRows* payloads) {
  const uint64_t begin_ns = payloads->store().clock->NowNs();
  payloads->gate()->Enter(&inside_);
  const uint64_t waited_ns = payloads->store().clock->NowNs() - begin_ns;
  payloads->counters().wait_ns.fetch_add(waited_ns, std::memory_order_relaxed);
  std::atomic<uint64_t>& longest = payloads->counters().longest_wait_ns;
  uint64_t seen = longest.load(std::memory_order_relaxed);
  while (waited_ns > seen && !longest.compare_exchange_weak(seen, waited_ns)) {
  }
}

}  // namespace embank
