#include "store/checkpoint.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "store/table.h"

namespace embank {
namespace {

// Slots of a page that are looked at together: 150 KiB of rows of 576 bytes, which stay in the
// cache from one look to the next, and four of each shard.
constexpr uint32_t kSlotsAtOnce = 256;
// Asked for ahead, one line each.
constexpr uint32_t kSlotsAhead = 16;

// One part of a page: whatever a slot holds when it is looked at, a row that is owed was in it at
// the flip, and is until somebody, under its shard's lock, has put it into the log.
class PartSweep {
 public:
  PartSweep(const SweepParts& parts, uint32_t page, uint32_t first_slot) : parts_(parts) {
    // The page's memory stays while this is a reader; the rows may leave.
    std::optional<EpochTable::Guard> reader;
    const DramTier::PageSlots slots = parts.tier->SlotsOf(page, &reader);
    const uint32_t end = std::min(slots.slots, first_slot + kSlotsAtOnce);
    for (uint32_t slot = first_slot; slot < end; ++slot) {
      const Location location = DramTier::SlotAt(page, slots, slot);
      const std::byte* const row = parts.tier->Row(location);
      __builtin_prefetch(row + uint64_t{kSlotsAhead} * slots.slot_bytes);
      const auto* const header = reinterpret_cast<const RowHeader*>(row);
      const TableId owner = TableOf(LoadIdentity(header));
      const Table* const table = owner == kNoTable ? nullptr : parts.tables->Get(owner);
      // What is no row may look like anybody's.
      if (table == nullptr || table->slot_class() != slots.slot_class) continue;
      mover_ = table->mover();
      const Key key = LoadKey(header);
      seen_[count_++] = {table->IdOf(key, table->HashOf(key)), location};
    }
  }

  // The status of the log.
  absl::Status Run() {
    std::array<uint32_t, KeyIndex::kShardCount + 1> ends = {};
    for (const RowInSlot& row : std::span(seen_).first(count_)) ++ends[ShardOf(row) + 1];
    for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) ends[shard + 1] += ends[shard];
    // By shard; each end moves on from its shard's first row to behind its last.
    for (const RowInSlot& row : std::span(seen_).first(count_)) rows_[ends[ShardOf(row)]++] = row;
    for (uint32_t shard = 0, first = 0; shard < KeyIndex::kShardCount; first = ends[shard++]) {
      EMBANK_RETURN_IF_ERROR(RunShard(parts_.index->shard(shard),
                                      std::span(rows_).subspan(first, ends[shard] - first)));
    }
    return absl::OkStatus();
  }

 private:
  static uint32_t ShardOf(const RowInSlot& row) { return KeyIndex::ShardOf(row.id.hash); }

  absl::Status RunShard(KeyIndex::Shard* shard, std::span<const RowInSlot> rows) {
    for (size_t first = 0; first < rows.size(); first += RowMover::kOwedAtOnce) {
      const size_t count = std::min(rows.size() - first, RowMover::kOwedAtOnce);
      MutexLock lock(&shard->mutex);
      EMBANK_RETURN_IF_ERROR(mover_->SaveOwed(shard, rows.subspan(first, count)));
    }
    return absl::OkStatus();
  }

  const SweepParts& parts_;
  RowMover* mover_ = nullptr;
  std::array<RowInSlot, kSlotsAtOnce> seen_;
  std::array<RowInSlot, kSlotsAtOnce> rows_;
  size_t count_ = 0;
};

// Beside batches, 1,024 slots: a core is taken from them for 200 us at a time.
constexpr uint32_t kPartsAtOnce = 4;

void SweepPart(const SweepParts& parts, uint32_t page, uint32_t part) {
  if (!parts.gate->IsSweeping()) return;
  parts.log->WaitForCalm();
  const absl::Status status = PartSweep(parts, page, part * kSlotsAtOnce).Run();
  if (!status.ok()) parts.gate->Fail(status);
}

uint32_t PartsOf(const DramTier& tier, uint32_t page) {
  std::optional<EpochTable::Guard> reader;
  return (tier.SlotsOf(page, &reader).slots + kSlotsAtOnce - 1) / kSlotsAtOnce;
}

// Some parts of a page, and the rest that follows; for how long.
uint64_t SweepSlowly(const SweepParts& parts, uint32_t page, uint32_t first, uint32_t end) {
  const uint64_t begin_ns = parts.clock->NowNs();
  for (uint32_t part = first; part < end; ++part) {
    // Of one task: on this thread.
    parts.executor->ParallelFor(1, [&](uint32_t) { SweepPart(parts, page, part); });
  }
  const uint64_t worked_ns = parts.clock->NowNs() - begin_ns;
  return parts.gate->pace()->Rest(SweepPace::RestNs(worked_ns, parts.executor->concurrency()));
}

}  // namespace

uint64_t SweepOwed(const SweepParts& parts) {
  // In the order of memory: a row that is owed stays in its slot, or leaves for the log.
  const uint32_t pages = parts.tier->pages_begun();
  uint64_t rested_ns = 0;
  SweepPace* const pace = parts.gate->pace();
  pace->Begin(parts.gate->batches_begun());
  for (uint32_t page = 0; page < pages; ++page) {
    const uint32_t count = PartsOf(*parts.tier, page);
    uint32_t done = 0;
    // Workers that rest would be missing to large batches. Near the end of ssd_bytes they need the
    // space more that a checkpoint gives back in the end.
    while (done < count && parts.gate->IsSweeping() &&
           pace->IsBeside(parts.gate->batches_begun()) && !parts.log->IsNearFull()) {
      const uint32_t end = std::min(count, done + kPartsAtOnce);
      rested_ns += SweepSlowly(parts, page, done, end);
      done = end;
    }
    if (done == count) continue;
    parts.executor->ParallelFor(count - done,
                                [&](uint32_t part) { SweepPart(parts, page, done + part); });
  }
  return rested_ns;
}

}  // namespace embank
