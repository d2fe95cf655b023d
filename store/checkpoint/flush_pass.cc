#include "store/checkpoint/flush_pass.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <span>

#include "base/status_macros.h"
#include "store/hot/payload_rows.h"
#include "store/placement/page_rows.h"
#include "store/table/table.h"
#include "tiers/dram/dirty_slots.h"

namespace embank {
namespace {

// The parts that each thread takes before it looks for batches, while the flush pass is alone.
constexpr uint32_t kPartsAtOnce = 4;

// A row with a pending flush was dirty at the barrier, and so was its slot. It stays there until a
// thread, under its shard's lock, has appended it to the log. Whatever else a slot holds when it is
// looked at, the look under the lock tells.
class FlushPass {
 public:
  explicit FlushPass(const FlushPassParts& parts) : parts_(parts), slots_(*parts.tier) {}

  FlushPassReport Run() {
    uint64_t rest_ns = 0;
    FlushPace* const pace = parts_.gate->pace();
    pace->Begin(parts_.gate->batches_begun());
    while (GoesOn()) {
      // Workers that rest would be missing to large batches. Near the end of ssd_bytes, batches
      // need the space more that the checkpoint frees at its end.
      if (pace->IsBeside(parts_.gate->batches_begun()) &&
          !parts_.logs->lowest().space().IsNearFull()) {
        rest_ns += FlushSlowly();
      } else {
        parts_.executor->ParallelFor(kPartsAtOnce * parts_.executor->concurrency(),
                                     [&](uint32_t) { FlushPart(); });
      }
    }
    return {rest_ns, slots_.given(), flushed_.load(std::memory_order_relaxed)};
  }

 private:
  bool GoesOn() const { return parts_.gate->IsFlushing() && !slots_.has_ended(); }

  // Visits some slots on this thread, and rests; returns for how long.
  uint64_t FlushSlowly() {
    const uint64_t begin_ns = parts_.clock->NowNs();
    const uint64_t rest_is_due = slots_.given() + FlushPace::kSlotsPerRest;
    while (slots_.given() < rest_is_due && GoesOn()) {
      // A list of one task runs on this thread.
      parts_.executor->ParallelFor(1, [&](uint32_t) { FlushPart(); });
    }
    if (!GoesOn()) return 0;
    const uint64_t worked_ns = parts_.clock->NowNs() - begin_ns;
    return parts_.gate->pace()->Rest(FlushPace::RestNs(worked_ns, parts_.executor->concurrency()));
  }

  void FlushPart() {
    if (!GoesOn()) return;
    parts_.logs->WaitForFreeBuffers();
    std::array<Location, kSlotsAtOnce> slots;
    const DirtySlots::Part part = slots_.Next(slots);
    if (part.count == 0) return;
    const Status status = Flush(part.slot_class, std::span(slots).first(part.count));
    if (!status.ok()) parts_.gate->Fail(status);
  }

  Status Flush(SlotClass slot_class, std::span<const Location> slots) {
    if (slot_class == kHeaderClass) return parts_.payloads->FlushSlots(slots, &flushed_);
    PageRows page_rows(*parts_.tier, *parts_.tables, slot_class, slots);
    return page_rows.ForEachShard(
        [&](RowMover* mover, uint32_t number, std::span<const RowInSlot> rows) {
          KeyIndex::Shard* const shard = parts_.index->shard(number);
          for (size_t first = 0; first < rows.size(); first += ClassRows::kFlushedAtOnce) {
            const size_t count = std::min(rows.size() - first, ClassRows::kFlushedAtOnce);
            MutexLock lock(&shard->mutex);
            EMBANK_RETURN_IF_ERROR(
                mover->rows().FlushPending(shard, rows.subspan(first, count), &flushed_));
          }
          return OkStatus();
        });
  }

  const FlushPassParts& parts_;
  DirtySlots slots_;
  std::atomic<uint64_t> flushed_{0};
};

}  // namespace

FlushPassReport RunFlushPass(const FlushPassParts& parts) { return FlushPass(parts).Run(); }

}  // namespace embank
