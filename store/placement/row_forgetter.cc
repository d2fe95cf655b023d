#include "store/placement/row_forgetter.h"

#include "base/check.h"
#include "store/table/table.h"

namespace embank {
namespace {

// Rows of another shard that are looked at for one that is not the batch's.
constexpr uint64_t kLookedAtMax = 32;

}  // namespace

// Forgets a row that is in no order any more.
Location RowForgetter::Forget(KeyIndex::Shard* shard, uint32_t slot) {
  const Location location = orders_.notes().LocationOf(slot);
  RowHeader* const header = HeaderOf(slot);
  const Key key = LoadKey(header);
  Table& table = *store_.tables->Get(TableOf(LoadIdentity(header)));
  const RowId id = table.IdOf(key, table.HashOf(key));
  const Match match = store_.index->Find(id);
  EMBANK_CHECK(match.any() && match.location() == location);
  store_.index->Erase(shard, id.hash, match);
  RetireRow(header);
  rows_.CountEvicted();
  table.CountForgotten();
  return location;
}

// Takes the coldest slot that is not the batch's out of an order; up to `aside_max` that are the
// batch's are set aside.
uint32_t RowForgetter::Turn::RemoveColdest(Order* order, uint64_t aside_max) const {
  for (uint64_t aside = 0;; ++aside) {
    const uint32_t slot = order->Victim();
    if (slot == kNoVictim) return slot;
    const RowHeader* const header = forgetter_->HeaderOf(slot);
    const bool is_own =
        keys_ != nullptr && keys_->Has(TableOf(LoadIdentity(header)), LoadKey(header));
    if (!is_own) {
      order->Remove(slot);
      return slot;
    }
    if (aside == aside_max) return kNoVictim;
    order->PutAside(slot);
  }
}

bool RowForgetter::Turn::TakeSlot(Location* slot) {
  shard_->mutex.AssertHeld();
  // A shard that has much less than its part of memory gets it from those that have theirs.
  const uint64_t part = forgetter_->rows_.rows_in_memory() / KeyIndex::kShardCount;
  const uint64_t count = forgetter_->orders_.Of(shard_).count();
  if (count <= part / 2 && TakeFromAnother(part, /*own_too=*/false, slot)) return true;
  if (TakeOther(slot)) return true;
  if (!others_are_own_ && TakeFromAnother(0, /*own_too=*/false, slot)) return true;
  return TakeSlotHere(slot) || TakeFromAnother(0, /*own_too=*/true, slot);
}

bool RowForgetter::Turn::TakeSlotHere(Location* slot) {
  shard_->mutex.AssertHeld();
  if (TakeOther(slot)) return true;
  const uint32_t own = forgetter_->orders_.Of(shard_).RemoveAside();
  if (own == kNoVictim) return false;
  *slot = forgetter_->Forget(shard_, own);
  return true;
}

// That of a row of the shard which is not the batch's.
bool RowForgetter::Turn::TakeOther(Location* slot) {
  shard_->mutex.AssertHeld();
  const uint32_t coldest = RemoveColdest(&forgetter_->orders_.Of(shard_), UINT64_MAX);
  if (coldest == kNoVictim) return false;
  *slot = forgetter_->Forget(shard_, coldest);
  return true;
}

// A row of a shard with so many rows. Without waiting for locks: two might wait for each other.
bool RowForgetter::Turn::TakeFromAnother(uint64_t rows_min, bool own_too, Location* slot) {
  using Visited = SlotOrders::Visited;
  bool has_looked = false;
  const auto visit = [&](uint32_t number) {
    KeyIndex::Shard* const giver = forgetter_->store_.index->shard(number);
    if (!giver->mutex.TryLock()) return Visited::kInVain;
    Order& order = forgetter_->orders_.Of(giver);
    has_looked = has_looked || order.count() > 0;
    uint32_t coldest = kNoVictim;
    if (order.count() >= rows_min) coldest = RemoveColdest(&order, kLookedAtMax);
    if (coldest == kNoVictim && own_too) coldest = order.RemoveAside();
    if (coldest != kNoVictim) *slot = forgetter_->Forget(giver, coldest);
    order.PutBack();
    if (order.count() == 0) forgetter_->orders_.NoteEmpty(giver);
    giver->mutex.Unlock();
    return coldest != kNoVictim ? Visited::kTaken : Visited::kInVain;
  };
  if (forgetter_->orders_.VisitGivers(shard_->number, KeyIndex::kShardCount, visit)) return true;
  // Locks that others had say nothing.
  others_are_own_ = others_are_own_ || (rows_min == 0 && has_looked);
  return false;
}

}  // namespace embank
