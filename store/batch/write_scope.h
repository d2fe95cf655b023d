// The scope of a batch that changes rows. Every verb that changes rows has one:
//
//   admit    space in the log for rows that become dirty, memory for the index and the log; it may
//            wait for a checkpoint
//   change   bodies run shard by shard, under a guard of the gate: no barrier of a checkpoint comes
//            between two shards of a batch, and no row comes to device memory or leaves it
//   settle   the batch pays its part of compaction, of moving pages and of forgetting
//
// A batch whose rows take more than an eighth of the memory that rows have is done in pieces; in a
// table that forgets, also one whose records take more than an eighth of ssd_bytes. Each piece has
// a part of every shard's positions, finds its rows in the log, and is admitted, changed and
// settled before the next. So a batch of any size makes its space as it goes, and is one batch for
// checkpoints all the same.
//
//   wait for space | guard: | piece: promote, admit, change, settle | piece | ... |
//
// Several batches that change rows together are admitted one by one, change under one ChangeGuard,
// and are settled one by one.
#ifndef EMBANK_STORE_BATCH_WRITE_SCOPE_H_
#define EMBANK_STORE_BATCH_WRITE_SCOPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/function_ref.h"
#include "base/memory/scratch.h"
#include "base/status.h"
#include "store/batch/batch.h"
#include "store/batch/shard_plan.h"
#include "store/gate/batch_gate.h"
#include "store/index/key_index.h"
#include "store/payload/payload_rows.h"

namespace embank {

// While one lives, no barrier of a checkpoint comes. No row comes to device memory or leaves it,
// either; but where each piece of a batch is admitted by itself, that holds while a piece changes
// its rows, so that rows may leave device memory between two pieces.
class ChangeGuard {
 public:
  // `in_pieces`: a batch under it is done in pieces.
  explicit ChangeGuard(const StoreContext& store, bool in_pieces = false) : in_pieces_(in_pieces) {
    if (in_pieces) {
      pieces_.emplace(store.gate);
    } else {
      payloads_.emplace(store.payloads);
      write_.emplace(store.gate);
    }
  }
  ChangeGuard(const ChangeGuard&) = delete;
  ChangeGuard& operator=(const ChangeGuard&) = delete;

  bool in_pieces() const { return in_pieces_; }

 private:
  const bool in_pieces_;
  std::optional<PayloadGuard> payloads_;
  std::optional<BatchGate::WriteGuard> write_;
  std::optional<BatchGate::PiecesGuard> pieces_;
};

// For one thread.
class WriteScope {
 public:
  // The rows of a batch need this: places in the index for new ones and space in the log, space in
  // the log for changes alone, or, for erasures, nothing.
  enum class Need { kPlaces, kSpace, kNone };

  explicit WriteScope(const Batch& batch, Need need = Need::kPlaces);
  ~WriteScope();
  WriteScope(const WriteScope&) = delete;
  WriteScope& operator=(const WriteScope&) = delete;

  // Allocates scratch for the keys of the batch. kResourceExhausted.
  Status Allocate();
  // The most keys of a piece.
  size_t PieceKeysMax() const;
  // Whether a batch of as many positions as it has keys is done in pieces.
  bool MayBeInPieces() const { return batch_.keys().size() > piece_keys_; }
  // Whether that holds of the positions that were grouped last.
  bool IsInPieces() const { return is_in_pieces_; }

  // Promotes the rows of the batch that are in the log, unless pieces will.
  void PromoteAll();

  // Positions of the batch, given in order; nullopt: all.
  using Positions = std::optional<std::span<const uint32_t>>;
  static constexpr std::nullopt_t kAll = std::nullopt;

  // Admits positions, and calls `body` once for each shard that has some, as Batch::Share does: in
  // pieces, once for each shard and piece. After Allocate, without locks.
  // If the store has device memory, it then calls `on_device`, which enqueues the work of the batch
  // or piece on rows there. Rows whose flush is pending were flushed before.
  using Body = ShardPlan::Body;
  using OnDevice = FunctionRef<Status()>;
  void Change(
      Positions positions, Body body, OnDevice on_device = [] { return OkStatus(); });

  // Does the same for stores with device memory, with one call of `work`, on this thread, which has
  // the positions in groups and enqueues the work on rows in device memory, too. It holds no lock.
  // In pieces, `work` calls ChangePiece for all its rows that are not in device memory.
  using Work = FunctionRef<Status(ShardPlan*)>;
  void ChangeTogether(Positions positions, Work work);

  // Admits a piece that the caller has made, itself a batch of the table, whose plan has groups;
  // calls `change`, and settles it.
  void ChangePiece(const Batch& piece, ShardPlan* plan, FunctionRef<void()> change);

  // The parts of Change, for batches that change together: admits positions without a guard.
  // Positions other than kAll are those of a batch that may be in pieces, and their rows are
  // promoted first, unless pieces will. Then it changes them, under a ChangeGuard of the caller's,
  // in any thread. `others_bytes`: space in the log that rows of the other batches need beside
  // those of this one. `choose`: as in ShardPlan::ForEachShard.
  void Admit(Positions positions, uint64_t others_bytes);
  void ChangeAdmitted(const ChangeGuard& guard, Body body, OnDevice on_device,
                      const ShardPlan::Choose* choose = nullptr);

  // kChanges: those of changes alone, because another scope has the positions.
  enum class Debts { kAll, kChanges };
  // Pays the batch's debts, also if it only moved rows: a lookup, a prefetch. The last call,
  // without locks. Returns the status of the device: kUnavailable if it is lost.
  Status Settle(Debts debts = Debts::kAll);

 private:
  void Group(Positions positions);
  void AdmitGroups(uint64_t others_bytes);
  void EnsureSpace(uint64_t keys, uint64_t others_bytes, bool waits);
  void RunAdmitted(Work work);
  void ChangeInPieces(Body body, OnDevice on_device);
  void Promote(const Batch& batch, ShardPlan* plan);
  void MakeMemory(const Batch& batch, ShardPlan* plan);
  void MakePlaces(const Batch& batch, ShardPlan* plan);
  void ForgetForPlaces();
  void EndPromises();
  void SettleKeys(uint64_t keys);

  const Batch& batch_;
  const Need need_;
  const uint64_t piece_keys_;
  ShardPlan plan_;
  bool is_in_pieces_ = false;
  uint64_t changed_keys_ = 0;  // since Settle
  uint64_t settled_keys_ = 0;  // by pieces
  Status device_status_;
  Scratch<Key, 1> promoted_keys_;  // of one piece
  // Rows that the index has memory for, by shard, until they are created.
  bool has_promises_ = false;
  std::array<uint32_t, KeyIndex::kShardCount> promised_rows_;  // if there are some
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_WRITE_SCOPE_H_
