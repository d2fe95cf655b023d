// Samples and messages of a worker, by what has become of them.
#ifndef EMBANK_TRAIN_HYBRID_WORKER_COUNTS_H_
#define EMBANK_TRAIN_HYBRID_WORKER_COUNTS_H_

#include <cstdint>

namespace embank {

struct WorkerCounts {
  uint64_t taken = 0;             // samples that the buffer took
  uint64_t done = 0;              // samples whose gradients were applied, or that were trained
  uint64_t lost = 0;              // samples that were given up
  uint64_t refused = 0;           // samples that came while the buffer was full
  uint64_t dropped_messages = 0;  // that came again, or after their slice had ended
  uint64_t samples_most = 0;      // in the buffer at one moment
  uint64_t row_bytes = 0;         // of the rows of pooled vectors: what they would take unpooled

  WorkerCounts& operator+=(const WorkerCounts& other) {
    taken += other.taken;
    done += other.done;
    lost += other.lost;
    refused += other.refused;
    dropped_messages += other.dropped_messages;
    samples_most = samples_most > other.samples_most ? samples_most : other.samples_most;
    row_bytes += other.row_bytes;
    return *this;
  }
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_WORKER_COUNTS_H_
