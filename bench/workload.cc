#include "bench/workload.h"

#include <algorithm>
#include <memory>
#include <span>
#include <thread>

#include "absl/container/flat_hash_set.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/executor.h"
#include "bench/trace.h"
#include "train/generator/zipf.h"

namespace embank {
namespace {

constexpr uint64_t kPositionsMin = uint64_t{1} << 22;
constexpr uint64_t kChunk = uint64_t{1} << 16;

// Calls body(first, part) for parts of `values`, on all cores.
template <typename Body>
void ForParts(std::span<uint64_t> values, const Body& body) {
  const std::unique_ptr<Executor> executor =
      MakeThreadPool(std::max(1u, std::thread::hardware_concurrency()));
  const uint64_t chunks = (values.size() + kChunk - 1) / kChunk;
  executor->ParallelFor(static_cast<uint32_t>(chunks), [&](uint32_t chunk) {
    const uint64_t first = chunk * kChunk;
    body(first, values.subspan(first, std::min(kChunk, values.size() - first)));
  });
}

StatusOr<Workload> Generate(const KvOptions& options, uint64_t positions_per_row) {
  const uint64_t n = options.rows;
  const uint64_t ids = options.id_space == 0 ? n : options.id_space;
  EMBANK_ASSIGN_OR_RETURN(IdMapper mapper, IdMapper::Create(options.id_mode, ids, options.seed));
  const double s =
      options.distribution.kind == Distribution::Kind::kZipf ? options.distribution.exponent : 0.0;
  EMBANK_ASSIGN_OR_RETURN(const ZipfSampler sampler, ZipfSampler::Create(n, s, options.seed));
  Workload workload;
  workload.rows.resize(n);
  ForParts(workload.rows, [&](uint64_t first, std::span<uint64_t> part) {
    for (uint64_t i = 0; i < part.size(); ++i) part[i] = mapper.KeyOf(first + i);
  });
  workload.positions.resize(StreamPositions(n, options.batch, positions_per_row));
  ForParts(workload.positions, [&](uint64_t first, std::span<uint64_t> part) {
    sampler.Ranks(first, part);
    if (mapper.MapIsStateless()) mapper.Map(part);
  });
  if (!mapper.MapIsStateless()) mapper.Map(workload.positions);
  return workload;
}

StatusOr<Workload> ReadTrace(const KvOptions& options) {
  const std::string& path = options.distribution.trace_path;
  const StatusOr<std::unique_ptr<TraceReader>> opened =
      TraceReader::Open(path, options.trace_format);
  if (!opened.ok()) {
    return InvalidArgumentError(StrCat("--dist: ", opened.status().message()));
  }
  TraceReader& reader = **opened;
  Workload workload;
  absl::flat_hash_set<Key> seen;
  std::vector<Key> keys(kChunk);
  for (;;) {
    const uint64_t space = kPositionsMax - workload.positions.size();
    EMBANK_ASSIGN_OR_RETURN(const size_t count, reader.Read(keys));
    if (count == 0) break;
    workload.trace_is_whole = count <= space;
    const std::span<const Key> part(keys.data(), std::min<uint64_t>(count, space));
    workload.positions.insert(workload.positions.end(), part.begin(), part.end());
    for (Key key : part) {
      if (seen.insert(key).second) workload.rows.push_back(key);
    }
    if (!workload.trace_is_whole) break;
  }
  if (workload.rows.empty()) return InvalidArgumentError(StrCat(path, ": no keys"));
  return workload;
}

}  // namespace

uint64_t StreamPositions(uint64_t rows, uint64_t batch, uint64_t per_row) {
  const uint64_t positions =
      std::clamp(std::min(rows, kPositionsMax) * per_row, kPositionsMin, kPositionsMax);
  return (positions + batch - 1) / batch * batch;
}

StatusOr<Workload> MakeWorkload(const KvOptions& options, uint64_t positions_per_row) {
  return options.distribution.kind == Distribution::Kind::kTrace
             ? ReadTrace(options)
             : Generate(options, positions_per_row);
}

}  // namespace embank
