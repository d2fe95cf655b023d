#include "bench/peer_rows.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/hash.h"
#include "base/status_macros.h"
#include "bench/table_options.h"
#include "store/placement/heat_clock.h"
#include "store/table/table.h"

namespace embank {
namespace {

UpdateRule RuleOf(const embank_table_options& options) {
  return {.learning_rate = options.learning_rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .epsilon = options.epsilon,
          .weight_decay = options.weight_decay,
          .initial_accumulator = options.initial_accumulator};
}

Initializer InitializerOf(const embank_table_options& options) {
  return {static_cast<InitializerKind>(options.initializer), options.init_a, options.init_b};
}

}  // namespace

StatusOr<std::unique_ptr<PeerRows>> PeerRows::Create(const EngineConfig& config) {
  auto rows = std::unique_ptr<PeerRows>(
      new PeerRows(config, TableSeed(config.seed, TableHash(kTableName))));
  const uint64_t address_bytes = std::min(PhysicalMemoryBytes(), DramTier::kAddressBytesMax);
  EMBANK_ASSIGN_OR_RETURN(rows->tier_, DramTier::Create(SystemMemorySource(), &rows->budget_,
                                                        &rows->epochs_, address_bytes));
  rows->slot_class_ = rows->tier_->AddClass(rows->layout_.row_bytes);
  return rows;
}

PeerRows::PeerRows(const EngineConfig& config, uint64_t table_seed)
    : layout_(MakeRowLayout(config.shape.dim, config.shape.value_type, config.shape.optimizer)),
      rule_(RuleOf(MakeTableOptions(config.shape))),
      initializer_(InitializerOf(MakeTableOptions(config.shape))),
      table_seed_(table_seed) {}

void PeerRows::MakeRow(Key key, std::byte* row) const {
  *layout_.Header(row) = {key, 0, PackUsage(0, 0, HeatEpochNow())};
  InitializeVector(initializer_, table_seed_, key, layout_.value_type, layout_.dim,
                   layout_.Vector(row));
  ResetState(layout_, rule_, row);
}

void PeerRows::CountHeat(uint64_t positions) {
  const uint64_t limit = HeatEpochPositions(rows_.load(std::memory_order_relaxed));
  const uint64_t sum = heat_positions_.fetch_add(positions, std::memory_order_relaxed) + positions;
  if (sum < limit) return;
  heat_positions_.store(0, std::memory_order_relaxed);
  heat_epoch_.fetch_add(1, std::memory_order_relaxed);
}

PeerRows::NewSlots::~NewSlots() {
  if (left_ > 0) rows_->tier_->Free(rows_->slot_class_, std::span(slots_).first(left_));
  rows_->rows_.fetch_add(used_, std::memory_order_relaxed);
}

Location PeerRows::NewSlots::Take() {
  if (left_ == 0) {
    left_ = rows_->tier_->Allocate(rows_->slot_class_, slots_);
    std::reverse(slots_.begin(), slots_.begin() + static_cast<ptrdiff_t>(left_));
  }
  if (left_ == 0) return kNoLocation;
  ++used_;
  return slots_[--left_];
}

}  // namespace embank
