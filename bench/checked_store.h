// A store that runs the batches of a trainer, and an oracle that runs them, too. Every answer of
// the store is compared with the oracle's, bit for bit.
#ifndef EMBANK_BENCH_CHECKED_STORE_H_
#define EMBANK_BENCH_CHECKED_STORE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "bench/c_store.h"
#include "bench/latency_histogram.h"
#include "bench/options.h"
#include "bench/oracle_check.h"
#include "bench/run_slices.h"

namespace embank {

// One verb of the store: its calls alone, without the oracle.
struct VerbTiming {
  uint64_t positions = 0;
  uint64_t nanoseconds = 0;
  LatencyHistogram latency;

  double PositionsPerSecond() const;
};

// Element i of the gradient at a position: in [-0.5, 0.5), the same on every machine.
float ReplayGradient(uint64_t key, uint64_t position, uint32_t i);

// One thread.
class CheckedStore {
 public:
  // Batches have at most `batch` keys. `keeps_heat`: the heat of scanned rows is compared too.
  CheckedStore(const TableShape& shape, uint64_t batch, uint64_t seed, bool keeps_heat);

  // Sets the store; it has run the same batches as the oracle.
  void Take(CStore store) { store_ = std::move(store); }
  void Close() { store_ = {}; }
  const CStore& store() const { return store_; }

  // Looks a batch up, creating rows, and applies its gradients, if there is an optimizer. Returns
  // the status of a failed call of the store. A difference is no error: see check().
  Status RunBatch(KeySpan keys);
  // Does the same, and returns its duration.
  StatusOr<RunSlice> RunTimedBatch(KeySpan keys);
  // Does the same for the oracle alone: the store has run the batch already.
  Status Follow(KeySpan keys);
  // Compares all rows. Reports the scanned part to `progress`.
  Status Scan(FunctionRef<void(double)> progress);

  const OracleCheck& check() const { return check_; }
  const VerbTiming& lookup() const { return lookup_; }
  const VerbTiming& gradients() const { return gradients_timing_; }
  const VerbTiming& scan() const { return scan_; }
  // Keys of batches so far.
  uint64_t positions() const { return positions_; }
  // CRC-32C of all answered rows in order.
  uint32_t digest() const { return digest_; }

 private:
  bool HasGradients() const { return shape_.optimizer != Optimizer::kNone; }
  void MakeGradients(KeySpan keys);
  Status CompareScanned(KeySpan keys);

  const TableShape shape_;
  const uint64_t batch_;
  const bool keeps_heat_;
  CStore store_;
  OracleCheck check_;
  VerbTiming lookup_;
  VerbTiming gradients_timing_;
  VerbTiming scan_;
  uint64_t positions_ = 0;
  uint32_t digest_ = 0;

  // One batch.
  std::vector<Key> keys_;
  std::vector<std::byte> rows_;
  std::vector<float> gradients_;
  std::vector<float> state_;
  std::vector<uint32_t> heat_;
  std::vector<uint8_t> outcomes_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_CHECKED_STORE_H_
