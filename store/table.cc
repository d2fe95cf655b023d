#include "store/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace embank {
namespace {

// Each shard's stamps are renewed once in 64 epochs, half of what they can count.
constexpr uint64_t kHeatRenewalEpochs = 64;

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
  const uint64_t counted =
      heat_positions_.fetch_add(positions, std::memory_order_relaxed) + positions;
  if (counted < HeatEpochPositions(rows())) return;
  // Of several threads that see the epoch's end, the one that takes the count begins the next.
  uint64_t expected = counted;
  if (!heat_positions_.compare_exchange_strong(expected, 0, std::memory_order_relaxed)) return;
  RenewHeatStamps(heat_epoch_.fetch_add(1, std::memory_order_relaxed) + 1);
}

void Table::RenewHeatStamps(uint64_t epoch) {
  static_assert(KeyIndex::kShardCount <= kHeatRenewalEpochs);
  KeyIndex::Shard* const shard =
      parts_.index->shard(static_cast<uint32_t>(epoch % kHeatRenewalEpochs));
  MutexLock lock(&shard->mutex);
  parts_.index->VisitRows(shard, [&](Location location) {
    RowHeader* const header = layout_.Header(parts_.tier->Row(location));
    if (TableOf(LoadIdentity(header)) == id_) {
      TouchHeat(header, LoadMark(header), static_cast<HeatEpoch>(epoch), 0);
    }
    return false;
  });
}

}  // namespace embank
