// Distinct ids by owner: Unique and Partition in one pass. PICASSO (Zhang et al. 2022), section
// III-B and figure 7.
//
//   ids      7 3 7 9 3 7        owner of 3: 0, of 7 and 9: 1
//   unique   3 | 7 9            by owner, then by first occurrence
//   index    1 0 1 2 0 1        the place of each id in it
#ifndef EMBANK_TRAIN_PIPELINE_UNIQUE_PARTITION_H_
#define EMBANK_TRAIN_PIPELINE_UNIQUE_PARTITION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/types.h"

namespace embank {

// One thread. It keeps its memory from call to call.
class UniquePartition {
 public:
  static constexpr uint64_t kIdsMax = uint64_t{1} << 24;

  // 1 to kOwnersMax owners.
  explicit UniquePartition(uint32_t owners = 1);

  // Writes the distinct ids of a table to `unique`, by owner and then by first occurrence, and the
  // place of each id there to `index`. All three have the same size, at most kIdsMax. Returns the
  // number of distinct ids.
  uint32_t Run(KeySpan ids, uint64_t table_hash, std::span<Key> unique, std::span<uint32_t> index);

  // The number of distinct ids of each owner in the last call.
  std::span<const uint32_t> counts() const { return counts_; }

 private:
  struct Entry {
    Key id;
    uint32_t round;  // of the call that wrote it
    uint32_t place;
  };

  void BeginRound(uint64_t ids);
  Entry* Find(Key id, KeyHash hash);
  uint32_t RunForOne(KeySpan ids, uint64_t table_hash, std::span<Key> unique,
                     std::span<uint32_t> index);
  uint32_t JoinOwners(std::span<Key> unique, std::span<uint32_t> index);

  const uint32_t owners_;
  std::vector<Entry> entries_;  // a power of two, at most half of them used
  uint32_t round_ = 0;
  std::vector<uint32_t> counts_;
  std::vector<std::vector<Key>> unique_;  // of each owner, where there are several
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_UNIQUE_PARTITION_H_
