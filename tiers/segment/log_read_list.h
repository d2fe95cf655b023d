// One list of reads from the log: where each record will be in memory, and the transfers that bring
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

// Space for any record as it is read: whole blocks, aligned to them.
inline constexpr uint64_t kRecordScratchBytes = RoundUp(kRecordBytesMax, kBlockBytes) + kBlockBytes;
struct RecordScratch {
  alignas(kBlockBytes) std::byte bytes[kRecordScratchBytes];
};

// A record that is wanted.
struct LogReadItem {
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  static constexpr uint32_t kMapped = kNone - 1;
  size_t i = 0;                       // the caller's number for it
  const std::byte* record = nullptr;  // where it is or will be; nullptr: there is no such slot
  RecordPlace place = {};
  uint32_t bytes = 0;
  // kNone: it is there, and whole. kMapped: it is there, and not verified yet.
  uint32_t transfer = kNone;
};

// Whether a transfer has brought the record; what went wrong on the way is tried again, for its
// blocks alone. kDataLoss: it is damaged; else why it cannot be read.
Status VerifyRecord(const LogReadItem& item, const Transfer& transfer);

// Of a location where there is none: kDataLoss.
Status NoRecord();

// A place to be read, and which of those that were asked for it is.
struct ReadOrder {
  uint64_t units;
  size_t i;
};

// While an item is in the list its segment stays, so that no other record takes its place.
class LogReadList {
 public:
  // With space for `bytes` of records; nullptr: no memory. Nothing allocates afterwards. files,
  // source and budget must outlive it.
  static std::unique_ptr<LogReadList> Create(FileSystem* files, MemorySource* source,
                                             MemoryBudget* budget, uint64_t bytes);
  LogReadList() = default;
  ~LogReadList();
  LogReadList(const LogReadList&) = delete;
  LogReadList& operator=(const LogReadList&) = delete;

  // Forgets all items.
  void Clear();
  // Whether one more such record fits, whatever way it is added.
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
  // After the transfers: the item's record, verified. Statuses as VerifyRecord.
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
