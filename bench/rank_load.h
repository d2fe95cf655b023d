// The load of ranks: rows by the hash of their ids, and whole features on one rank each.
#ifndef EMBANK_BENCH_RANK_LOAD_H_
#define EMBANK_BENCH_RANK_LOAD_H_

#include <cstdint>
#include <vector>

namespace embank {

struct RankLoadOptions {
  uint32_t ranks = 8;
  uint32_t samples = 8192;  // of a batch
  uint32_t batches = 32;
};

// The lookups of the busiest rank / those of the mean rank.
struct RankLoad {
  double by_hash = 0.0;
  double by_feature = 0.0;
  double largest_share = 0.0;  // of the lookups, that of one id
};

// Each id of each sample is a lookup; or each distinct id of a slice, as in training.
struct RankLoadFigure {
  RankLoad all;
  RankLoad distinct;
};

// Features go to the ranks in turns, so that none has more than one more than another.
RankLoadFigure RunRankLoad(const RankLoadOptions& options);

}  // namespace embank

#endif  // EMBANK_BENCH_RANK_LOAD_H_
