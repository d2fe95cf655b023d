// Hits of device memory by unique ids, in a sample of the lookups. A batch names its hottest keys
// many times. PICASSO (Zhang et al., ICDE 2022) counts each key of a batch once, because a trainer
// that unites equal keys first asks for it once.
#ifndef EMBANK_STORE_PAYLOAD_UNIQUE_HITS_H_
#define EMBANK_STORE_PAYLOAD_UNIQUE_HITS_H_

#include <atomic>
#include <cstdint>

#include "base/types.h"
#include "store/payload/payload_list.h"

namespace embank {

// Thread-safe.
class UniqueHits {
 public:
  // A batch of 8,192 keys is sorted in half a millisecond; it is looked up in about one. So the
  // sample costs less than a hundredth.
  static constexpr uint64_t kBatchesPerSample = 64;

  UniqueHits() = default;
  UniqueHits(const UniqueHits&) = delete;
  UniqueHits& operator=(const UniqueHits&) = delete;

  // Counts the keys of a lookup and those of its rows that are in device memory, if the batch is
  // one of the sample. Without memory for it, the batch is left out.
  void Count(KeySpan keys, PayloadList* payloads);

  // Distinct keys of the batches in the sample; of them those whose rows were in device memory.
  uint64_t keys() const { return keys_.load(std::memory_order_relaxed); }
  uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> batches_{0};
  std::atomic<uint64_t> keys_{0};
  std::atomic<uint64_t> hits_{0};
};

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_UNIQUE_HITS_H_
