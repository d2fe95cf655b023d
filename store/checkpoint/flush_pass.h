// The flush pass of a checkpoint, which is also called its flush pass: the rows in memory that are
// owed to it (store/gate/batch_gate.h) go into the log, where a copy of each stays.
#ifndef EMBANK_STORE_CHECKPOINT_FLUSH_PASS_H_
#define EMBANK_STORE_CHECKPOINT_FLUSH_PASS_H_

#include "base/threads/clock.h"
#include "base/threads/executor.h"
#include "store/gate/batch_gate.h"
#include "store/index/key_index.h"
#include "store/placement/row_mover.h"
#include "tiers/dram/dram_tier.h"

namespace embank {

// What a flush pass works with; all of it outlives the flush pass.
struct FlushPassParts {
  KeyIndex* index;
  DramTier* tier;
  const TableDirectory* tables;
  BatchGate* gate;
  RowLogs* logs;
  Executor* executor;
  const Clock* clock;
};

// After a barrier: once it returns, nothing is owed. A shard's lock is held for few rows at a time.
// Beside batches it is this thread alone that flushes, at the gate's pace. When the log takes no
// more it stops, and the gate has the status (BatchGate::EndFlushPass). For how long it has rested.
uint64_t RunFlushPass(const FlushPassParts& parts);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_FLUSH_PASS_H_
