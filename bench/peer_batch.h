// A peer's batch on its way: keys hashed and grouped by shard, gradients of equal keys summed. The
// scratch is kept from batch to batch.
#ifndef EMBANK_BENCH_PEER_BATCH_H_
#define EMBANK_BENCH_PEER_BATCH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace embank {

// One per thread.
class PeerBatch {
 public:
  // Hashes the keys and groups their positions by shard, in order. shard_bits 0: one group.
  void Plan(KeySpan keys, uint32_t shard_bits);

  // The positions of one shard.
  std::span<const uint32_t> Group(uint32_t shard) const {
    return std::span(positions_).subspan(begin_[shard], begin_[shard + 1] - begin_[shard]);
  }
  Key KeyAt(uint32_t position) const { return keys_[position]; }
  KeyHash HashAt(uint32_t position) const { return hashes_[position]; }

  // Finds the distinct keys of a group; afterwards they are numbered in order of first appearance.
  void FindDistinct(std::span<const uint32_t> group);

  // The first position of each distinct key.
  std::span<const uint32_t> first_positions() const { return first_positions_; }

  // The sum of a distinct key's gradients (dim floats per position), in runs of 32 in order: it is
  // valid until the next call.
  std::span<float> Sum(uint32_t distinct, const float* gradients, uint32_t dim);

  // Calls visit(position) for every position of a distinct key, in order.
  template <typename Visit>
  void ForEachPosition(uint32_t distinct, Visit visit) const {
    for (uint32_t p = first_positions_[distinct]; p != kNoPosition; p = next_positions_[p])
      visit(p);
  }

 private:
  static constexpr uint32_t kNoPosition = 0xFFFFFFFF;

  KeySpan keys_;
  std::vector<KeyHash> hashes_;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> begin_;
  std::vector<uint32_t> next_;

  std::vector<uint32_t> table_;            // open addressing: 0, or 1 + number of a distinct key
  std::vector<uint32_t> first_positions_;  // by distinct key
  std::vector<uint32_t> last_positions_;   // by distinct key
  std::vector<uint32_t> next_positions_;   // by position: the next of the same key
  std::vector<float> sum_;
  std::vector<float> run_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_PEER_BATCH_H_
