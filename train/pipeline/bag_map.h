// The bags of each distinct id, for owners that sum the rows of bags: the lossless compression of
// indices of Persia (Lian et al. 2022), section 4.2.3.
//
//   bags     {7 3}    {7}  {9 7}     owner of 3: 0, of 7 and 9: 1
//   unique   3  | 7      9           as UniquePartition has them
//   touches  1  | 3      1
//   bags     0  | 0 1 2  2           of each occurrence: the number among the owner's bags
//   places   1:0 0:0  1:1  1:2       of each bag: its owners, and its numbers there
#ifndef EMBANK_TRAIN_PIPELINE_BAG_MAP_H_
#define EMBANK_TRAIN_PIPELINE_BAG_MAP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "train/pipeline/unique_partition.h"

namespace embank {

// The bags of a run of ids, in the caller's memory.
struct MappedBags {
  // In: where each bag ends in the run. Out: where its places end.
  std::span<uint32_t> ends;
  std::span<const float> weights;  // of each id; empty: all are 1
  // Out, for each occurrence: its bag, and its weight where there are some. The occurrences of an
  // id stand one behind the other, ids in the order of UniqueIds::unique.
  std::span<uint16_t> bags;
  std::span<float> weights_by_id;
  std::span<uint32_t> bag_counts;  // out: the bags of each owner
};

// One thread.
class BagMap {
 public:
  static constexpr uint32_t kBagsMax = 1u << 16;

  explicit BagMap(uint32_t owners) : first_(owners), last_(owners) {}

  // Maps a run of ids, of at most kBagsMax bags. UniquePartition has written `ids` and the counts
  // of each owner. The places of ids become those of bags. An id that occurs more than 65,535 times
  // becomes several ones, which counts and touches have, too.
  void Run(const UniqueIds& ids, std::span<uint32_t> counts, const MappedBags& bags);

 private:
  void CountOccurrences(const UniqueIds& ids, std::span<const uint32_t> counts);
  void SplitFrequent(const UniqueIds& ids, std::span<uint32_t> counts);

  std::vector<uint32_t> first_;        // of each owner: the number of its first distinct id
  std::vector<uint32_t> last_;         // of each owner: its last bag
  std::vector<uint32_t> occurrences_;  // of each distinct id
  std::vector<uint32_t> next_;         // of each: where its next occurrence goes
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_BAG_MAP_H_
