// The bytes that travel between the ranks of a training, by what they are.
#ifndef EMBANK_BENCH_RANK_BYTES_H_
#define EMBANK_BENCH_RANK_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status_or.h"

namespace embank {

struct RankBytesOptions {
  std::vector<std::string> models = {"rmc2", "wide-deep"};
  std::vector<uint32_t> ranks = {2, 4};
  uint32_t batch = 1024;
};

// The bytes that a rank sends to others in a step, the mean of steps and ranks.
struct RankBytesFigure {
  std::string model;
  uint32_t ranks = 0;
  double counts = 0.0;
  double ids = 0.0;  // and touches
  double rows = 0.0;
  double sums = 0.0;  // of gradients of rows
  double dense = 0.0;
  double vote = 0.0;
  double exchanges = 0.0;

  double all() const { return counts + ids + rows + sums + dense + vote; }
};

// Trains steps of the schema "criteo-kaggle" with a twentieth of its ids on local ranks, and counts
// what their exchanges send. INVALID_ARGUMENT: there is no such model, or the slices do not suit
// the ranks. The statuses of Trainer::Open and Step.
StatusOr<std::vector<RankBytesFigure>> RunRankBytes(const RankBytesOptions& options);

}  // namespace embank

#endif  // EMBANK_BENCH_RANK_BYTES_H_
