// A model of the link between host and device, for benchmarks without a device. Bytes go one after
// the other at a fixed rate. The latency counts from the moment that work is enqueued, so that work
// enqueued together has it once. Time on the link passes beside the host's own.
#ifndef EMBANK_GPU_TWIN_LINK_H_
#define EMBANK_GPU_TWIN_LINK_H_

#include <cstdint>

#include "base/threads/clock.h"
#include "base/threads/mutex.h"

namespace embank {

// Thread-safe.
class TwinLink {
 public:
  // The clock outlives this. bytes_per_second == 0: there is no model, and nothing takes time.
  TwinLink(const Clock* clock, double bytes_per_second, uint64_t latency_ns)
      : clock_(clock), bytes_per_second_(bytes_per_second), latency_ns_(latency_ns) {}

  // Returns when so many bytes, which are enqueued now, have crossed the link. 0 bytes do not use
  // it.
  uint64_t Send(uint64_t bytes);
  // Waits for a moment that Send returned.
  void WaitUntil(uint64_t ready_ns);

 private:
  const Clock* const clock_;
  const double bytes_per_second_;
  const uint64_t latency_ns_;
  Mutex mutex_;
  ConditionVariable never_;  // nobody notifies: waits for it end by their time
  uint64_t free_from_ns_ EMBANK_GUARDED_BY(mutex_) = 0;
};

}  // namespace embank

#endif  // EMBANK_GPU_TWIN_LINK_H_
