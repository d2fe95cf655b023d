// The samples that a worker waits for, by id: a concurrent map. It has 13 MB for up to some 262,000
// samples, and grows; the windows of workers are its limit (slice_window.h).
#ifndef EMBANK_TRAIN_HYBRID_SAMPLE_BUFFER_H_
#define EMBANK_TRAIN_HYBRID_SAMPLE_BUFFER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "train/hybrid/sample_id.h"
#include "train/roles/role_plan.h"

namespace embank {

// Where the features of a sample are: its place in the message of its slice.
struct SamplePlace {
  SliceKey key;
  uint32_t place = 0;
};

// Thread-safe.
class SampleBuffer {
 public:
  SampleBuffer();
  ~SampleBuffer();

  // Adds a sample. Stops the process if the id is there already.
  void Insert(SampleId id, const SamplePlace& place);
  std::optional<SamplePlace> Find(SampleId id) const;
  // Removes a sample, and returns its place if it was there: one of several calls gets it.
  std::optional<SamplePlace> Take(SampleId id);

  // The number of samples.
  uint64_t samples() const;

 private:
  struct Map;

  const std::unique_ptr<Map> map_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_SAMPLE_BUFFER_H_
