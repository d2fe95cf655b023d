// The dense part of a step over ranks: buckets of sums that are exchanged beside the backward pass,
// and the same behind it.
#ifndef EMBANK_BENCH_RANK_DENSE_H_
#define EMBANK_BENCH_RANK_DENSE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "train/ranks/exchange.h"

namespace embank {

struct RankDenseOptions {
  std::vector<std::string> models = {"rmc2", "wide-deep"};
  std::vector<uint32_t> batches = {1024, 4096};
  uint32_t rounds = 101;
};

// Times are those of the slowest rank, medians of the rounds.
struct RankDenseFigure {
  std::string model;
  uint32_t batch = 0;  // samples of all ranks
  uint64_t parameters = 0;
  uint32_t buckets = 0;
  double beside_us = 0.0;
  double behind_us = 0.0;
  double ratio = 0.0;  // behind / beside, the median of those of the rounds
};

// Computes slices forward and backward, on one thread, and sums their gradients over the ranks.
// INVALID_ARGUMENT: there is no such model. The statuses of Exchange::Run.
StatusOr<std::vector<RankDenseFigure>> RunRankDense(const RankDenseOptions& options,
                                                    Exchange* exchange);

}  // namespace embank

#endif  // EMBANK_BENCH_RANK_DENSE_H_
