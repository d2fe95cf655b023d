#include "bench/replay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/access_counts.h"

namespace embank {
namespace {

// The batches take most of the time; the scan is the rest of the progress bar.
constexpr double kBatchesShare = 0.9;

Status Summarize(const CheckedStore& checked, const AccessCounts& counts, ReplayReport* report) {
  EMBANK_ASSIGN_OR_RETURN(const CStoreMemory memory, MemoryOf(checked.store()));
  report->lookup = checked.lookup();
  report->gradients = checked.gradients();
  report->scan = checked.scan();
  report->positions = checked.positions();
  report->row_bytes = memory.row_bytes;
  report->bytes_per_row = static_cast<double>(memory.used_bytes) /
                          static_cast<double>(std::max<uint64_t>(1, memory.rows));
  report->distinct_keys = counts.distinct();
  report->share_top_1 = counts.ShareOfTop(0.01);
  report->share_top_10 = counts.ShareOfTop(0.10);
  report->share_top_20 = counts.ShareOfTop(0.20);
  static_cast<OracleFigures&>(*report) = checked.check().figures();
  report->digest = checked.digest();
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<KeySource>> OpenSource(const ReplayOptions& options) {
  if (options.trace_path.empty()) return MakeGeneratedSource(options.seed);
  StatusOr<std::unique_ptr<KeySource>> source =
      OpenTraceSource(options.trace_path, options.trace_format);
  if (source.ok()) return source;
  return InvalidArgumentError(StrCat("--trace: ", source.status().message()));
}

StatusOr<ReplayReport> RunReplay(const ReplayOptions& options, Progress* progress) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<KeySource> source, OpenSource(options));
  EMBANK_ASSIGN_OR_RETURN(CStore store, OpenCStore(options.shape, options.seed, options.threads));
  CheckedStore checked(options.shape, options.batch, options.seed, /*keeps_heat=*/true);
  checked.Take(std::move(store));
  const uint64_t begin_ns = SteadyClock()->NowNs();
  AccessCounts counts;
  RunSlices slices;
  std::vector<Key> keys(options.batch);
  for (;;) {
    EMBANK_ASSIGN_OR_RETURN(const size_t count, source->Read(keys));
    if (count == 0) break;
    EMBANK_ASSIGN_OR_RETURN(RunSlice batch, checked.RunTimedBatch(KeySpan(keys).first(count)));
    const uint64_t rows_before = counts.distinct();
    counts.Add(KeySpan(keys).first(count));
    batch.accesses = count;
    batch.hits = count - (counts.distinct() - rows_before);
    slices.Add(batch);
    progress->Update(source->FractionRead() * kBatchesShare,
                     StrCat("replay: ", checked.positions(), " keys"));
  }
  EMBANK_RETURN_IF_ERROR(checked.Scan([&](double scanned) {
    progress->Update(kBatchesShare + (1.0 - kBatchesShare) * scanned, "scan");
  }));
  ReplayReport report;
  EMBANK_RETURN_IF_ERROR(Summarize(checked, counts, &report));
  report.slices = slices.slices();
  report.source = source->Description();
  report.seconds = static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
  return report;
}

}  // namespace embank
