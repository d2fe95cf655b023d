#include "store/payload/payload_mover.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/placement/heat_clock.h"
#include "store/placement/row_forgetter.h"
#include "store/placement/row_mover.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

// So long a chunk keeps the gate closed before it leaves rows to the next one, and so many rows go
// before it looks at the clock again.
constexpr uint64_t kClosedNs = 500'000;
constexpr size_t kRowsPerLook = 32;

// No batch is inside the payload gate, and no barrier of a checkpoint comes, while one lives that
// has closed the gate.
class ClosedGate {
 public:
  // `waiting`: called before it waits for batches inside.
  ClosedGate(
      PayloadRows* payloads, bool waits, FunctionRef<void()> waiting = [] {})
      : gate_(payloads->gate()), clock_(*payloads->store().clock) {
    if (waits) gate_->Close([] {}, waiting);
    is_closed_ = waits || gate_->TryClose();
    if (!is_closed_) return;
    write_guard_.emplace(payloads->store().gate);
    begin_ns_ = clock_.NowNs();
  }
  ~ClosedGate() {
    if (!is_closed_) return;
    write_guard_.reset();
    gate_->Open();
  }
  bool is_closed() const { return is_closed_; }
  bool IsLong() const { return clock_.NowNs() - begin_ns_ > kClosedNs; }
  ClosedGate(const ClosedGate&) = delete;
  ClosedGate& operator=(const ClosedGate&) = delete;

 private:
  EntryGate* const gate_;
  const Clock& clock_;
  bool is_closed_ = false;
  uint64_t begin_ns_ = 0;
  std::optional<BatchGate::WriteGuard> write_guard_;
};

// Writes the header of a row into a slot that readers of a former row may still look at.
void WriteHeader(RowHeader* to, Key key, uint32_t usage, TableId table) {
  std::atomic_ref(to->key).store(key, std::memory_order_relaxed);
  std::atomic_ref(to->usage).store(usage, std::memory_order_relaxed);
  EndRowWrite(to, BeginRowWrite(to), table);
}

// Exchanges the payload of a row in DRAM with bytes of the caller.
void ExchangePayload(RowHeader* header, uint32_t payload_bytes, std::byte* bytes) {
  auto* const row = reinterpret_cast<std::byte*>(header + 1);
  for (uint32_t at = 0; at < payload_bytes; at += sizeof(uint64_t)) {
    const uint64_t word = LoadRowWord(row + at);
    StoreRowWord(row + at, LoadRowWord(bytes + at));
    StoreRowWord(bytes + at, word);
  }
}

bool IsSmaller(const TableDirectory& tables, const PlannedRow& a, const PlannedRow& b) {
  const Table& first = *tables.Get(a.table);
  const Table& second = *tables.Get(b.table);
  return std::make_pair(first.slot_class(), PayloadBytesOf(first)) <
         std::make_pair(second.slot_class(), PayloadBytesOf(second));
}

// Rows of one size are next to each other then.
void SortBySize(const TableDirectory& tables, std::vector<PlannedRow>* rows) {
  std::stable_sort(rows->begin(), rows->end(), [&](const PlannedRow& a, const PlannedRow& b) {
    return IsSmaller(tables, a, b);
  });
}

// The first of the rows that have one size, at most so many.
std::span<const PlannedRow> OneSize(const TableDirectory& tables, std::span<const PlannedRow> rows,
                                    size_t rows_max) {
  const Table& first = *tables.Get(rows.front().table);
  size_t count = 1;
  while (count < std::min(rows.size(), rows_max) &&
         HaveOneSize(*tables.Get(rows[count].table), first)) {
    ++count;
  }
  return rows.first(count);
}

// The rows behind those of the first size.
std::span<const PlannedRow> WithoutSize(const TableDirectory& tables,
                                        std::span<const PlannedRow> rows) {
  return rows.subspan(OneSize(tables, rows, rows.size()).size());
}

}  // namespace

// Slots of DRAM for the rows of a chunk that goes down, taken before the gate is closed: rows that
// are evicted for them may have to be written. In a store in memory that is full, some rows are
// forgotten for the first chunk; rows that go up free slots for the next ones.
class PayloadMover::FreeSlots {
 public:
  FreeSlots(const StoreContext& store, std::span<const PlannedRow> rows)
      : store_(store), class_(store.tables->Get(rows.front().table)->slot_class()) {
    EMBANK_CHECK(rows.size() <= slots_.size());
    for (const PlannedRow& row : rows) {
      if (!TakeFor(row)) break;
    }
  }
  ~FreeSlots() { store_.tier->Free(class_, std::span(slots_).subspan(next_, count_ - next_)); }
  FreeSlots(const FreeSlots&) = delete;
  FreeSlots& operator=(const FreeSlots&) = delete;

  // Lets batches have the slots that are left, and the pages that these are in: one that the mover
  // waits for may have to empty pages.
  void ReturnAll() {
    if (store_.pages == nullptr) return;
    given_back_ = count_ - next_;
    store_.tier->Free(class_, std::span(slots_).subspan(next_, given_back_));
    count_ = next_;
  }
  // Takes as many again, if they are free.
  void TakeAgain() {
    const auto slots = std::span(slots_).subspan(next_, std::exchange(given_back_, 0));
    count_ += store_.tier->Allocate(class_, slots);
  }

  bool empty() const { return next_ == count_; }
  Location Take() {
    EMBANK_CHECK(next_ < count_);
    return slots_[next_++];
  }

 private:
  bool TakeFor(const PlannedRow& row) {
    const Table& table = *store_.tables->Get(row.table);
    const std::span<Location> slot(&slots_[count_], 1);
    KeyIndex::Shard* const shard = store_.index->shard(KeyIndex::ShardOf(table.HashOf(row.key)));
    MutexLock lock(&shard->mutex);
    size_t taken = table.mover()->eviction().TakeSlots(shard, slot);
    if (taken == 0) taken = ForgetFor(table, shard, slot.data());
    count_ += taken;
    return taken > 0;
  }
  size_t ForgetFor(const Table& table, KeyIndex::Shard* shard, Location* slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex) {
    constexpr size_t kForgottenMax = 64;
    RowForgetter* const forgetter = table.forgetter();
    if (forgetter == nullptr || forgotten_ < count_ || forgotten_ == kForgottenMax) return 0;
    if (!RowForgetter::Turn(forgetter, shard, nullptr).TakeSlot(slot)) return 0;
    ++forgotten_;
    return 1;
  }

  const StoreContext& store_;
  const SlotClass class_;
  size_t forgotten_ = 0;
  size_t next_ = 0;
  size_t count_ = 0;
  size_t given_back_ = 0;
  std::array<Location, kChunkRows> slots_;
};

// Down and up take turns, so that each makes space for the other: a row that goes up frees a slot
// of DRAM, one that goes down a slot of device memory. Where both are full, rows of one size change
// places.
Status PayloadMover::Move(TopkPlan* plan) {
  const TableDirectory& tables = *payloads_.store().tables;
  SortBySize(tables, &plan->leavers);
  SortBySize(tables, &plan->arrivals);
  std::span<const PlannedRow> down(plan->leavers);
  std::span<const PlannedRow> up(plan->arrivals);
  while (!up.empty() || !down.empty()) {
    size_t moved = 0;
    if (!up.empty()) {
      EMBANK_ASSIGN_OR_RETURN(const size_t raised, RaiseChunk(up, GateUse::kWait));
      EMBANK_CHECK(raised <= up.size());
      up = up.subspan(raised);
      moved += raised;
    }
    if (!down.empty()) {
      EMBANK_ASSIGN_OR_RETURN(const size_t lowered, LowerChunk(down));
      EMBANK_CHECK(lowered <= down.size());
      down = down.subspan(lowered);
      moved += lowered;
    }
    if (moved > 0) continue;
    const auto can_swap = [&] {
      return !up.empty() && !down.empty() &&
             HaveOneSize(*tables.Get(down.front().table), *tables.Get(up.front().table));
    };
    if (can_swap()) {
      // A swap frees no slot, so that the next chunk does not look for one.
      while (can_swap()) {
        EMBANK_ASSIGN_OR_RETURN(const Dealt dealt, SwapChunk(down, up));
        EMBANK_CHECK(dealt.down + dealt.up > 0);
        down = down.subspan(dealt.down);
        up = up.subspan(dealt.up);
      }
      continue;
    }
    // There is no space for this size; there may be some for others. The larger of two sizes may
    // be found in the other list yet.
    if (down.empty() || (!up.empty() && IsSmaller(tables, up.front(), down.front()))) {
      up = WithoutSize(tables, up);
    } else {
      down = WithoutSize(tables, down);
    }
  }
  return OkStatus();
}

Status PayloadMover::Raise(std::span<const PlannedRow> rows, bool* has_space) {
  *has_space = true;
  EMBANK_RETURN_IF_ERROR(payloads_.memory().device().Wait(0));
  while (!rows.empty()) {
    EMBANK_ASSIGN_OR_RETURN(const size_t raised, RaiseChunk(rows, GateUse::kTry));
    // The rows wait for the next flush.
    if (raised == kGateInUse) return OkStatus();
    if (raised == 0) break;
    EMBANK_CHECK(raised <= rows.size());
    rows = rows.subspan(raised);
  }
  *has_space = rows.empty();
  return OkStatus();
}

// Batches wait for a chunk, but for nothing that the device had to do before it. If the device is
// lost, the rows stay where they are.
Status PayloadMover::WaitForDevice() {
  Device& device = payloads_.memory().device();
  return device.Wait(device.Record());
}

StatusOr<size_t> PayloadMover::LowerChunk(std::span<const PlannedRow> rows) {
  const StoreContext& store = payloads_.store();
  const Table& first = *store.tables->Get(rows.front().table);
  StagedRows staged(&payloads_.memory(), PayloadBytesOf(first), LoggedPayloadBytesOf(first));
  rows = OneSize(*store.tables, rows, std::min(kChunkRows, staged.rows_max()));
  std::array<uint32_t, kChunkRows> chosen;
  FreeSlots slots(store, rows);
  EMBANK_RETURN_IF_ERROR(WaitForDevice());
  const ClosedGate closed(&payloads_, /*waits=*/true, [&] { slots.ReturnAll(); });
  slots.TakeAgain();
  EMBANK_RETURN_IF_ERROR(Gather(rows, &staged, chosen));
  for (size_t i = 0; i < staged.size(); ++i) {
    const PlannedRow& row = rows[chosen[i]];
    const Table& table = *store.tables->Get(row.table);
    const RowId id = table.IdOf(row.key, table.HashOf(row.key));
    if (i > 0 && i % kRowsPerLook == 0 && closed.IsLong()) return size_t{chosen[i]};
    if (!LowerOne(table, id, row.location, staged.Row(i), &slots)) return size_t{chosen[i]};
  }
  return rows.size();
}

Status PayloadMover::Gather(std::span<const PlannedRow> rows, StagedRows* staged,
                            std::span<uint32_t> chosen) {
  const StoreContext& store = payloads_.store();
  EMBANK_CHECK(rows.size() <= chosen.size() && staged->size() == 0);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    const Table& table = *store.tables->Get(rows[i].table);
    const RowId id = table.IdOf(rows[i].key, table.HashOf(rows[i].key));
    KeyIndex::Shard* const shard = store.index->shard(KeyIndex::ShardOf(id.hash));
    MutexLock lock(&shard->mutex);
    if (!store.index->MatchAt(shard, id, rows[i].location).any()) continue;
    chosen[staged->size()] = i;
    staged->Add(payloads_.PayloadOf(rows[i].location));
  }
  if (staged->size() == 0) return OkStatus();
  if (!Seeded(SeededBug::kStaleBytesBelow)) staged->Gather(0);
  if (Seeded(SeededBug::kMovedBeforeCopied)) return OkStatus();
  return staged->Wait();
}

// False: nothing has space for it.
bool PayloadMover::LowerOne(const Table& table, const RowId& id, Location from,
                            const std::byte* payload, FreeSlots* slots) {
  KeyIndex* const index = payloads_.store().index;
  KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(id.hash));
  MutexLock lock(&shard->mutex);
  const Match match = index->MatchAt(shard, id, from);
  if (!match.any()) return true;
  RowMover* const mover = table.mover();
  // A checkpoint looks for rows with a pending flush where they were at its barrier.
  if (mover->rows().IsFlushPending(from)) {
    const Status flushed =
        mover->rows().FlushPending(from, std::span(payload, LoggedPayloadBytesOf(table)));
    if (!flushed.ok()) return false;
  }
  const bool is_dirty = mover->rows().IsDirty(from);
  if (!slots->empty()) {
    ToDram(shard, table, id, match, payload, slots->Take());
  } else if (!ToLog(shard, table, id, match, payload)) {
    return false;
  }
  payloads_.Free(table, from);
  CountLowered(is_dirty);
  return true;
}

void PayloadMover::CountLowered(bool is_dirty) {
  payloads_.counters().left_rows.fetch_add(1, std::memory_order_relaxed);
  if (is_dirty) payloads_.counters().written_back_rows.fetch_add(1, std::memory_order_relaxed);
}

void PayloadMover::ToDram(KeyIndex::Shard* shard, const Table& table, const RowId& id,
                          const Match& match, const std::byte* payload, Location slot) {
  EMBANK_CHECK(slot.IsInDram() && match.location().HasDevicePayload());
  const StoreContext& store = payloads_.store();
  const auto* const from = reinterpret_cast<const RowHeader*>(store.tier->Row(match.location()));
  auto* const to = reinterpret_cast<RowHeader*>(store.tier->Row(slot));
  if (!Seeded(SeededBug::kNoWriteBack)) {
    const uint32_t identity = BeginRowWrite(to);
    CopyToRow(payload, PayloadBytesOf(table), reinterpret_cast<std::byte*>(to + 1));
    EndRowWrite(to, identity, kNoTable);
  }
  WriteHeader(to, id.key, LoadMark(from).usage, id.table);
  table.mover()->rows().OnInsert(shard, slot, &payloads_.NoteOf(match.location()));
  store.index->Move(shard, id.hash, match, slot);
}

bool PayloadMover::ToLog(KeyIndex::Shard* shard, const Table& table, const RowId& id,
                         const Match& match, const std::byte* payload) {
  RowMover* const mover = table.mover();
  const Location from = match.location();
  StatusOr<Location> logged_at = Location{payloads_.NoteOf(from).logged};
  if (mover->rows().IsDirty(from)) {
    logged_at = mover->rows().AppendPayload(from, std::span(payload, LoggedPayloadBytesOf(table)));
  }
  if (!logged_at.ok()) return false;
  EMBANK_CHECK(logged_at->IsInLog());
  payloads_.store().index->Move(shard, id.hash, match, *logged_at);
  mover->rows().CountInLog(table, logged_at->tier(), 1);
  KeepHeat(mover->rows(), id.hash, from);
  return true;
}

StatusOr<size_t> PayloadMover::RaiseChunk(std::span<const PlannedRow> rows, GateUse gate_use) {
  const StoreContext& store = payloads_.store();
  const Table& first = *store.tables->Get(rows.front().table);
  if (payloads_.memory().slots().FreeSlots(PayloadBytesOf(first)) == 0) return 0;
  if (gate_use == GateUse::kWait) EMBANK_RETURN_IF_ERROR(WaitForDevice());
  StagedRows staged(&payloads_.memory(), PayloadBytesOf(first), LoggedPayloadBytesOf(first));
  rows = OneSize(*store.tables, rows, std::min(kChunkRows, staged.rows_max()));
  std::array<Location, kChunkRows> memory;
  const std::span<Location> headers = std::span(memory).first(rows.size());
  size_t header_count = store.tier->Allocate(kHeaderClass, headers);
  // Other rows leave DRAM for a page of headers. Memory of the budget would not do: the index and
  // the log come first there, and may want more than there is for as long as the store lives.
  if (header_count == 0 && store.pages != nullptr && store.pages->GivePage(kHeaderClass)) {
    header_count = store.tier->Allocate(kHeaderClass, headers);
  }
  EMBANK_CHECK(header_count <= headers.size());
  size_t used = 0;
  size_t done = 0;
  if (header_count > 0) {
    const ClosedGate closed(&payloads_, gate_use == GateUse::kWait);
    if (!closed.is_closed()) done = kGateInUse;
    for (; closed.is_closed() && done < rows.size() && used < header_count; ++done) {
      if (done > 0 && done % kRowsPerLook == 0 && closed.IsLong()) break;
      const Table& table = *store.tables->Get(rows[done].table);
      const RowId id = table.IdOf(rows[done].key, table.HashOf(rows[done].key));
      const Raised raised = RaiseOne(table, id, rows[done].location, headers[used], &staged);
      if (raised == Raised::kNoSpace) break;
      if (raised == Raised::kYes) ++used;
    }
    EMBANK_CHECK(staged.size() == used);
    if (staged.size() > 0) staged.Scatter(0);
  }
  store.tier->Free(kHeaderClass, headers.subspan(used, header_count - used));
  payloads_.counters().arrived_rows.fetch_add(used, std::memory_order_relaxed);
  EMBANK_RETURN_IF_ERROR(staged.Wait());
  return done;
}

// The entry moves before the device has the bytes. Batches read them by work that they enqueue when
// the gate is open again, which is behind the copy.
PayloadMover::Raised PayloadMover::RaiseOne(const Table& table, const RowId& id, Location from,
                                            Location header, StagedRows* staged) {
  const StoreContext& store = payloads_.store();
  KeyIndex::Shard* const shard = store.index->shard(KeyIndex::ShardOf(id.hash));
  MutexLock lock(&shard->mutex);
  const Match match = store.index->MatchAt(shard, id, from);
  if (!match.any() || !from.IsInDram()) return Raised::kGone;
  RowMover* const mover = table.mover();
  if (mover->rows().IsFlushPending(from)) {
    const RowInSlot row = {id, from};
    // The row stays if the log does not take it.
    if (!mover->rows().FlushPending(shard, {&row, 1}).ok()) return Raised::kGone;
  }
  const Location to = payloads_.TakeSlot(table, header);
  if (to == kNoLocation) return Raised::kNoSpace;
  auto* const old_header = reinterpret_cast<RowHeader*>(store.tier->Row(from));
  WriteHeader(reinterpret_cast<RowHeader*>(store.tier->Row(to)), id.key, LoadMark(old_header).usage,
              id.table);
  CopyFromRow(reinterpret_cast<const std::byte*>(old_header + 1), PayloadBytesOf(table),
              staged->Add(payloads_.PayloadOf(to)));
  mover->rows().OnRaise(shard, from, to);
  store.index->Move(shard, id.hash, match, to);
  RetireRow(old_header);
  store.tier->Free(table.slot_class(), {&from, 1});
  return Raised::kYes;
}

StatusOr<PayloadMover::Dealt> PayloadMover::SwapChunk(std::span<const PlannedRow> down,
                                                      std::span<const PlannedRow> up) {
  const StoreContext& store = payloads_.store();
  const Table& first = *store.tables->Get(down.front().table);
  EMBANK_CHECK(HaveOneSize(first, *store.tables->Get(up.front().table)));
  EMBANK_RETURN_IF_ERROR(WaitForDevice());
  StagedRows staged(&payloads_.memory(), PayloadBytesOf(first), LoggedPayloadBytesOf(first));
  up = OneSize(*store.tables, up, std::min(kChunkRows, staged.rows_max()));
  down = OneSize(*store.tables, down, up.size());
  std::array<uint32_t, kChunkRows> chosen;
  Dealt dealt;
  {
    const ClosedGate closed(&payloads_, /*waits=*/true);
    EMBANK_RETURN_IF_ERROR(Gather(down, &staged, chosen));
    uint64_t swapped = 0;
    size_t next = 0;
    while (next < staged.size() && dealt.up < up.size()) {
      if (dealt.up > 0 && dealt.up % kRowsPerLook == 0 && closed.IsLong()) break;
      const Swapped one = SwapOne(down[chosen[next]], up[dealt.up], staged.Row(next));
      if (one == Swapped::kYes) ++swapped;
      if (one != Swapped::kUpIsGone) ++next;
      if (one != Swapped::kDownIsGone) ++dealt.up;
    }
    dealt.down = next < staged.size() ? chosen[next] : down.size();
    // A row that stays gets its own bytes again: nobody has changed them meanwhile.
    if (swapped > 0) staged.Scatter(0);
    payloads_.counters().arrived_rows.fetch_add(swapped, std::memory_order_relaxed);
  }
  EMBANK_RETURN_IF_ERROR(staged.Wait());
  return dealt;
}

// It does not wait for the lock of a second shard: two threads might wait for each other.
PayloadMover::Swapped PayloadMover::SwapOne(const PlannedRow& down, const PlannedRow& up,
                                            std::byte* payload) {
  const StoreContext& store = payloads_.store();
  const auto shard_of = [&](const PlannedRow& row) {
    return store.index->shard(KeyIndex::ShardOf(store.tables->Get(row.table)->HashOf(row.key)));
  };
  KeyIndex::Shard* const down_shard = shard_of(down);
  KeyIndex::Shard* const up_shard = shard_of(up);
  MutexLock lock(&down_shard->mutex);
  if (up_shard == down_shard) {
    up_shard->mutex.AssertHeld();
    return SwapUnderLocks(down_shard, up_shard, down, up, payload);
  }
  if (!up_shard->mutex.TryLock()) return Swapped::kStays;
  const Swapped swapped = SwapUnderLocks(down_shard, up_shard, down, up, payload);
  up_shard->mutex.Unlock();
  return swapped;
}

// Calls that look at the index without locks are outside the gate. So no one sees the moment in
// which an entry names the place of the other row.
PayloadMover::Swapped PayloadMover::SwapUnderLocks(KeyIndex::Shard* down_shard,
                                                   KeyIndex::Shard* up_shard,
                                                   const PlannedRow& down, const PlannedRow& up,
                                                   std::byte* payload) {
  const StoreContext& store = payloads_.store();
  const Table& down_table = *store.tables->Get(down.table);
  const Table& up_table = *store.tables->Get(up.table);
  const RowId down_id = down_table.IdOf(down.key, down_table.HashOf(down.key));
  const RowId up_id = up_table.IdOf(up.key, up_table.HashOf(up.key));
  const Match down_match = store.index->MatchAt(down_shard, down_id, down.location);
  if (!down_match.any()) return Swapped::kDownIsGone;
  const Match up_match = store.index->MatchAt(up_shard, up_id, up.location);
  if (!up_match.any() || !up.location.IsInDram()) return Swapped::kUpIsGone;
  ClassRows& rows = down_table.mover()->rows();
  if (rows.IsFlushPending(down.location)) {
    const std::span logged(payload, LoggedPayloadBytesOf(down_table));
    if (!rows.FlushPending(down.location, logged).ok()) return Swapped::kStays;
  }
  if (rows.IsFlushPending(up.location)) {
    const RowInSlot row = {up_id, up.location};
    if (!rows.FlushPending(up_shard, {&row, 1}).ok()) return Swapped::kStays;
  }
  auto* const payload_header = reinterpret_cast<RowHeader*>(store.tier->Row(down.location));
  auto* const slot_header = reinterpret_cast<RowHeader*>(store.tier->Row(up.location));
  const uint32_t down_usage = LoadMark(payload_header).usage;
  const uint32_t up_usage = LoadMark(slot_header).usage;
  const SlotNote down_note = payloads_.NoteOf(down.location);
  payloads_.Replace(down_table, up_table, down.location);
  rows.OnRaise(up_shard, up.location, down.location);
  RetireRow(payload_header);
  const uint32_t identity = BeginRowWrite(slot_header);
  ExchangePayload(slot_header, PayloadBytesOf(down_table), payload);
  EndRowWrite(slot_header, identity, kNoTable);
  WriteHeader(payload_header, up_id.key, up_usage, up_id.table);
  WriteHeader(slot_header, down_id.key, down_usage, down_id.table);
  rows.OnInsert(down_shard, up.location, &down_note);
  store.index->Move(up_shard, up_id.hash, up_match, down.location);
  store.index->Move(down_shard, down_id.hash, down_match, up.location);
  CountLowered(down_note.IsDirty());
  return Swapped::kYes;
}

}  // namespace embank
