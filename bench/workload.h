// The keys of a kv run: every row once, and the stream of positions that ask for them.
#ifndef EMBANK_BENCH_WORKLOAD_H_
#define EMBANK_BENCH_WORKLOAD_H_

#include <cstdint>
#include <vector>

#include "base/status_or.h"
#include "base/types.h"
#include "bench/options.h"

namespace embank {

struct Workload {
  std::vector<Key> rows;       // distinct, in the order in which they are filled in
  std::vector<Key> positions;  // all of them among `rows`; phases go round and round
  bool trace_is_whole = true;  // false: longer than kPositionsMax, its beginning is used
};

// Positions kept in memory: 256 MiB of keys.
inline constexpr uint64_t kPositionsMax = uint64_t{1} << 25;

// How many positions a generated stream over `rows` rows has: `per_row` for each row, so that a
// uniform stream does not shrink the working set, within 2^22 and kPositionsMax; whole batches.
uint64_t StreamPositions(uint64_t rows, uint64_t batch, uint64_t per_row = 1);

// Generates the stream, or reads the trace, whose distinct keys are the rows then. The same for any
// number of cores, which share the work. Statuses of TraceReader, ZipfSampler and IdMapper.
// A cache sees the stream come again: what asks one needs several positions per row.
StatusOr<Workload> MakeWorkload(const KvOptions& options, uint64_t positions_per_row = 1);

}  // namespace embank

#endif  // EMBANK_BENCH_WORKLOAD_H_
