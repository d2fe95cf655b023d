#include "store/batch/prefetch.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/memory/scratch.h"
#include "base/status_macros.h"
#include "store/batch/batch.h"
#include "store/batch/row_group.h"
#include "store/batch/shard_plan.h"
#include "store/batch/write_scope.h"
#include "store/placement/row_mover.h"

namespace embank {
namespace {

class RowsAhead {
 public:
  RowsAhead(const Batch& batch, uint64_t evictions_max)
      : batch_(batch), table_(&batch.table()), evictions_max_(evictions_max) {}

  // kResourceExhausted.
  Status Allocate() {
    EMBANK_RETURN_IF_ERROR(plan_.Allocate(batch_.keys().size()));
    EMBANK_RETURN_IF_ERROR(positions_.Allocate(batch_.keys().size()));
    EMBANK_RETURN_IF_ERROR(locations_.Allocate(batch_.keys().size()));
    std::ranges::fill(locations_.values(), kNoLocation);
    return OkStatus();
  }

  // Pins rows in memory, and notes the places of the others in the log.
  void PinRowsInMemory() {
    plan_.GroupAll(batch_);
    const auto pin = [&](const ShardGroup& group) {
      MutexLock lock(&group.shard->mutex);
      ForEachMatch(*table_, batch_, group,
                   [&](uint32_t position, const RowId&, const Match& match) {
                     if (match.any()) PinOrNote(position, match.location());
                   });
    };
    plan_.ForEachShard(batch_, pin);
  }

  void PromoteOthers() {
    batch_.ForEachPart([&](uint32_t begin, uint32_t end) {
      if (!not_promoted_.load(std::memory_order_relaxed)) PromotePart(begin, end);
    });
    table_->counters().prefetched_rows.fetch_add(promoted_, std::memory_order_relaxed);
    for (size_t tier = 0; tier < promoted_from_.size(); ++tier) {
      table_->counters().prefetched_from[tier].fetch_add(promoted_from_[tier],
                                                         std::memory_order_relaxed);
    }
  }

 private:
  void PinOrNote(uint32_t position, Location location) {
    if (location.IsInDram()) {
      table_->mover()->rows().pins().Pin(location);
    } else if (location.IsInLog()) {
      locations_.values()[position] = location;
    }
  }

  void PromotePart(uint32_t begin, uint32_t end) {
    const std::span<uint32_t> positions = positions_.values().subspan(begin);
    const std::span<Location> locations = locations_.values().subspan(begin);
    size_t count = 0;
    for (uint32_t i = 0; i < end - begin; ++i) {
      if (locations[i] == kNoLocation) continue;
      positions[count] = begin + i;
      locations[count++] = locations[i];
    }
    if (count == 0) return;
    // A row that cannot be read, or has moved, stays where it is: the batch that needs it reads it.
    const Status status = table_->mover()->logs().Read(
        locations.first(count),
        [&](size_t i, const Status& read, std::span<const std::byte> record) {
          const Key key = batch_.keys()[positions[i]];
          const RowId id = table_->IdOf(key, table_->HashOf(key));
          if (read.ok() && IsRecordOf(id, record)) Promote(id, locations[i], record);
        });
    static_cast<void>(status);
  }

  void Promote(const RowId& id, Location from, std::span<const std::byte> record) {
    KeyIndex* const index = table_->store().index;
    KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(id.hash));
    MutexLock lock(&shard->mutex);
    const Match match = index->Find(id);
    if (!match.any()) return;
    if (match.location().IsInDram()) {
      // For another position of the batch, or by another thread.
      table_->mover()->rows().pins().Pin(match.location());
    } else if (match.location() == from) {
      const bool may_evict = promoted_.load(std::memory_order_relaxed) < evictions_max_;
      const bool promoted =
          table_->mover()->promotion().PromoteAhead(shard, id, match, record, may_evict);
      (promoted ? promoted_ : not_promoted_).fetch_add(1, std::memory_order_relaxed);
      if (!promoted) return;
      promoted_from_[static_cast<size_t>(from.tier())].fetch_add(1, std::memory_order_relaxed);
    }
  }

  const Batch& batch_;
  Table* const table_;
  // More rows would evict each other.
  const uint64_t evictions_max_;
  ShardPlan plan_;
  Scratch<uint32_t, kInlineKeys> positions_;
  Scratch<Location, kInlineKeys> locations_;
  std::atomic<uint64_t> promoted_{0};
  std::array<std::atomic<uint64_t>, kTiers> promoted_from_{};  // by tier
  std::atomic<uint64_t> not_promoted_{0};  // counts rows that found no slot; then the rest is not
                                           // tried
};

// The part of half of the rows in memory.
uint64_t EvictionsMax(const Table& table, uint64_t keys, uint64_t keys_of_call) {
  const uint64_t half = table.mover()->rows().rows_in_memory() / 2;
  if (keys_of_call <= keys) return half;
  return static_cast<uint64_t>(static_cast<double>(half) * static_cast<double>(keys) /
                               static_cast<double>(keys_of_call));
}

}  // namespace

Status Prefetch(Table* table, KeySpan keys, uint64_t keys_of_call) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  const uint64_t begin_ns = table->store().clock->NowNs();
  const Batch batch(table, keys, {});
  // If no row has left memory yet, none needs a pin.
  if (table->mover()->rows().rows_in_log() > 0) {
    RowsAhead rows(batch, EvictionsMax(*table, keys.size(), keys_of_call));
    EMBANK_RETURN_IF_ERROR(rows.Allocate());
    rows.PinRowsInMemory();
    rows.PromoteOthers();
  }
  batch.CountVerb(TableVerb::kPrefetch, batch.NsSince(begin_ns));
  return WriteScope(batch).Settle();
}

}  // namespace embank
