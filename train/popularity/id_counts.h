// The number of times that each id of a table occurs.
#ifndef EMBANK_TRAIN_POPULARITY_ID_COUNTS_H_
#define EMBANK_TRAIN_POPULARITY_ID_COUNTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"

namespace embank {

struct IdCount {
  Key id = 0;
  uint32_t count = 0;

  bool operator==(const IdCount&) const = default;
};

// FAE's embedding logger (Adnan et al. 2021, section 4.1.2): exact counts. A count stays at 2^32 -
// 1. Add is thread-safe; the others are for when no thread adds.
class IdCounts {
 public:
  IdCounts();
  IdCounts(IdCounts&& other) noexcept;
  IdCounts& operator=(IdCounts&& other) noexcept;
  ~IdCounts();

  // Counts each id once for each time that it occurs.
  void Add(std::span<const Key> ids);

  // The number of ids that were added.
  uint64_t occurrences() const;
  // The number of different ids.
  uint64_t size() const;
  // Bytes of the table: at most 64 for each different id, and 8 KiB for each of 16 shards with ids.
  uint64_t memory_bytes() const;
  // Returns the counts, sorted by id.
  std::vector<IdCount> Entries() const;

 private:
  class Shard;

  std::unique_ptr<Shard[]> shards_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_POPULARITY_ID_COUNTS_H_
