// The scope of a batch that changes rows. Every verb that changes rows has one:
//
//   admit    space in the log for rows that become dirty, memory for the index and the log; it may
//            wait for a checkpoint
//   change   bodies run shard by shard, under a write guard of the gate: no barrier of a checkpoint
//            comes between two shards of a batch, and no row comes to device memory or leaves it
//   settle   the batch pays its part of compaction, of moving pages and of forgetting
//
// Several batches that change rows together are admitted one by one, change under one ChangeGuard,
// and are settled one by one.
#ifndef EMBANK_STORE_BATCH_WRITE_SCOPE_H_
#define EMBANK_STORE_BATCH_WRITE_SCOPE_H_

#include <array>
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/status.h"
#include "store/batch/batch.h"
#include "store/batch/shard_plan.h"
#include "store/gate/batch_gate.h"
#include "store/hot/hot_rows.h"
#include "store/index/key_index.h"

namespace embank {

// While one lives, no barrier of a checkpoint comes, and no row comes to device memory or leaves
// it.
class ChangeGuard {
 public:
  explicit ChangeGuard(const StoreParts& parts) : hot_(parts.hot), write_(parts.gate) {}
  ChangeGuard(const ChangeGuard&) = delete;
  ChangeGuard& operator=(const ChangeGuard&) = delete;

 private:
  const HotGuard hot_;
  const BatchGate::WriteGuard write_;
};

// For one thread.
class WriteScope {
 public:
  // Whether rows become dirty: erasures need no space in the log.
  enum class Need { kSpace, kNone };

  explicit WriteScope(const Batch& batch, Need need = Need::kSpace) : batch_(batch), need_(need) {}
  ~WriteScope();
  WriteScope(const WriteScope&) = delete;
  WriteScope& operator=(const WriteScope&) = delete;

  // Allocates scratch for the keys of the batch. kResourceExhausted.
  Status Allocate();

  // Admits all positions of the batch, or some of them, given in order, and calls `body` once for
  // each shard that has positions, as Batch::Share does. After Allocate, without locks.
  // If the store has device memory, it then calls `on_device`, which enqueues the batch's work on
  // rows there. Rows whose flush is pending were flushed before.
  using Body = FunctionRef<void(const ShardGroup&)>;
  using OnDevice = FunctionRef<Status()>;
  void ChangeAll(
      Body body, OnDevice on_device = [] { return OkStatus(); });
  void Change(
      std::span<const uint32_t> positions, Body body,
      OnDevice on_device = [] { return OkStatus(); });

  // Does the same for stores with device memory, with one call of `work`, on this thread, which has
  // the positions in groups and enqueues the work on rows in device memory, too. It holds no lock.
  using Work = FunctionRef<Status(ShardPlan*)>;
  void ChangeAllTogether(Work work);
  void ChangeTogether(std::span<const uint32_t> positions, Work work);

  // The parts of ChangeAll, for batches that change together: admits all positions, without a
  // guard; then changes them. Under a ChangeGuard of the caller's, in any thread. `others_bytes`:
  // space in the log that rows of the other batches need beside those of this one.
  void AdmitAll(uint64_t others_bytes = 0);
  void ChangeAdmitted(
      Body body, OnDevice on_device = [] { return OkStatus(); });

  // Pays the batch's debts, also if it only moved rows: a lookup, a prefetch. The last call,
  // without locks. Returns the status of the device: kUnavailable if it is lost.
  Status Settle();

 private:
  void RunByShard(Body body, OnDevice on_device);
  void Run(Work work);
  void Admit(uint64_t others_bytes = 0);
  void RunAdmitted(Work work);
  Status FlushHotRows();
  void MakeMemory();
  void EndPromises();

  const Batch& batch_;
  const Need need_;
  ShardPlan plan_;
  uint64_t changed_keys_ = 0;  // since Settle
  Status device_status_;
  // Rows that the index has memory for, by shard, until they are created.
  std::array<uint32_t, KeyIndex::kShardCount> promised_rows_ = {};
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_WRITE_SCOPE_H_
