// One list of reads from the log: the places of the records in memory, and the transfers that read
// them.
#ifndef EMBANK_TIERS_SEGMENT_LOG_READ_LIST_H_
#define EMBANK_TIERS_SEGMENT_LOG_READ_LIST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/files/file_system.h"
#include "base/memory/aligned_buffer.h"
#include "base/status.h"
#include "tiers/segment/log_record.h"
#include "tiers/segment/log_segment.h"

namespace embank {

// Space for any record as it is read: whole aligned blocks.
inline constexpr uint64_t kRecordScratchBytes = RoundUp(kRecordBytesMax, kBlockBytes) + kBlockBytes;
struct RecordScratch {
  alignas(kBlockBytes) std::byte bytes[kRecordScratchBytes];
};

// A wanted record.
struct LogReadItem {
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  static constexpr uint32_t kMapped = kNone - 1;
  size_t i = 0;                       // the caller's number for it
  const std::byte* record = nullptr;  // the record's place in memory, now or later; nullptr: there
                                      // is no such slot
  RecordPlace place = {};
  uint32_t bytes = 0;
  // kNone: it is there, and whole. kMapped: it is there, and not verified yet.
  uint32_t transfer = kNone;
};

// Verifies a record that a transfer has read. After an error of the transfer it reads the record's
// blocks again. kDataLoss: the record is damaged; kResourceExhausted: there was no descriptor or
// memory to read it, which says nothing about the record; else the status of the read.
Status VerifyRecord(const LogReadItem& item, const Transfer& transfer);

// The status of a location without a record: kDataLoss.
Status NoRecord();

// A place to read, and the number of its request.
struct ReadOrder {
  uint64_t units;
  size_t i;
};

// While an item is in the list its segment stays, so that no other record takes its place.
class LogReadList {
 public:
  // Makes a list with space for `bytes` of records; nullptr: no memory. Later calls allocate
  // nothing. files, source and budget must outlive it.
  static std::unique_ptr<LogReadList> Create(FileSystem* files, MemorySource* source,
                                             MemoryBudget* budget, uint64_t bytes);
  LogReadList() = default;
  ~LogReadList();
  LogReadList(const LogReadList&) = delete;
  LogReadList& operator=(const LogReadList&) = delete;

  // Removes all items.
  void Clear();
  // Whether one more such record fits, by any of the Add functions.
  bool HasSpaceFor(uint32_t record_bytes) const;

  // Adds an item: one that is not there, one that is copied now, one that stays where it is in a
  // mapped file, one that is to be read. The
  // offsets of reads in one segment must grow from call to call; neighbours share a transfer, and
  // those between which no more than `bridged_bytes` lie, where there is space for these.
  void AddMissing(const LogReadItem& item) { items_.push_back(item); }
  void AddBuffered(LogReadItem item, const std::shared_ptr<LogSegment>& segment,
                   const std::byte* record);
  void AddMapped(LogReadItem item, const std::shared_ptr<LogSegment>& segment,
                 const std::byte* record);
  void AddRead(LogReadItem item, const std::shared_ptr<LogSegment>& segment, uint64_t offset,
               uint64_t bridged_bytes = 0);

  std::span<const LogReadItem> items() const { return items_; }
  std::span<Transfer> transfers() { return transfers_; }
  // Returns the item's record, verified, after the transfers. Statuses like VerifyRecord.
  Status Finish(const LogReadItem& item);

 private:
  bool Continues(const Transfer& last, const File* file, uint64_t begin, uint64_t end,
                 uint64_t bridged_bytes) const;
  void Keep(const std::shared_ptr<LogSegment>& segment);

  FileSystem* files_ = nullptr;
  AlignedBuffer memory_;
  uint64_t used_bytes_ = 0;
  std::vector<LogReadItem> items_;
  std::vector<Transfer> transfers_;
  std::vector<std::shared_ptr<LogSegment>> segments_;  // so that they stay
};

}  // namespace embank

#endif  // EMBANK_TIERS_SEGMENT_LOG_READ_LIST_H_
