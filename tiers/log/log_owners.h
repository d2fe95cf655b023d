// The owners of a log's records: the table and key that each slot of a segment was written for, as
// memory, the segment's footer or the records themselves say.
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

  // The owner of one record that cannot be read: as its segment says. Reads its footer piece by
  // piece into `scratch`, unless it was asked before. False: nobody knows.
  bool OwnerOf(Location location, RecordScratch* scratch, SlotOwner* owner);

  // Calls visit for the records of a row class that were written before, dead ones too where others
  // of their segment live. The first status of segments that cannot be read, the others being
  // visited; kResourceExhausted.
  Status VisitOwners(uint32_t row_class, Visit visit);

  // The owners of a segment's slots, in *memory, which `budget` pays for: as its footer says or its
  // records do; a slot that nobody knows has kNoTable. Statuses of the files, if neither tells;
  // kResourceExhausted.
  Status OwnersOf(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                  SegmentFooter* owners);
  // As OwnersOf, but as the footer says, or memory until it is written. kDataLoss: it is damaged;
  // then *memory has space for OwnersOfRecords.
  Status ReadFooter(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                    SegmentFooter* footer);
  // As OwnersOf, but as the records say, in the *memory that ReadFooter has made.
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
