#include "tiers/log/row_log.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {

RowLog::RowLog(FileSystem* files, MemorySource* source, MemoryBudget* budget, RowLogOptions options)
    : options_(options),
      segments_(source, budget, options_),
      dead_(segments_, options_.directory, counters_),
      writer_(segments_, dead_, files, options_, counters_),
      candidates_(segments_, dead_, writer_),
      appender_(segments_, dead_, writer_, candidates_, options_, counters_),
      reader_(segments_, writer_, files, counters_),
      owners_(segments_, reader_, source, budget, options_),
      space_(segments_, dead_, writer_, options_),
      checkpoints_(segments_, dead_, writer_, appender_),
      recovery_(segments_, writer_, owners_, source, budget, options_) {}

// The task uses the parts behind the writer.
RowLog::~RowLog() { writer_.Stop(); }

StatusOr<std::unique_ptr<RowLog>> RowLog::Create(FileSystem* files, MemorySource* source,
                                                 MemoryBudget* budget, Executor* executor,
                                                 RowLogOptions options) {
  EMBANK_CHECK(options.segment_bytes % kBlockBytes == 0 &&
               options.segment_bytes <= kSegmentBytesMax);
  EMBANK_CHECK(options.buffer_bytes % kBlockBytes == 0 && options.buffer_bytes > 0);
  EMBANK_CHECK(options.buffers >= 2 && options.read_bytes >= 2 * kBufferOverhangBytes);
  EMBANK_CHECK(options.read_lists > 0);
  EMBANK_CHECK(LocationIn(options.tier, 0).IsInLog());
  constexpr uint64_t kSegmentsMin = SpaceAccounts::kSegmentsMin;
  if (options.ssd_bytes != 0 && options.ssd_bytes < kSegmentsMin * options.segment_bytes) {
    return InvalidArgumentError(StrCat("ssd_bytes: ", options.ssd_bytes, " bytes; at least ",
                                       kSegmentsMin * options.segment_bytes, " for ", kSegmentsMin,
                                       " segments of ", options.segment_bytes));
  }
  EMBANK_CHECK(options.directory != nullptr);
  std::unique_ptr<RowLog> log(new RowLog(files, source, budget, options));
  EMBANK_RETURN_IF_ERROR(log->appender_.Init(source, budget));
  EMBANK_RETURN_IF_ERROR(log->reader_.Init(source, budget, options.read_lists, options.read_bytes));
  EMBANK_RETURN_IF_ERROR(log->writer_.Init(source, budget, executor));
  return log;
}

}  // namespace embank
