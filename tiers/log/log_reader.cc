#include "tiers/log/log_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/status_macros.h"

namespace embank {
namespace {

// The number of items that are prefetched before they are visited: a visit takes 200 ns and more,
// memory half of that.
constexpr size_t kItemsAhead = 3;
constexpr uint32_t kLineBytes = 64;
// The processor itself fetches the lines that follow.
constexpr uint32_t kBytesAhead = 16 * kLineBytes;

// Bytes that the device has written are in no cache.
[[gnu::always_inline]] inline void PrefetchRecord(const LogReadItem& item) {
  if (item.record == nullptr) return;
  const uint32_t bytes = std::min(item.bytes, kBytesAhead);
  for (uint32_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(item.record + i);
  __builtin_prefetch(item.record + bytes - 1);
}

}  // namespace

Status LogReader::Init(MemorySource* source, MemoryBudget* budget, uint32_t lists,
                       uint64_t list_bytes) {
  MutexLock lock(&lists_mutex_);
  EMBANK_CHECK(idle_lists_.empty());
  for (uint32_t i = 0; i < lists; ++i) {
    idle_lists_.push_back(LogReadList::Create(files_, source, budget, list_bytes));
    if (idle_lists_.back() == nullptr) return NoMemory();
  }
  return OkStatus();
}

Status LogReader::Read(std::span<const Location> locations, Visit visit, uint64_t bridged_bytes,
                       FunctionRef<void(size_t)> ahead) {
  Scratch<ReadOrder, 64> memory;
  EMBANK_RETURN_IF_ERROR(memory.Allocate(locations.size()));
  const std::span<ReadOrder> order = memory.values();
  for (size_t i = 0; i < order.size(); ++i) order[i] = {locations[i].units, i};
  std::sort(order.begin(), order.end(),
            [](const ReadOrder& a, const ReadOrder& b) { return a.units < b.units; });
  struct Loan {
    ~Loan() {
      list->Clear();
      reader->Return(std::move(list));
    }
    LogReader* reader;
    std::unique_ptr<LogReadList> list;
  };
  const Loan loan = {this, TakeList()};
  LogReadList* const list = loan.list.get();
  for (size_t done = 0; done < order.size();) {
    list->Clear();
    const size_t planned = Plan(order.subspan(done), bridged_bytes, list);
    done += planned;
    files_->TransferAll(list->transfers());
    const std::span<const LogReadItem> items = list->items();
    EMBANK_CHECK(!items.empty());
    EMBANK_CHECK(items.size() == planned && done <= order.size());
    for (size_t next = 0; next < items.size() + kItemsAhead; ++next) {
      if (next < items.size()) {
        PrefetchRecord(items[next]);
        ahead(items[next].i);
      }
      if (next < kItemsAhead) continue;
      const LogReadItem& item = items[next - kItemsAhead];
      const Status status = list->Finish(item);
      visit(item.i, status,
            status.ok() ? std::span(item.record, item.bytes) : std::span<const std::byte>());
    }
  }
  return OkStatus();
}

// Puts as many reads into the list as fit, and the records that buffers have; returns how many.
size_t LogReader::Plan(std::span<const ReadOrder> order, uint64_t bridged_bytes,
                       LogReadList* list) {
  ReaderMutexLock lock(segments_.mutex());
  writer_.AssertReaderHeld();
  size_t done = 0;
  uint64_t read_rows = 0;
  for (const ReadOrder& read : order) {
    LogReadItem item = {.i = read.i};
    const std::shared_ptr<LogSegment> segment = segments_.Find({read.units}, &item.place);
    if (segment != nullptr) item.bytes = segment->geometry.record_bytes;
    if (!list->HasSpaceFor(item.bytes)) break;
    ++done;
    if (segment == nullptr) {
      list->AddMissing(item);
      continue;
    }
    const uint64_t offset = SegmentOffsetOf({read.units});
    const std::byte* const buffered = writer_.buffers().Find(segment.get(), offset, item.bytes);
    if (buffered != nullptr) {
      list->AddBuffered(item, segment, buffered);
      ++counters_.buffered_reads;
    } else {
      AddFromFile(item, segment, offset, bridged_bytes, list);
      ++read_rows;
    }
  }
  counters_.read_rows += read_rows;
  for (const Transfer& transfer : list->transfers()) counters_.read_bytes += transfer.bytes.size();
  counters_.reads += list->transfers().size();
  return done;
}

void LogReader::AddFromFile(const LogReadItem& item, const std::shared_ptr<LogSegment>& segment,
                            uint64_t offset, uint64_t bridged_bytes, LogReadList* list) {
  const std::span<const std::byte> mapping = segment->file->mapping();
  if (offset + item.bytes <= mapping.size()) {
    list->AddMapped(item, segment, mapping.data() + offset);
  } else {
    list->AddRead(item, segment, offset, bridged_bytes);
  }
}

StatusOr<std::span<const std::byte>> LogReader::ReadOne(Location location, RecordScratch* scratch) {
  LogReadItem item;
  const uint64_t offset = SegmentOffsetOf(location);
  const uint64_t begin = RoundDown(offset, kBlockBytes);
  item.record = scratch->bytes + (offset - begin);
  std::shared_ptr<LogSegment> segment;
  {
    ReaderMutexLock lock(segments_.mutex());
    writer_.AssertReaderHeld();
    segment = segments_.Find(location, &item.place);
    if (segment == nullptr) return NoRecord();
    item.bytes = segment->geometry.record_bytes;
    const std::byte* const buffered = writer_.buffers().Find(segment.get(), offset, item.bytes);
    if (buffered != nullptr) {
      std::memcpy(scratch->bytes, buffered, item.bytes);
      ++counters_.buffered_reads;
      return std::span<const std::byte>(scratch->bytes, item.bytes);
    }
  }
  const uint64_t end = RoundUp(offset + item.bytes, kBlockBytes);
  EMBANK_CHECK(end - begin <= sizeof(scratch->bytes));
  Transfer transfer = {.kind = Transfer::Kind::kRead,
                       .file = segment->file.get(),
                       .offset = begin,
                       .bytes = {scratch->bytes, end - begin},
                       .status = {}};
  transfer.status = transfer.file->Read(transfer.offset, transfer.bytes);
  ++counters_.reads;
  ++counters_.read_rows;
  counters_.read_bytes += transfer.bytes.size();
  EMBANK_RETURN_IF_ERROR(VerifyRecord(item, transfer));
  return std::span<const std::byte>(item.record, item.bytes);
}

std::unique_ptr<LogReadList> LogReader::TakeList() {
  MutexLock lock(&lists_mutex_);
  while (idle_lists_.empty()) list_free_.Wait(&lists_mutex_);
  std::unique_ptr<LogReadList> list = std::move(idle_lists_.back());
  idle_lists_.pop_back();
  return list;
}

void LogReader::Return(std::unique_ptr<LogReadList> list) {
  {
    MutexLock lock(&lists_mutex_);
    EMBANK_CHECK(list != nullptr && idle_lists_.size() < idle_lists_.capacity());
    idle_lists_.push_back(std::move(list));
  }
  list_free_.NotifyAll();
}

}  // namespace embank
