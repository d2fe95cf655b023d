// The flush pass of a checkpoint: rows in memory with a pending flush (store/gate/batch_gate.h) are
// appended to the log.
#ifndef EMBANK_STORE_CHECKPOINT_FLUSH_PASS_H_
#define EMBANK_STORE_CHECKPOINT_FLUSH_PASS_H_

#include <cstdint>

#include "store/table/store_context.h"

namespace embank {

// The work of a flush pass.
struct FlushPassReport {
  uint64_t rest_ns = 0;        // the time for which it rested
  uint64_t visited_slots = 0;  // slots that were dirty, at the barrier or since
  uint64_t flushed_rows = 0;   // rows that it appended to the log; batches append the others
};

// Runs the flush pass after a barrier. No flush is pending when it returns. Visits dirty slots
// alone. Holds a shard's lock for few rows at a time. Beside batches, this thread alone works, at
// the gate's pace. If the log takes no more rows, the pass stops, and the gate has the status
// (BatchGate::EndFlushPass).
FlushPassReport RunFlushPass(const StoreContext& store);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_FLUSH_PASS_H_
