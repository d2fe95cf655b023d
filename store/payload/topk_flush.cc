#include "store/payload/topk_flush.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "store/placement/page_rows.h"

namespace embank {
namespace {

uint64_t LookupBatches(Table* table) {
  return table->counters().lookup_batches.load(std::memory_order_relaxed);
}

// Another thread may look meanwhile.
uint64_t IterationsSinceLook(Table* table) {
  const uint64_t looked_at = table->counters().looked_at_batches.load(std::memory_order_relaxed);
  const uint64_t batches = LookupBatches(table);
  return batches > looked_at ? batches - looked_at : 0;
}

}  // namespace

TopkFlush::TopkFlush(PayloadRows* payloads, const TopkFlushOptions& options)
    : payloads_(*payloads),
      options_(options),
      next_look_(options.flush_iters == TopkFlushOptions::kNever ? UINT64_MAX
                                                                 : options.warmup_iters),
      pace_(options.flush_iters),
      mover_(payloads),
      task_(payloads->store().executor->MakeBackgroundTask([this] { return Step(); })) {}

void TopkFlush::CountLookup(Table* table, uint64_t positions) {
  positions_.fetch_add(positions, std::memory_order_relaxed);
  table->counters().lookup_batches.fetch_add(1, std::memory_order_relaxed);
  if (IterationsSinceLook(table) >= next_look_.load(std::memory_order_relaxed)) Look(table);
}

// The first look ends the warm-up. Another thread that looks already is enough. Epochs end in the
// caller's thread: heat is then the same in every run of one thread.
void TopkFlush::Look(Table* table) {
  if (!pace_mutex_.TryLock()) return;
  if (IterationsSinceLook(table) >= next_look_.load(std::memory_order_relaxed)) {
    next_look_.store(pace_.look_batches(), std::memory_order_relaxed);
    for (uint32_t id = 0; id < kTablesMax; ++id) {
      Table* const other = payloads_.store().tables->Get(static_cast<TableId>(id));
      if (other == nullptr) continue;
      other->counters().looked_at_batches.store(LookupBatches(other), std::memory_order_relaxed);
    }
    // A batch counts its hits first.
    const uint64_t positions = positions_.load();
    const uint64_t hits = std::min(payloads_.counters().answered.load(), positions);
    const HitFigures before = std::exchange(looked_at_, {positions, hits});
    EMBANK_CHECK(positions >= before.lookups && hits >= before.hits);
    const uint64_t lookups = positions - before.lookups;
    TopkStep step = {.flush = true};
    if (std::exchange(is_warm_, true)) {
      step = pace_.Look({lookups, std::min(hits - before.hits, lookups)});
    }
    payloads_.store().heat_clock->EndEpochs(step.epochs);
    early_epochs_.fetch_add(step.epochs, std::memory_order_relaxed);
    if (step.flush) {
      is_due_.store(true, std::memory_order_relaxed);
      task_->Wake();
    }
  }
  pace_mutex_.Unlock();
}

// Whether another flush is due already.
bool TopkFlush::Step() {
  if (!is_due_.exchange(false, std::memory_order_relaxed)) return false;
  const Status status = FlushNow();
  if (!status.ok()) {
    Log(LogLevel::kWarning, StrCat("the top-k flush failed: ", status.ToString()));
  }
  return is_due_.load(std::memory_order_relaxed);
}

Status TopkFlush::FlushNow() {
  MutexLock lock(&mutex_);
  return Flush();
}

Status TopkFlush::Flush() {
  // Rows that would go to a device that is lost stay where they can be read.
  EMBANK_RETURN_IF_ERROR(payloads_.memory().device().Wait(0));
  const Clock& clock = *payloads_.store().clock;
  const uint64_t begin_ns = clock.NowNs();
  const TopkPlanOptions options = {.budget_bytes = payloads_.memory().slots().bytes(),
                                   .hysteresis = options_.hysteresis};
  EMBANK_ASSIGN_OR_RETURN(TopkPlan plan,
                          PlanTopk([this](TopkVisit visit) { VisitRows(visit); }, options));
  const uint64_t planned_ns = clock.NowNs();
  EMBANK_RETURN_IF_ERROR(mover_.Move(&plan));
  fits_all_.store(plan.fits_all, std::memory_order_relaxed);
  const uint64_t flush_ns = clock.NowNs() - begin_ns;
  MutexLock lock(&report_mutex_);
  report_ = {.flushes = report_.flushes + 1,
             .last_plan_ns = planned_ns - begin_ns,
             .last_flush_ns = flush_ns,
             .all_flushes_ns = report_.all_flushes_ns + flush_ns,
             .candidate_rows = plan.candidate_rows,
             .fits_all = plan.fits_all};
  return OkStatus();
}

// A batch that finds the flush at work leaves its rows to the next one.
void TopkFlush::RaiseCreated(const Table& table, KeySpan keys) {
  if (!fits_all_.load(std::memory_order_relaxed) || !mutex_.TryLock()) return;
  const StoreContext& store = payloads_.store();
  try {
    std::vector<PlannedRow> rows;
    {
      const EpochTable::Guard guard(store.epochs);
      for (const Key key : keys) {
        const Match match = store.index->Find(table.IdOf(key, table.HashOf(key)));
        if (match.any() && match.location().IsInDram()) {
          rows.push_back({.location = match.location(),
                          .table = table.id(),
                          .payload_bytes = PayloadBytesOf(table),
                          .key = key});
        }
      }
    }
    bool has_space = true;
    const Status status = mover_.Raise(rows, &has_space);
    if (!status.ok() || !has_space) fits_all_.store(false, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    fits_all_.store(false, std::memory_order_relaxed);
  }
  mutex_.Unlock();
}

// Calls visit for the rows with headers, in the order of memory. Rows that travel meanwhile may be
// missing, or be there twice: each is looked at again when it is moved. A row takes its share of a
// page, so that no more rows are planned than there are slots.
void TopkFlush::VisitRows(TopkVisit visit) const {
  const StoreContext& store = payloads_.store();
  const PayloadSlots& payloads = payloads_.memory().slots();
  const HeatEpoch now = store.heat_clock->now();
  // Neighbours are mostly of one table, and divisions take time.
  const Table* last = nullptr;
  uint32_t share_bytes = 0;
  const uint32_t pages = store.tier->pages_begun();
  for (uint32_t page = 0; page < pages; ++page) {
    uint32_t slots = 1;
    for (uint32_t first = 0; first < slots; first += kSlotsAtOnce) {
      slots = ForEachSlot(*store.tier, *store.tables, page, first, [&](const SeenSlot& seen) {
        if (std::exchange(last, seen.table) != seen.table) {
          share_bytes = payloads.ShareOf(PayloadBytesOf(*seen.table));
        }
        visit({.location = seen.location,
               .heat = HeatOf(seen.mark.usage, now),
               .payload_bytes = share_bytes,
               .table = seen.table->id(),
               .key = LoadKey(seen.header),
               .in_hbm = seen.location.HasDevicePayload()});
      });
    }
  }
}

TopkFlushReport TopkFlush::Report() const {
  MutexLock lock(&report_mutex_);
  TopkFlushReport report = report_;
  report.early_epochs = early_epochs_.load(std::memory_order_relaxed);
  return report;
}

}  // namespace embank
