// A batch on its way: its keys hashed and grouped by shard, so that a shard's lock is taken once,
// and what became of them.
#ifndef EMBANK_STORE_BATCH_H_
#define EMBANK_STORE_BATCH_H_

#include <array>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/aligned_buffer.h"
#include "base/mutex.h"
#include "store/table.h"

namespace embank {

// What became of keys: how many of each outcome, and where the first refusal and absence were.
struct OutcomeTally {
  std::array<uint64_t, 5> counts{};  // index: Outcome - 1
  uint64_t first_refused = ~uint64_t{0};
  uint64_t first_absent = ~uint64_t{0};

  uint64_t count(Outcome outcome) const { return counts[static_cast<size_t>(outcome) - 1]; }
  // Adds one position, or all that another tally has.
  void Add(Outcome outcome, uint64_t position);
  // As above.
  void Add(const OutcomeTally& other);
};

// The positions of one shard, in order; and the tally of what becomes of them.
struct ShardGroup {
  KeyIndex::Shard* shard;
  std::span<uint32_t> positions;
  OutcomeTally* tally;
};

class Batch {
 public:
  // Borrows the keys and the outcomes (empty or one per key). At most kBatchKeysMax keys.
  Batch(Table* table, KeySpan keys, OutcomeSpan outcomes)
      : table_(table), keys_(keys), outcomes_(outcomes) {}

  // Hashes and groups; kResourceExhausted: no scratch memory, nothing was done.
  absl::Status Plan();

  // Calls `body` once per shard that has keys; for large batches on several threads at once.
  void ForEachShard(absl::FunctionRef<void(const ShardGroup&)> body);

  // ForEachShard for verbs that make and remove no rows: calls `visit(position, row)`, row nullptr
  // for absent keys, with the shard's lock shared (ReadRows) or exclusive (WriteRows), and answers
  // FOUND or ABSENT.
  void ReadRows(absl::FunctionRef<void(uint32_t, std::byte*)> visit);
  void WriteRows(absl::FunctionRef<void(uint32_t, std::byte*)> visit);

  Table& table() const { return *table_; }
  RowId IdAt(uint32_t position) const { return table_->IdOf(keys_[position], hashes_[position]); }
  // Says what became of a position of the group.
  void Answer(const ShardGroup& group, uint32_t position, Outcome outcome) const {
    if (!outcomes_.empty()) outcomes_[position] = static_cast<uint8_t>(outcome);
    group.tally->Add(outcome, position);
  }

  // After ForEachShard: adds the tally and the time since `begin_ns` to the table's counters.
  void Publish(TableVerb verb, uint64_t begin_ns) const;
  uint64_t count(Outcome outcome) const { return tally_.count(outcome); }

  // What the call returns for refused or absent keys when the caller took no outcomes; else OK.
  absl::Status RefusedStatus() const;
  absl::Status AbsentStatus() const;

 private:
  void VisitGroup(const ShardGroup& group, absl::FunctionRef<void(uint32_t, std::byte*)> visit)
      ABSL_SHARED_LOCKS_REQUIRED(group.shard->mutex);

  // Small batches need no allocation.
  static constexpr size_t kInlineKeys = 64;

  Table* const table_;
  const KeySpan keys_;
  const OutcomeSpan outcomes_;
  Mutex tally_mutex_;
  OutcomeTally tally_;  // guarded by tally_mutex_ while ForEachShard runs
  Scratch<KeyHash, kInlineKeys> hashes_memory_;
  Scratch<uint32_t, kInlineKeys> positions_memory_;
  std::span<KeyHash> hashes_;
  std::span<uint32_t> positions_;
  std::array<uint32_t, KeyIndex::kShardCount + 1> group_begin_{};
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_H_
