// The one index of the store: (table, key) -> location of the row's home. Keys are not kept in it:
// an entry is {tag 24 | tier 2 | location 38}, and the key and table are verified in the row.
//
//   hash:   | shard 6 | ... of the range 12 | place in the shard | ...          | tag 24 |
//            63     58                   52                                     23     0
//
// A shard is an open-addressed array, probed linearly. Places grow with the hash, so that a logical
// range is one run of entries, whatever the size of the array: scans go by range, and a growing
// shard does not disturb them. Each shard has a lock; the caller holds it (docs/threading.md).
#ifndef EMBANK_STORE_KEY_INDEX_H_
#define EMBANK_STORE_KEY_INDEX_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/aligned_buffer.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "tiers/dram_tier.h"
#include "tiers/row_header.h"

namespace embank {

// What identifies a row. hash == HashKey(hash of the table's name, key).
struct RowId {
  TableId table;
  Key key;
  KeyHash hash;
};

class KeyIndex {
 public:
  static constexpr uint32_t kShardBits = 6;
  static constexpr uint32_t kShardCount = 1u << kShardBits;

  // One shard; its lock guards the shard's entries and the rows that they name.
  struct Shard {
    Mutex mutex;
    AlignedBuffer entries ABSL_GUARDED_BY(mutex);
    uint64_t rows ABSL_GUARDED_BY(mutex) = 0;
  };

  // kResourceExhausted. The tier, whose rows are verified, source and budget must outlive it.
  static absl::StatusOr<std::unique_ptr<KeyIndex>> Create(MemorySource* source,
                                                          MemoryBudget* budget, DramTier* tier);

  // Tells which name hash a table id stands for; before its first row.
  void SetTableHash(TableId table, uint64_t table_hash) { table_hashes_[table] = table_hash; }

  static uint32_t ShardOf(KeyHash hash) { return static_cast<uint32_t>(hash >> (64 - kShardBits)); }
  Shard* shard(uint32_t i) { return &shards_[i]; }

  // The row's location, or kNoLocation.
  Location Find(const Shard& shard, const RowId& id) const ABSL_SHARED_LOCKS_REQUIRED(shard.mutex);

  // Makes sure that the next Insert has room. kResourceExhausted: no memory to grow; the shard is
  // as it was.
  absl::Status ReserveOne(Shard* shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Adds a row that is not there, after ReserveOne.
  void Insert(Shard* shard, const RowId& id, Location location)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Takes a row out and returns its location, or kNoLocation.
  Location Erase(Shard* shard, const RowId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Calls `visit` for every row of a table in a shard, and takes out those for which it says true.
  void VisitTable(Shard* shard, TableId table, absl::FunctionRef<bool(Location)> visit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Appends the keys of a table whose hashes lie in a logical range; `shard` is the range's.
  void CollectRange(const Shard& shard, uint32_t range, TableId table, std::vector<Key>* keys) const
      ABSL_SHARED_LOCKS_REQUIRED(shard.mutex);

  // Bytes of memory taken. Thread-safe; takes the locks of the shards in turn.
  uint64_t memory_bytes();

  // An upper bound of what an index of `rows` rows takes, and beyond that while it grows with
  // `threads` threads. 0 rows: of an empty one.
  static uint64_t EstimateBytes(uint64_t rows);
  static uint64_t EstimateGrowthBytes(uint64_t rows, uint32_t threads);

 private:
  KeyIndex(MemorySource* source, MemoryBudget* budget, DramTier* tier, AlignedBuffer table_hashes);

  absl::Status Grow(Shard* shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void RemoveAt(Shard* shard, uint64_t place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  RowHeader* HeaderOf(uint64_t entry) const;
  KeyHash HashOf(const RowHeader& header) const;

  MemorySource* const source_;
  MemoryBudget* const budget_;
  DramTier* const tier_;
  AlignedBuffer table_hashes_memory_;
  const std::span<uint64_t> table_hashes_;  // by table id
  std::vector<Shard> shards_;
};

}  // namespace embank

#endif  // EMBANK_STORE_KEY_INDEX_H_
