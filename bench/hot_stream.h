// The batches of a simulation of hot rows: a Zipf stream that may drift, or a key trace.
#ifndef EMBANK_BENCH_HOT_STREAM_H_
#define EMBANK_BENCH_HOT_STREAM_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/hot_policy.h"

namespace embank {

// One thread.
class HotStream {
 public:
  struct Shape {
    uint32_t rows = 1'000'000;
    double skew = 1.05;  // Zipf's exponent
    uint64_t batch = 8192;
    // Behind this iteration every second rank of the top fifth, the first one included, swaps its
    // id with a rank of the other four fifths. 0: there is no drift.
    uint64_t drift_at = 0;
    uint64_t seed = 1;
  };

  // A Zipf stream whose ids 0 .. rows - 1 are in no order of popularity. INVALID_ARGUMENT: the
  // statuses of ZipfSampler.
  static StatusOr<std::unique_ptr<HotStream>> Zipf(const Shape& shape);
  // The positions of a trace: ids below `rows`.
  static std::unique_ptr<HotStream> Trace(std::vector<uint32_t> positions, uint32_t rows,
                                          uint64_t batch);
  virtual ~HotStream() = default;

  // The next batch, until the next call. Its last batch of a trace may be short; an empty one is
  // behind its end.
  const HotBatch& Next();

  // Ids by probability, highest first: true ones of a Zipf stream, those of the whole trace. The
  // order of a Zipf stream is another one from the drift on.
  std::span<const uint32_t> order() const { return order_; }
  uint32_t rows() const { return rows_; }

 protected:
  HotStream(uint32_t rows, uint64_t batch) : rows_(rows), ids_(batch), number_of_(rows) {}

  // Fills ids_, and makes it shorter at the end of the stream.
  virtual void Fill(uint64_t iteration, std::vector<uint32_t>* ids) = 0;

  std::vector<uint32_t> order_;

 private:
  const uint32_t rows_;
  HotBatch batch_{};
  uint64_t iteration_ = 0;
  std::vector<uint32_t> ids_;
  std::vector<uint32_t> distinct_;
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> number_of_;  // by id: 1 + its place in distinct_; 0: not in this batch
};

}  // namespace embank

#endif  // EMBANK_BENCH_HOT_STREAM_H_
