// The owners of a log's records: the table and key of each slot of a segment. Memory, the segment's
// footer or the records themselves tell them.
#ifndef EMBANK_TIERS_LOG_LOG_OWNERS_H_
#define EMBANK_TIERS_LOG_LOG_OWNERS_H_

#include <cstdint>

#include "base/function_ref.h"
#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "tiers/log/log_reader.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/owner_cache.h"
#include "tiers/log/row_log_options.h"
#include "tiers/segment/log_read_list.h"

namespace embank {

// Thread-safe. Its functions take the log's lock.
class LogOwners {
 public:
  // visit(location, table, key)
  using Visit = FunctionRef<void(Location, TableId, Key)>;

  // All of them outlive it.
  LogOwners(const LogSegments& segments, LogReader& reader, MemorySource* source,
            MemoryBudget* budget, const RowLogOptions& options)
      : segments_(segments), reader_(reader), source_(source), budget_(budget), options_(options) {}

  // Finds the owner of one record that cannot be read, from its segment. Reads the footer piece by
  // piece into `scratch`, unless the owner is cached. False: the owner is unknown.
  bool OwnerOf(Location location, RecordScratch* scratch, SlotOwner* owner);

  // Calls visit for all records of a row class that were written before, also dead ones if others
  // of their segment live. Returns the first status of segments that cannot be read, and visits the
  // others; kResourceExhausted.
  Status VisitOwners(uint32_t row_class, Visit visit);

  // Finds the owners of a segment's slots, in *memory, which is charged to `budget`, from the
  // footer or the records. A slot with an unknown owner has kNoTable. kResourceExhausted; the
  // statuses of files, if neither can be read.
  Status OwnersOf(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                  SegmentFooter* owners);
  // Like OwnersOf, but from the footer, or from memory until it is written. kDataLoss: it is
  // damaged; then *memory has space for OwnersOfRecords.
  Status ReadFooter(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                    SegmentFooter* footer);
  // Like OwnersOf, but from the records, in the *memory that ReadFooter has made.
  Status OwnersOfRecords(const LogSegment& segment, AlignedBuffer* memory, SegmentFooter* owners);

 private:
  const LogSegments& segments_;
  LogReader& reader_;
  MemorySource* const source_;
  MemoryBudget* const budget_;
  const RowLogOptions& options_;
  OwnerCache owner_cache_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_OWNERS_H_
