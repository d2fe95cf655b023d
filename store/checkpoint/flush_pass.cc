#include "store/checkpoint/flush_pass.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>

#include "base/status_macros.h"
#include "base/threads/clock.h"
#include "base/threads/executor.h"
#include "store/gate/batch_gate.h"
#include "store/index/key_index.h"
#include "store/payload/payload_rows.h"
#include "store/placement/page_rows.h"
#include "store/placement/row_mover.h"
#include "store/table/table.h"
#include "tiers/dram/dirty_slots.h"
#include "tiers/dram/dram_tier.h"

namespace embank {
namespace {

// The parts that each thread takes before it looks for batches, while the flush pass is alone.
constexpr uint32_t kPartsAtOnce = 4;

// A row with a pending flush was dirty at the barrier, and so was its slot. It stays there until a
// thread, under its shard's lock, has appended it to the log. Whatever else a slot holds when it is
// looked at, the look under the lock tells.
class FlushPass {
 public:
  explicit FlushPass(const StoreContext& store) : store_(store), slots_(*store.tier) {}

  FlushPassReport Run() {
    uint64_t rest_ns = 0;
    FlushPace* const pace = store_.gate->pace();
    pace->Begin(store_.gate->batches_begun());
    while (GoesOn()) {
      // Workers that rest would be missing to large batches. Near the end of ssd_bytes, batches
      // need the space more that the checkpoint frees at its end.
      if (pace->IsBeside(store_.gate->batches_begun()) &&
          !store_.logs->lowest().space().IsNearFull()) {
        rest_ns += FlushSlowly();
      } else {
        store_.executor->ParallelFor(kPartsAtOnce * store_.executor->concurrency(),
                                     [&](uint32_t) { FlushPart(); });
      }
    }
    return {rest_ns, slots_.given(), flushed_.load(std::memory_order_relaxed)};
  }

 private:
  bool GoesOn() const { return store_.gate->IsFlushing() && !slots_.has_ended(); }

  // Visits some slots on this thread, and rests; returns for how long.
  uint64_t FlushSlowly() {
    const uint64_t begin_ns = store_.clock->NowNs();
    const uint64_t rest_is_due = slots_.given() + FlushPace::kSlotsPerRest;
    while (slots_.given() < rest_is_due && GoesOn()) {
      // A list of one task runs on this thread.
      store_.executor->ParallelFor(1, [&](uint32_t) { FlushPart(); });
    }
    if (!GoesOn()) return 0;
    const uint64_t worked_ns = store_.clock->NowNs() - begin_ns;
    return store_.gate->pace()->Rest(FlushPace::RestNs(worked_ns, store_.executor->concurrency()));
  }

  void FlushPart() {
    if (!GoesOn()) return;
    store_.logs->WaitForFreeBuffers();
    std::array<Location, kSlotsAtOnce> slots;
    const DirtySlots::Part part = slots_.Next(slots);
    if (part.count == 0) return;
    const Status status = Flush(part.slot_class, std::span(slots).first(part.count));
    if (!status.ok()) store_.gate->Fail(status);
  }

  Status Flush(SlotClass slot_class, std::span<const Location> slots) {
    if (slot_class == kHeaderClass) return store_.payloads->FlushSlots(slots, &flushed_);
    PageRows page_rows(*store_.tier, *store_.tables, slot_class, slots);
    return page_rows.ForEachShard(
        [&](RowMover* mover, uint32_t number, std::span<const RowInSlot> rows) {
          KeyIndex::Shard* const shard = store_.index->shard(number);
          for (size_t first = 0; first < rows.size(); first += ClassRows::kFlushedAtOnce) {
            const size_t count = std::min(rows.size() - first, ClassRows::kFlushedAtOnce);
            MutexLock lock(&shard->mutex);
            EMBANK_RETURN_IF_ERROR(
                mover->rows().FlushPending(shard, rows.subspan(first, count), &flushed_));
          }
          return OkStatus();
        });
  }

  const StoreContext& store_;
  DirtySlots slots_;
  std::atomic<uint64_t> flushed_{0};
};

}  // namespace

FlushPassReport RunFlushPass(const StoreContext& store) { return FlushPass(store).Run(); }

}  // namespace embank
