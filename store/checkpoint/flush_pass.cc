#include "store/checkpoint/flush_pass.h"

#include <algorithm>
#include <span>

#include "base/status_macros.h"
#include "store/hot/hot_rows.h"
#include "store/placement/page_rows.h"
#include "store/table/table.h"

namespace embank {
namespace {

constexpr uint32_t kSlotsOfPart = kSlotsAtOnce;

// Flushes the rows of one part of a page. A slot may hold anything when it is looked at. But a row
// with a pending flush was in it at the barrier, and stays until a thread, under its shard's lock,
// has appended it to the log.
Status FlushRowsOf(const FlushPassParts& parts, uint32_t page, uint32_t first_slot) {
  if (parts.hot != nullptr) EMBANK_RETURN_IF_ERROR(parts.hot->FlushPage(page, first_slot));
  PageRows page_rows(*parts.tier, *parts.tables, page, first_slot);
  return page_rows.ForEachShard(
      [&](RowMover* mover, uint32_t number, std::span<const RowInSlot> rows) {
        KeyIndex::Shard* const shard = parts.index->shard(number);
        for (size_t first = 0; first < rows.size(); first += ClassRows::kFlushedAtOnce) {
          const size_t count = std::min(rows.size() - first, ClassRows::kFlushedAtOnce);
          MutexLock lock(&shard->mutex);
          EMBANK_RETURN_IF_ERROR(mover->rows().FlushPending(shard, rows.subspan(first, count)));
        }
        return OkStatus();
      });
}

// Beside batches, 1,024 slots: a core is taken from them for 200 us at a time.
constexpr uint32_t kPartsAtOnce = 4;

void FlushPart(const FlushPassParts& parts, uint32_t page, uint32_t part) {
  if (!parts.gate->IsFlushing()) return;
  parts.logs->WaitForFreeBuffers();
  const Status status = FlushRowsOf(parts, page, part * kSlotsOfPart);
  if (!status.ok()) parts.gate->Fail(status);
}

uint32_t PartsOf(const DramTier& tier, uint32_t page) {
  return (PageRows::SlotsOf(tier, page) + kSlotsOfPart - 1) / kSlotsOfPart;
}

// Flushes some parts of a page, and rests; returns for how long.
uint64_t FlushSlowly(const FlushPassParts& parts, uint32_t page, uint32_t first, uint32_t end) {
  const uint64_t begin_ns = parts.clock->NowNs();
  for (uint32_t part = first; part < end; ++part) {
    // A list of one task runs on this thread.
    parts.executor->ParallelFor(1, [&](uint32_t) { FlushPart(parts, page, part); });
  }
  const uint64_t worked_ns = parts.clock->NowNs() - begin_ns;
  return parts.gate->pace()->Rest(FlushPace::RestNs(worked_ns, parts.executor->concurrency()));
}

}  // namespace

uint64_t RunFlushPass(const FlushPassParts& parts) {
  // In the order of memory: a row with a pending flush stays in its slot, or leaves for the log.
  const uint32_t pages = parts.tier->pages_begun();
  uint64_t rested_ns = 0;
  FlushPace* const pace = parts.gate->pace();
  pace->Begin(parts.gate->batches_begun());
  for (uint32_t page = 0; page < pages; ++page) {
    const uint32_t count = PartsOf(*parts.tier, page);
    uint32_t done = 0;
    // Workers that rest would be missing to large batches. Near the end of ssd_bytes, batches need
    // the space more that the checkpoint frees at its end.
    while (done < count && parts.gate->IsFlushing() &&
           pace->IsBeside(parts.gate->batches_begun()) &&
           !parts.logs->lowest().space().IsNearFull()) {
      const uint32_t end = std::min(count, done + kPartsAtOnce);
      rested_ns += FlushSlowly(parts, page, done, end);
      done = end;
    }
    if (done == count) continue;
    parts.executor->ParallelFor(count - done,
                                [&](uint32_t part) { FlushPart(parts, page, done + part); });
  }
  return rested_ns;
}

}  // namespace embank
