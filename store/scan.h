// A walk over all rows of a table, by logical ranges of the key hash: the index may grow and rows
// may come and go meanwhile.
#ifndef EMBANK_STORE_SCAN_H_
#define EMBANK_STORE_SCAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "store/table.h"

namespace embank {

// For one thread at a time. Holds no lock between calls, and in memory only the keys of one of the
// 4,096 ranges.
class Scan {
 public:
  explicit Scan(Table* table) : table_(table) {}

  const Table& table() const { return *table_; }

  // Copies the next rows, at most keys.size() (> 0) of them, and returns how many; 0: the end.
  // kFailedPrecondition: the table was dropped. kResourceExhausted: no memory for a range's keys;
  // the call may be repeated. kDataLoss: records cannot be read from the log, of this table's rows
  // or of another's; the next call goes on without them.
  absl::StatusOr<uint64_t> Next(std::span<Key> keys, RowSpan rows);

 private:
  absl::Status CollectRange();
  absl::Status CollectFreely();
  absl::Status CollectHeld();
  absl::Status Unread(uint64_t records) const;
  uint64_t DeadSegments() const;
  KeyIndex::Shard* ShardOfRange() const;
  void CollectEntries(KeyIndex::Shard* shard) ABSL_SHARED_LOCKS_REQUIRED(shard->mutex);
  void AddRecord(std::span<const std::byte> record);
  void AddIfMine(TableId table, Key key);
  absl::Status CopyPending(std::span<Key> keys, RowSpan rows, uint64_t* copied);
  absl::Status Damage(Key key) const;

  Table* const table_;
  uint32_t next_range_ = 0;
  std::vector<Key> pending_;  // keys of the range before next_range_
  size_t pending_done_ = 0;
  std::vector<Location> logged_;  // the range's rows that are in the log
  absl::Status damage_;           // not told yet
};

}  // namespace embank

#endif  // EMBANK_STORE_SCAN_H_
