#include "store/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace embank {
namespace {

// Every stamp is renewed once in 64 epochs, half of what they can count.
constexpr uint64_t kRenewalEpochs = 64;
// Buckets whose rows' stamps are renewed at once: 360 rows at most loads, 20 us.
constexpr uint64_t kRenewalBuckets = 64;

}  // namespace

Table::Table(const StoreParts& parts, TableId id, std::string name, const TableOptions& options,
             uint64_t store_seed, SlotClass slot_class)
    : parts_(parts),
      id_(id),
      name_(std::move(name)),
      table_hash_(TableHash(name_)),
      table_seed_(TableSeed(store_seed, table_hash_)),
      options_(options),
      layout_(MakeRowLayout(options.dim, options.value_type, options.optimizer)),
      slot_class_(slot_class),
      learning_rate_(options.rule.learning_rate) {}

UpdateRule Table::rule() const {
  UpdateRule rule = options_.rule;
  rule.learning_rate = learning_rate_.load(std::memory_order_relaxed);
  return rule;
}

void Table::InitializeVectorOf(Key key, std::byte* vector) const {
  InitializeVector(options_.initializer, table_seed_, key, layout_.value_type, layout_.dim, vector);
}

absl::Status Table::CheckAlive() const {
  if (!dropped_.load(std::memory_order_acquire)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("table \"", name_, "\" was dropped; open or create it again"));
}

void Table::CountHeat(uint64_t positions) {
  if (positions == 0) return;
  CountEpoch(positions);
  RenewHeatStamps(positions);
}

void Table::CountEpoch(uint64_t positions) {
  const uint64_t counted =
      heat_positions_.fetch_add(positions, std::memory_order_relaxed) + positions;
  if (counted < HeatEpochPositions(rows())) return;
  // Of several threads that see the epoch's end, the one that takes the count begins the next.
  uint64_t expected = counted;
  if (!heat_positions_.compare_exchange_strong(expected, 0, std::memory_order_relaxed)) return;
  heat_epoch_.fetch_add(1, std::memory_order_relaxed);
}

// Renews a few stamps whenever enough positions are counted, so that no batch does it for many.
void Table::RenewHeatStamps(uint64_t positions) {
  const uint64_t counted =
      positions_to_renew_.fetch_add(positions, std::memory_order_relaxed) + positions;
  if (counted < next_renewal_positions_.load(std::memory_order_relaxed)) return;
  if (!renewal_mutex_.TryLock()) return;  // who has it does it
  uint64_t due = PositionsPerRenewal();
  while (positions_to_renew_.load(std::memory_order_relaxed) >= due) {
    positions_to_renew_.fetch_sub(due, std::memory_order_relaxed);
    RenewSomeHeatStamps();
    due = PositionsPerRenewal();
  }
  next_renewal_positions_.store(due, std::memory_order_relaxed);
  renewal_mutex_.Unlock();
}

// Of the positions of 64 epochs, the share of the next renewal.
uint64_t Table::PositionsPerRenewal() const {
  const uint64_t buckets =
      KeyIndex::BucketsOf(*parts_.index->shard(KeyIndex::ShardOf(next_renewal_)));
  const uint64_t renewals = KeyIndex::kShardCount * buckets / kRenewalBuckets;
  return kRenewalEpochs * HeatEpochPositions(rows()) / renewals;
}

void Table::RenewSomeHeatStamps() {
  KeyIndex::Shard* const shard = parts_.index->shard(KeyIndex::ShardOf(next_renewal_));
  constexpr KeyHash kShardHashes = KeyHash{1} << (64 - KeyIndex::kShardBits);
  const KeyHash step = kShardHashes / KeyIndex::BucketsOf(*shard) * kRenewalBuckets;
  const KeyHash shard_last = next_renewal_ | (kShardHashes - 1);
  const KeyHash last = next_renewal_ + std::min(step - 1, shard_last - next_renewal_);
  const HeatEpoch now = heat_epoch();
  {
    ReaderMutexLock lock(&shard->mutex);
    parts_.index->VisitHashes(shard, next_renewal_, last, [&](Location location) {
      RowHeader* const header = layout_.Header(parts_.tier->Row(location));
      const RowMark mark = LoadMark(header);
      if (TableOf(mark.identity) == id_) TouchHeat(header, mark, now, 0);
    });
  }
  next_renewal_ = last + 1;  // wraps from the last shard to the first
}

}  // namespace embank
