// A graph of operations, run by threads: an operation begins when those before it have ended.
// PICASSO (Zhang et al. 2022), section III-C, K-Interleaving: operations of two groups that need
// the same resource never run at once.
//
//   group 0   memory ▓▓▓▓      I/O ▓▓▓▓▓▓▓▓
//   group 1             memory ▓▓▓▓      I/O ▓▓▓▓▓▓▓▓
//
// Operations of the link go one at a time, in the order of their addition, whichever are ready: so
// the exchanges of all ranks have one order. They have a thread of their own.
#ifndef EMBANK_TRAIN_PIPELINE_OPERATION_GRAPH_H_
#define EMBANK_TRAIN_PIPELINE_OPERATION_GRAPH_H_

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/threads/clock.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "train/pipeline/operation.h"
#include "train/pipeline/operation_trace.h"

namespace embank {

// Does one part of an operation. Several parts of it may run at once. Throws nothing but
// std::bad_alloc, which becomes RESOURCE_EXHAUSTED, and must not call ParallelFor of the graph's
// executor. `thread` is below the executor's concurrency.
using OperationBody = std::function<Status(uint32_t part, uint32_t thread)>;

// Called before each part of an operation, by the thread that does it: it may wait, as a slower
// link or disk would. Several calls of it may run at once. It must not throw.
using OperationHook = std::function<void(const OperationLabel& label, uint32_t part)>;

// The watchers of a graph that runs.
struct GraphWatch {
  OperationTrace* trace = nullptr;
  uint32_t first_thread = 0;            // the number of its first thread in the trace
  const OperationHook* hook = nullptr;  // outlives the run
};

// Built and run by one thread; it runs once.
class OperationGraph {
 public:
  using Id = uint32_t;

  // Adds an operation of so many parts, at least one, behind others that were added before.
  // Operations that are ready begin in the order of their addition, but those that compute begin
  // where no other one can.
  Id Add(const OperationLabel& label, uint32_t parts, std::span<const Id> before,
         OperationBody body);

  // Adds an operation that also waits for so many calls of Arrive.
  Id AddAwaiting(const OperationLabel& label, uint32_t arrivals, OperationBody body);
  // Tells an operation, which was added by AddAwaiting, that one thing it waits for is there.
  // Called by bodies of others.
  // When an operation fails, none waits any more.
  void Arrive(Id id);

  // Runs all operations and waits for them. When one fails, none begins any more. Returns the
  // status of the failed operation that was added first.
  Status Run(Executor* executor, const GraphWatch& watch = {});
  // Schedules all operations on this thread, as this many threads would on which a part took
  // `part_ns` of its label, and runs no body. Returns the time from the first begin to the last
  // end. A graph that is scheduled does not run.
  uint64_t Schedule(uint32_t threads, FunctionRef<uint64_t(const OperationLabel&)> part_ns);

 private:
  struct Operation {
    OperationLabel label;
    ResourceClass resource;
    uint32_t parts;
    OperationBody body;
    std::vector<Id> after = {};
    uint32_t waits_for = 0;  // operations and arrivals
    uint32_t arrivals = 0;   // that it waits for
    uint32_t begun = 0;      // parts
    uint32_t done = 0;
    uint64_t begin_ns = 0;
    Status status = {};
  };

  // The operations that a thread runs.
  enum class OperationsOf { kAll, kLink, kOthers };

  void Begin();
  void RunThread(uint32_t thread, OperationsOf of);
  Status RunPart(const Operation& operation, uint32_t part, uint32_t thread);
  // Returns the operation of which a part can begin, or null. Sets *part.
  Operation* Claim(OperationsOf of, uint32_t* part) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBegin(const Operation& operation) const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeReady(Id id) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(Operation* operation, const Status& status) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Operation* operation) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Operations of one resource that run now: all are of one group, but for those without one.
  struct Running {
    uint32_t operations = 0;
    uint32_t group = 0;
  };

  const Clock* const clock_ = SteadyClock();
  GraphWatch watch_;
  uint32_t number_ = 0;  // in the trace
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Operation> operations_;
  std::vector<Id> ready_ EMBANK_GUARDED_BY(mutex_);  // with parts that have not begun
  std::vector<Id> link_;                             // its operations, in order
  size_t link_ended_ EMBANK_GUARDED_BY(mutex_) = 0;
  std::array<Running, kResourceClasses> running_ EMBANK_GUARDED_BY(mutex_){};
  size_t ended_ EMBANK_GUARDED_BY(mutex_) = 0;
  bool has_failed_ EMBANK_GUARDED_BY(mutex_) = false;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_OPERATION_GRAPH_H_
