// Distinct ids by owner: Unique and Partition in one pass. PICASSO (Zhang et al. 2022), section
// III-B and figure 7.
//
//   ids      7    3    7    9    3    7      owner of 3: 0, of 7 and 9: 1
//   unique   3  | 7  9                       by owner, then by first occurrence
//   touches  2  | 3  1                       how often each occurs
//   index    1:0  0:0  1:0  1:1  0:0  1:0    of each id: its owner, and its place there
#ifndef EMBANK_TRAIN_PIPELINE_UNIQUE_PARTITION_H_
#define EMBANK_TRAIN_PIPELINE_UNIQUE_PARTITION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/types.h"

namespace embank {

// Where the row of an id is: its owner, and the place among the distinct ids of that owner.
struct IdPlace {
  static constexpr uint32_t kNumberBits = 24;

  uint32_t bits;

  constexpr uint32_t owner() const { return bits >> kNumberBits; }
  constexpr uint32_t number() const { return bits & ((1u << kNumberBits) - 1); }
};

// The distinct ids of a run of ids, in the caller's memory: as many places as there are ids.
struct UniqueIds {
  std::span<Key> unique;
  std::span<uint16_t> touches;  // at most 65,535
  std::span<IdPlace> index;
};

// One thread. It keeps its memory from call to call.
class UniquePartition {
 public:
  static constexpr uint64_t kIdsMax = uint64_t{1} << IdPlace::kNumberBits;

  // 1 to kOwnersMax owners.
  explicit UniquePartition(uint32_t owners = 1);

  // Writes the distinct ids of a table, by owner and then by first occurrence, with their touches,
  // and the place of each id. There are at most kIdsMax ids. Returns the number of distinct ones.
  uint32_t Run(KeySpan ids, uint64_t table_hash, const UniqueIds& unique_ids);

  // The number of distinct ids of each owner in the last call.
  std::span<const uint32_t> counts() const { return counts_; }

 private:
  struct Entry {
    Key id;
    uint32_t round;  // of the call that wrote it
    IdPlace place;
  };
  // Where there are several owners, the distinct ids of one.
  struct OwnerIds {
    std::vector<Key> unique;
    std::vector<uint16_t> touches;
  };

  void BeginRound(uint64_t ids);
  Entry* Find(Key id, KeyHash hash);
  uint32_t RunForOne(KeySpan ids, uint64_t table_hash, const UniqueIds& unique_ids);
  uint32_t JoinOwners(const UniqueIds& unique_ids);

  const uint32_t owners_;
  std::vector<Entry> entries_;  // a power of two, at most half of them used
  uint32_t round_ = 0;
  std::vector<uint32_t> counts_;
  std::vector<OwnerIds> of_owners_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_UNIQUE_PARTITION_H_
