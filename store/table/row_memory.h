// Memory for one row outside of its tier: as large as rows may be, and too large for a stack.
#ifndef EMBANK_STORE_TABLE_ROW_MEMORY_H_
#define EMBANK_STORE_TABLE_ROW_MEMORY_H_

#include <array>
#include <cstddef>
#include <memory>

#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "base/types.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_read_list.h"

namespace embank {

struct RowMemory {
  RecordScratch record;            // a row's record as it is read
  RowImage image;                  // a copy of a row
  alignas(64) float sum[kDimMax];  // of a row's gradients
};

// A pool of such memory for threads in the middle of a batch, where nothing may fail. There is
// always some, but a thread may have to wait. Thread-safe.
class RowMemoryPool {
 public:
  // kResourceExhausted.
  static StatusOr<std::unique_ptr<RowMemoryPool>> Create();
  ~RowMemoryPool();
  RowMemoryPool(const RowMemoryPool&) = delete;
  RowMemoryPool& operator=(const RowMemoryPool&) = delete;

  // Takes memory, uninitialised. If the process has no memory, it waits until another thread
  // returns some. So the caller is no reader (EpochTable::Guard), and waits for no shard's lock
  // before it returns the memory.
  RowMemory* Take();
  void Return(RowMemory* memory);

 private:
  // The pool keeps so many, so that few are allocated anew.
  static constexpr size_t kIdleMax = 4;

  RowMemoryPool() = default;

  Mutex mutex_;
  ConditionVariable given_back_;
  size_t idle_count_ EMBANK_GUARDED_BY(mutex_) = 0;
  std::array<RowMemory*, kIdleMax> idle_ EMBANK_GUARDED_BY(mutex_);
};

// The pools of a store. A thread that has memory of `outside_locks` may wait for the lock of a
// shard, and takes none of it under such a lock; one that has memory of `under_locks` waits for no
// lock.
struct RowMemoryPools {
  // kResourceExhausted.
  static StatusOr<RowMemoryPools> Create();

  std::unique_ptr<RowMemoryPool> under_locks;
  std::unique_ptr<RowMemoryPool> outside_locks;
};

// Borrows memory from a pool at the first use, for one thread.
class BorrowedRowMemory {
 public:
  explicit BorrowedRowMemory(RowMemoryPool* pool) : pool_(pool) {}
  ~BorrowedRowMemory() { Return(); }
  BorrowedRowMemory(const BorrowedRowMemory&) = delete;
  BorrowedRowMemory& operator=(const BorrowedRowMemory&) = delete;

  // Returns the same memory until it is returned.
  RowMemory* get() {
    if (memory_ == nullptr) memory_ = pool_->Take();
    return memory_;
  }
  void Return() {
    if (memory_ != nullptr) pool_->Return(memory_);
    memory_ = nullptr;
  }

 private:
  RowMemoryPool* const pool_;
  RowMemory* memory_ = nullptr;
};

// Memory for a copy of a row of the layout: its own if the row is small, else borrowed at once.
class RowCopyBuffer {
 public:
  RowCopyBuffer(RowMemoryPool* pool, const RowLayout& layout)
      : borrowed_(pool),
        bytes_(layout.row_bytes <= kOwnBytes ? own_ : borrowed_.get()->image.bytes) {}

  std::byte* bytes() { return bytes_; }

 private:
  static constexpr size_t kOwnBytes = 2048;

  alignas(64) std::byte own_[kOwnBytes];
  BorrowedRowMemory borrowed_;
  std::byte* const bytes_;
};

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_ROW_MEMORY_H_
