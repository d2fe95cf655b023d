// The recovery of a log: takes over the segments of kept checkpoints from the files of a closed
// store.
#ifndef EMBANK_TIERS_LOG_LOG_RECOVERY_H_
#define EMBANK_TIERS_LOG_LOG_RECOVERY_H_

#include <cstdint>
#include <memory>

#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "tiers/log/log_owners.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/log_writer.h"
#include "tiers/log/row_log_options.h"

namespace embank {

// Thread-safe, before any other use of the log.
class LogRecovery {
 public:
  // All of them outlive it.
  LogRecovery(LogSegments& segments, LogWriter& writer, LogOwners& owners, MemorySource* source,
              MemoryBudget* budget, const RowLogOptions& options)
      : segments_(segments),
        writer_(writer),
        owners_(owners),
        source_(source),
        budget_(budget),
        options_(options) {}

  // Takes over a segment for a kept checkpoint. With `visit`, the rows that the checkpoint has in
  // it live, and are visited as by LogOwners::VisitOwners. If the segment was taken over before,
  // only the checkpoint is added. If the footer is damaged, the records tell the owners. After an
  // error the segment is not taken over:
  //   kDataLoss, with its name: it is not there, not itself, or damaged so that this does not help.
  //   kFailedPrecondition: it is of a newer format.
  //   kResourceExhausted, statuses of the files.
  Status Adopt(const SegmentRows& rows, uint32_t checkpoint, const LogOwners::Visit* visit);

 private:
  StatusOr<std::shared_ptr<LogSegment>> MakePlace(const SegmentRows& rows, uint32_t checkpoint);
  Status AdoptSegment(LogSegment* segment, const SegmentRows& rows, const LogOwners::Visit* visit);
  Status OpenFile(LogSegment* segment);
  Status CheckHeader(const LogSegment& segment);
  Status AdoptOwners(LogSegment* segment, const SegmentRows& rows, AlignedBuffer* memory,
                     SegmentFooter* owners);

  LogSegments& segments_;
  LogWriter& writer_;
  LogOwners& owners_;
  MemorySource* const source_;
  MemoryBudget* const budget_;
  const RowLogOptions& options_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_RECOVERY_H_
