// A piece of a batch whose rows are in host memory for a while: a batch of its own for the steps of
// a verb (store/batch), with positions from 0 on.
#ifndef EMBANK_STORE_DEVICE_BATCH_PIECE_H_
#define EMBANK_STORE_DEVICE_BATCH_PIECE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "base/memory/scratch.h"
#include "base/status.h"
#include "store/batch/batch.h"
#include "store/batch/shard_plan.h"
#include "store/batch/write_scope.h"
#include "store/payload/payload_list.h"

namespace embank {

// For one thread. One after the other, it serves all pieces of a batch.
class BatchPiece {
 public:
  // The outcome of a key without one.
  static constexpr uint8_t kNoOutcome = 0;

  // Allocates space for a piece of so many keys. kResourceExhausted.
  Status Allocate(Table* table, size_t keys_max);

  // Removes all keys, for another piece.
  void Clear();
  bool is_full() const { return size_ == keys_.values().size(); }
  size_t size() const { return size_; }
  KeySpan keys() const { return KeySpan(keys_.values()).first(size_); }
  // Adds a key; `number` is the caller's.
  void Add(Key key, uint32_t number);
  uint32_t number(size_t i) const { return numbers_.values()[i]; }
  // The outcome of a key, after Run or Read; may be changed.
  uint8_t& outcome(size_t i) { return outcomes_.values()[i]; }
  // The rows of the piece in device memory, by their positions in it.
  PayloadList& payloads() { return payloads_; }

  // Calls body(piece, group) for each shard that has keys, as Batch::Share does. The batch is
  // changed in the scope: if it is done in pieces, this is one of them.
  void Run(WriteScope* scope, FunctionRef<void(Batch*, const ShardGroup&)> body);
  // Calls body(piece) once.
  void Read(FunctionRef<void(Batch*)> body);

  // Refusals of the last Run by the index.
  uint64_t without_place() const { return without_place_; }
  // The rows that the last Run or Read of a lookup found, by tier.
  const std::array<uint64_t, kTiers>& found_in() const { return found_in_; }

 private:
  Table* table_ = nullptr;
  size_t size_ = 0;
  uint64_t without_place_ = 0;
  std::array<uint64_t, kTiers> found_in_ = {};
  Scratch<Key, kInlineKeys> keys_;
  Scratch<uint32_t, kInlineKeys> numbers_;
  Scratch<uint8_t, kInlineKeys> outcomes_;
  ShardPlan plan_;
  PayloadList payloads_;
};

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_BATCH_PIECE_H_
