// The samples that a worker waits for, by id. The windows of workers are its limit
// (slice_window.h).
#ifndef EMBANK_TRAIN_HYBRID_SAMPLE_BUFFER_H_
#define EMBANK_TRAIN_HYBRID_SAMPLE_BUFFER_H_

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/hash.h"
#include "train/hybrid/sample_id.h"
#include "train/roles/role_plan.h"

namespace embank {

// Where the features of a sample are: its place in the message of its slice.
struct SamplePlace {
  SliceKey key;
  uint32_t place = 0;
};

// One thread, as its worker.
class SampleBuffer {
 public:
  // Adds a sample. Stops the process if the id is there already.
  void Insert(SampleId id, const SamplePlace& place);
  std::optional<SamplePlace> Find(SampleId id) const;
  // Removes a sample, and returns its place if it was there.
  std::optional<SamplePlace> Take(SampleId id);

  // The number of samples.
  uint64_t samples() const { return places_.size(); }

 private:
  struct MixHash {
    size_t operator()(SampleId id) const { return Mix(id); }
  };

  std::unordered_map<SampleId, SamplePlace, MixHash> places_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_SAMPLE_BUFFER_H_
