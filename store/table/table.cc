#include "store/table/table.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {

Status OpenedReadOnly() {
  return FailedPreconditionError(
      "the store was opened read-only (flags: READ_ONLY); it takes no changes");
}

Table::Table(const StoreContext& store, TableId id, std::string name, const TableOptions& options,
             uint64_t store_seed, SlotClass slot_class, RowMover* mover, RowForgetter* forgetter,
             uint64_t gradient_calls)
    : store_(store),
      id_(id),
      name_(std::move(name)),
      table_hash_(TableHash(name_)),
      table_seed_(TableSeed(store_seed, table_hash_)),
      options_(options),
      layout_(MakeRowLayout(options.dim, options.value_type, options.optimizer)),
      slot_class_(slot_class),
      mover_(mover),
      forgetter_(forgetter),
      rule_(options.rule),
      pins_(store.pins, layout_.row_bytes, store.options->pin_batches) {
  EMBANK_CHECK(id < kTablesMax);
  counters_.gradient_calls.store(gradient_calls, std::memory_order_relaxed);
}

TableOptions Table::options() const {
  TableOptions options = options_;
  options.rule = rule();
  return options;
}

Status Table::ChangeRule(FunctionRef<void(UpdateRule*)> change) {
  MutexLock lock(&rule_mutex_);
  TableOptions options = this->options();
  change(&options.rule);
  EMBANK_RETURN_IF_ERROR(Validate(options));
  rule_.Set(options.rule);
  return OkStatus();
}

void Table::InitializeVectorOf(Key key, std::byte* vector) const {
  InitializeVector(options_.initializer, table_seed_, key, layout_.value_type, layout_.dim, vector);
}

Status Table::CheckAlive() const {
  if (!dropped_.load(std::memory_order_acquire)) return OkStatus();
  return FailedPreconditionError(
      StrCat("table \"", name_, "\" was dropped; open or create it again"));
}

Status Table::CheckMayChange() const {
  EMBANK_RETURN_IF_ERROR(CheckAlive());
  return store_.options->read_only ? OpenedReadOnly() : OkStatus();
}

}  // namespace embank
