// The exchanges of a step over ranks, beside one MPI_Alltoallv of its rows.
#ifndef EMBANK_BENCH_RANK_EXCHANGE_H_
#define EMBANK_BENCH_RANK_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status_or.h"
#include "train/ranks/exchange.h"

namespace embank {

struct RankExchangeOptions {
  std::vector<uint32_t> dims = {16, 64};
  uint32_t samples = 8192;  // of a batch of all ranks
  uint32_t rounds = 301;
};

// The bytes are those of all ranks together; times are those of the slowest rank, medians of the
// rounds.
struct RankExchangeFigure {
  uint32_t dim = 0;
  uint64_t row_bytes = 0;  // to other ranks, in the mean of batches
  uint64_t id_bytes = 0;   // ids, touches and counts
  double rows_alone_us = 0.0;
  double step_us = 0.0;
  double ratio = 0.0;           // rows alone / step, the median of those of the rounds
  double ratio_of_least = 0.0;  // the fastest rows alone / the fastest step
  // The parts of a step on the first rank.
  double counts_us = 0.0;
  double ids_us = 0.0;
  double rows_us = 0.0;
  double rest_us = 0.0;  // lays out the parts, and copies ids and touches into them

  // The ratio that the bytes alone allow.
  double BytesRatio() const {
    return static_cast<double>(row_bytes) / static_cast<double>(row_bytes + id_bytes);
  }
};

// Begins MPI in this process, where mpirun started it. The statuses of OpenMpiExchange.
StatusOr<std::unique_ptr<Exchange>> JoinRanks();
// Ends MPI, behind the last exchange.
void LeaveRanks();

// A step: the ids of RankIds in 8 slices, their counts and touches go to the owners of their rows,
// and rows of any bytes come back. Nothing is looked up. The statuses of Exchange::Run.
StatusOr<std::vector<RankExchangeFigure>> RunRankExchange(const RankExchangeOptions& options,
                                                          Exchange* exchange);

}  // namespace embank

#endif  // EMBANK_BENCH_RANK_EXCHANGE_H_
