// The parts of a store, for all that works with its rows.
#ifndef EMBANK_STORE_TABLE_STORE_CONTEXT_H_
#define EMBANK_STORE_TABLE_STORE_CONTEXT_H_

#include <span>

namespace embank {

class BatchGate;
class Clock;
class Compaction;
class DramTier;
class EpochTable;
class Executor;
class HeatClock;
class HeatSketch;
class KeyIndex;
class MemoryBudget;
class PageMover;
class PayloadRows;
class RowLogs;
class RowMemoryPool;
class StoreRows;
class TableDirectory;
class TopkFlush;
struct StoreOptions;

// The store has one, and sets each part when it has made it; from then on the part stays. All that
// is made with the context refers to it, and ends before it.
struct StoreContext {
  const StoreOptions* options;
  MemoryBudget* budget;  // of dram_bytes
  EpochTable* epochs;
  const Clock* clock;
  Executor* executor;
  DramTier* tier;
  KeyIndex* index;
  HeatClock* heat_clock;
  StoreRows* store_rows;
  RowMemoryPool* row_memory;   // taken under locks of shards
  RowMemoryPool* read_memory;  // taken without locks of shards, and held while a thread waits for
                               // one
  MemoryBudget* pins;          // limits the memory of pinned rows
  BatchGate* gate;
  TableDirectory* tables;
  RowLogs* logs;
  HeatSketch* heat_sketch;  // nullptr: there is no log
  // Those of the logs that change, the highest tier first.
  std::span<Compaction* const> compactions;
  PageMover* pages;       // nullptr: there is no log, or no limit of memory
  PayloadRows* payloads;  // nullptr: there is no device memory
  TopkFlush* topk_flush;  // nullptr: there is no device memory
};

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_STORE_CONTEXT_H_
