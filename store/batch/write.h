// Writing and erasing whole rows.
#ifndef EMBANK_STORE_BATCH_WRITE_H_
#define EMBANK_STORE_BATCH_WRITE_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

class Batch;
class BatchKeys;
class PayloadList;
class WriteScope;
struct ShardGroup;

// The rows of an upsert, one for each key.
struct RowsToWrite {
  RowsToWrite(ConstRowSpan new_vectors)  // NOLINT: it is what most callers have
      : vectors(new_vectors) {}

  ConstRowSpan vectors;
  ConstRowSpan states = {};         // no data: those of new rows
  const uint32_t* heats = nullptr;  // nullptr: kept; 0 for a new row
};

// Writes rows, creating absent ones, and resets their optimizer state; the last of equal keys wins.
// Thread-safe; waits for locks of the index only.
// kFailedPrecondition: the table was dropped.
// kResourceExhausted: no memory for scratch; or keys are refused and `outcomes` is empty, and the
// rest was done.
// With states, the statuses of CheckStates, and nothing was done. With heats, kInvalidArgument: one
// is above kHeatMax, and nothing was done.
Status Upsert(Table* table, KeySpan keys, const RowsToWrite& rows, OutcomeSpan outcomes);

// Erases rows and frees their slots. Thread-safe. kFailedPrecondition; kResourceExhausted: no
// memory for scratch.
Status Erase(Table* table, KeySpan keys, OutcomeSpan outcomes);

// Erases all rows of a table that was marked as dropped; the footers of segments tell which rows of
// the log are the table's. No checkpoint is under way. Waits for locks of the index, and reads the
// log. kResourceExhausted, kDataLoss, the statuses of files: some rows are left, for another call.
Status EraseAll(Table* table);

// ---- the steps of an upsert, for callers whose rows are in device memory (store/device) ----

// Upserts the rows of a shard group. Notes rows in device memory in `payloads`, and leaves them as
// they are.
void UpsertGroup(Batch* batch, const ShardGroup& group, const UpdateRule& rule,
                 const RowsToWrite& rows, const BatchKeys& batch_keys, PayloadList* payloads);
// Upserts the rows of a list with all noted positions, in device memory: their vectors and states.
// Waits for the device; inside the payload gate, without locks.
Status UpsertPayloads(const Table& table, const UpdateRule& rule, const RowsToWrite& rows,
                      PayloadList* payloads);
// Counts an upsert that is done, pays its debts, and returns its status.
Status FinishUpsert(Batch* batch, WriteScope* scope, uint64_t begin_ns);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_WRITE_H_
