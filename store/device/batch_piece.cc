#include "store/device/batch_piece.h"

#include "base/check.h"
#include "base/status_macros.h"
#include "store/placement/row_mover.h"

namespace embank {

Status BatchPiece::Allocate(Table* table, size_t keys_max) {
  table_ = table;
  EMBANK_RETURN_IF_ERROR(keys_.Allocate(keys_max));
  EMBANK_RETURN_IF_ERROR(numbers_.Allocate(keys_max));
  EMBANK_RETURN_IF_ERROR(outcomes_.Allocate(keys_max));
  EMBANK_RETURN_IF_ERROR(plan_.Allocate(keys_max, table->mover()->InLogMax(keys_max)));
  return payloads_.Allocate(table->store().payloads, keys_max);
}

void BatchPiece::Clear() {
  size_ = 0;
  without_place_ = 0;
  payloads_.Clear();
}

void BatchPiece::Add(Key key, uint32_t number) {
  EMBANK_CHECK(!is_full());
  keys_.values()[size_] = key;
  numbers_.values()[size_] = number;
  outcomes_.values()[size_++] = kNoOutcome;
}

void BatchPiece::Read(FunctionRef<void(Batch*)> body) {
  Batch batch(table_, keys_.values().first(size_), outcomes_.values().first(size_));
  body(&batch);
  found_in_ = batch.tally().found_in;
}

void BatchPiece::Run(WriteScope* scope, FunctionRef<void(Batch*, const ShardGroup&)> body) {
  Read([&](Batch* batch) {
    plan_.GroupAll(*batch);
    const auto change = [&](const ShardGroup& group) { body(batch, group); };
    if (scope->IsInPieces()) {
      scope->ChangePiece(*batch, &plan_, [&] { plan_.ForEachShard(*batch, change); });
    } else {
      plan_.ForEachShard(*batch, change);
    }
    without_place_ = batch->tally().without_place;
  });
}

}  // namespace embank
