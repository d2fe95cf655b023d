// Memory for one row beside its tier: too much for a stack, as large as rows may be.
#ifndef EMBANK_STORE_BATCH_ROW_MEMORY_H_
#define EMBANK_STORE_BATCH_ROW_MEMORY_H_

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

// Where threads get such memory in the middle of a batch, where nothing may fail: there is always
// some, if not at once. Thread-safe.
class RowMemoryPool {
 public:
  // kResourceExhausted.
  static StatusOr<std::unique_ptr<RowMemoryPool>> Create();
  ~RowMemoryPool();
  RowMemoryPool(const RowMemoryPool&) = delete;
  RowMemoryPool& operator=(const RowMemoryPool&) = delete;

  // Uninitialised. Where the process has no memory it waits until another thread gives some back:
  // so the caller is no reader (EpochTable::Guard), and waits for no shard's lock before it does.
  RowMemory* Take();
  void Return(RowMemory* memory);

 private:
  // More stay than one, so that few are made anew.
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

// Has memory of a pool from when it is first asked for, for one thread.
class BorrowedRowMemory {
 public:
  explicit BorrowedRowMemory(RowMemoryPool* pool) : pool_(pool) {}
  ~BorrowedRowMemory() { Return(); }
  BorrowedRowMemory(const BorrowedRowMemory&) = delete;
  BorrowedRowMemory& operator=(const BorrowedRowMemory&) = delete;

  // The same until it is given back.
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

// Space for a copy of a row of the layout: its own where that is small, else borrowed at once.
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

#endif  // EMBANK_STORE_BATCH_ROW_MEMORY_H_
