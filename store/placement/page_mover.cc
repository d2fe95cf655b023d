#include "store/placement/page_mover.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"
#include "store/placement/memory_plan.h"
#include "store/placement/page_rows.h"

namespace embank {
namespace {

// Up to so many bytes of a record, its bits and its part of a segment's objects take less than two
// bytes: 1/4 + 512 * 2,048 / 2^20 = 1.25.
constexpr uint64_t kLargeRecordBytes = 2048;
// Two segments' bits: 2 * (512 B + 87,000 / 4 B).
constexpr uint64_t kFewBytes = uint64_t{64} << 10;
// Rows of another size may take a page first.
constexpr uint32_t kGiveTriesMax = 4;

}  // namespace

void PageMover::AddClass(RowMover* mover) {
  MutexLock lock(&mutex_);
  classes_.push_back({mover, 0, 0});
}

// Bytes that the index and the log want and that are neither free nor in empty pages.
uint64_t PageMover::MissingBytes() const {
  const uint64_t wanted_bytes = store_.index->memory()->wanted_bytes() + store_.logs->slack_bytes();
  store_.tier->pool()->KeepFree(wanted_bytes);
  const uint64_t free_bytes = store_.budget->free_bytes() + store_.tier->pool()->empty_bytes();
  return wanted_bytes - std::min(wanted_bytes, free_bytes);
}

bool PageMover::ReserveIndexMemory(KeyIndex::Shard* shard) {
  for (;;) {
    {
      MutexLock lock(&shard->mutex);
      const uint64_t rows = shard->promised_rows.load(std::memory_order_relaxed);
      if (store_.index->capacity()->ReserveMore(shard, rows).ok() &&
          !shard->is_starved.load(std::memory_order_relaxed)) {
        return true;
      }
    }
    // Memory of emptied pages must not go to rows again.
    static_cast<void>(MissingBytes());
    MutexLock lock(&mutex_);
    const bool has_pages = store_.tier->pool()->committed_bytes() > RowBytesMin(budget_bytes());
    if (!has_pages || !EmptyPage(std::nullopt)) {
      store_.index->memory()->NoteExhausted();
      return false;
    }
    store_.tier->pool()->ReleaseEmptyPages();
  }
}

void PageMover::ReserveLogMemory(const RowMover& mover, uint64_t rows) {
  const uint64_t free_bytes = store_.budget->free_bytes();
  // A row with its part of a segment's objects takes less, unless it is large.
  if (mover.rows().record_bytes() < kLargeRecordBytes && free_bytes >= rows * 2 + kFewBytes) return;
  const SegmentGeometry geometry = SegmentGeometry::Of(
      mover.rows().record_bytes(), store_.logs->lowest().options().segment_bytes);
  const uint64_t bytes = LogMemory::BitBytesMax(geometry, rows);
  if (free_bytes < bytes) FreeBytes(bytes);
}

bool PageMover::FreeBytes(uint64_t bytes) {
  MutexLock lock(&mutex_);
  while (store_.budget->free_bytes() < bytes) {
    if (store_.tier->pool()->ReleaseEmptyPages() > 0) continue;
    if (!EmptyPage(std::nullopt)) return false;
  }
  return true;
}

bool PageMover::EmptyOnePage() {
  MutexLock lock(&mutex_);
  if (!EmptyPage(std::nullopt)) return false;
  store_.tier->pool()->ReleaseEmptyPages();
  return true;
}

bool PageMover::GivePage(SlotClass slot_class) {
  MutexLock lock(&mutex_);
  for (uint32_t tries = 0; tries < kGiveTriesMax && EmptyPage(std::nullopt); ++tries) {
    if (!store_.tier->GiveEmptyPage(slot_class)) continue;
    given_pages_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void PageMover::PayDebt(RowMover* mover, uint64_t keys) {
  const bool may_give = store_.tier->pool()->committed_bytes() > RowBytesMin(budget_bytes());
  if (MissingBytes() > 0 && may_give) {
    const uint64_t debt_bytes = keys * kBytesPerKey;
    if (credit_bytes_.fetch_add(debt_bytes) + debt_bytes >= DramTier::kPageBytes &&
        mutex_.TryLock()) {
      credit_bytes_.store(0);
      EmptyPage(std::nullopt);
      store_.tier->pool()->ReleaseEmptyPages();
      mutex_.Unlock();
    }
  }
  if (!mover->eviction().HasWantedPage() || !mutex_.TryLock()) return;
  Balance();
  mutex_.Unlock();
}

bool PageMover::EmptyPage(std::optional<SlotClass> slot_class) {
  // A page with a slot that another thread holds is left, and the next ones are tried.
  for (uint32_t tries = 0; tries < 2 * kLooksMax; ++tries) {
    const std::optional<uint32_t> page = store_.tier->ClosePage(slot_class);
    if (!page.has_value()) return false;
    bool goes_on = true;
    for (uint32_t looks = 0; goes_on && looks < kLooksMax && store_.tier->IsClosed(*page);
         ++looks) {
      goes_on = EmptyOnce(*page);
    }
    if (store_.tier->ReopenPage(*page)) {
      emptied_pages_.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    if (!goes_on) return false;
  }
  return false;
}

// False: the log takes no rows.
bool PageMover::EmptyOnce(uint32_t page) {
  const uint32_t slots = PageRows::SlotsOf(*store_.tier, page);
  for (uint32_t first = 0; first < slots; first += kSlotsAtOnce) {
    PageRows page_rows(*store_.tier, *store_.tables, page, first);
    const Status status = page_rows.ForEachShard(
        [&](RowMover* mover, uint32_t number, std::span<const RowInSlot> rows) {
          KeyIndex::Shard* const shard = store_.index->shard(number);
          // No barrier comes between the look at a row's pending flush and its move.
          const BatchGate::WriteGuard write_guard(store_.gate);
          MutexLock lock(&shard->mutex);
          for (const RowInSlot& row : rows) {
            if (!mover->eviction().Vacate(shard, row)) return NoMemory();
          }
          return OkStatus();
        });
    if (!status.ok()) return false;
  }
  return true;
}

// Rows of a class stay in memory for as long as it takes until all of them have made space for
// others. The class whose rows stay longest gives a page to that whose rows stay shortest.
void PageMover::Balance() {
  Class* taker = nullptr;
  Class* giver = nullptr;
  const auto stays_longer = [](const Class& a, const Class& b, uint64_t times) {
    return a.mover->rows().rows_in_memory() * b.recent_wanted >
           times * b.mover->rows().rows_in_memory() * a.recent_wanted;
  };
  for (Class& one : classes_) {
    const uint64_t wanted = one.mover->eviction().slots_wanted();
    EMBANK_CHECK(wanted >= one.noted_wanted);
    one.recent_wanted = one.recent_wanted / 2 + (wanted - one.noted_wanted);
    one.noted_wanted = wanted;
    one.mover->eviction().EndWantedPage();
    const bool wants = one.recent_wanted > 0;
    if (wants && (taker == nullptr || stays_longer(*taker, one, 1))) taker = &one;
    const bool has_pages = store_.tier->PagesOf(one.mover->rows().slot_class()) > 0;
    if (has_pages && (giver == nullptr || stays_longer(one, *giver, 1))) giver = &one;
  }
  if (taker == nullptr || giver == nullptr || taker == giver) return;
  if (!stays_longer(*giver, *taker, kLongerStay)) return;
  if (!EmptyPage(giver->mover->rows().slot_class())) return;
  if (store_.tier->GiveEmptyPage(taker->mover->rows().slot_class())) {
    given_pages_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace embank
