// The trace of operations: how many there were, and when each ran on which thread.
#ifndef EMBANK_TRAIN_PIPELINE_OPERATION_TRACE_H_
#define EMBANK_TRAIN_PIPELINE_OPERATION_TRACE_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/threads/mutex.h"
#include "train/pipeline/operation.h"

namespace embank {

// The place of an operation in its step.
struct OperationLabel {
  OperationKind kind;
  uint32_t pack = 0;         // of its step; 0 where it has none
  uint32_t group = 0;        // of its pack (train/pipeline/capacity.h)
  uint32_t micro_batch = 0;  // of its step; 0 where it has none
  uint64_t batch = 0;        // that of its step, counted from the first one of its pass
};

// A part of an operation, as one thread ran it. Nanoseconds of a steady clock.
struct OperationInterval {
  OperationLabel label;
  uint32_t operation;  // its number in its graph
  uint32_t graph;      // the number of its graph since the trace began, from 1 on
  uint32_t thread;
  uint64_t begin_ns;
  uint64_t end_ns;
};

// Thread-safe.
class OperationTrace {
 public:
  // Keeps intervals of this many graphs from now on, and forgets those before.
  void KeepIntervals(uint32_t graphs);

  // Called by a graph: when it begins, for each operation that ran, and for each part of one.
  // Graphs may run beside each other. BeginGraph returns the number of a graph.
  uint32_t BeginGraph();
  void CountOperation(OperationKind kind, uint64_t nanoseconds);
  void AddInterval(OperationInterval interval);

  // The operations of a kind that ran so far, and the time from the first part of each to its last.
  uint64_t operations(OperationKind kind) const;
  uint64_t operations() const;
  double seconds(OperationKind kind) const;
  std::vector<OperationInterval> intervals() const;

 private:
  mutable Mutex mutex_;
  std::array<uint64_t, kOperationKinds> operations_ EMBANK_GUARDED_BY(mutex_){};
  std::array<uint64_t, kOperationKinds> nanoseconds_ EMBANK_GUARDED_BY(mutex_){};
  uint32_t graphs_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint32_t graphs_max_ EMBANK_GUARDED_BY(mutex_) = 0;
  std::vector<OperationInterval> intervals_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_OPERATION_TRACE_H_
