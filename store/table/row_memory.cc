#include "store/table/row_memory.h"

#include <new>

#include "base/memory/memory.h"
#include "base/status_macros.h"

namespace embank {

StatusOr<std::unique_ptr<RowMemoryPool>> RowMemoryPool::Create() {
  std::unique_ptr<RowMemoryPool> pool(new RowMemoryPool);
  RowMemory* const first = new (std::nothrow) RowMemory;
  if (first == nullptr) return NoMemory();
  pool->Return(first);
  return pool;
}

StatusOr<RowMemoryPools> RowMemoryPools::Create() {
  RowMemoryPools pools;
  EMBANK_ASSIGN_OR_RETURN(pools.under_locks, RowMemoryPool::Create());
  EMBANK_ASSIGN_OR_RETURN(pools.outside_locks, RowMemoryPool::Create());
  return pools;
}

RowMemoryPool::~RowMemoryPool() {
  MutexLock lock(&mutex_);
  while (idle_count_ > 0) delete idle_[--idle_count_];
}

RowMemory* RowMemoryPool::Take() {
  {
    MutexLock lock(&mutex_);
    if (idle_count_ > 0) return idle_[--idle_count_];
  }
  RowMemory* const made = new (std::nothrow) RowMemory;
  if (made != nullptr) return made;
  MutexLock lock(&mutex_);
  while (idle_count_ == 0) given_back_.Wait(&mutex_);
  return idle_[--idle_count_];
}

void RowMemoryPool::Return(RowMemory* memory) {
  {
    MutexLock lock(&mutex_);
    if (idle_count_ < kIdleMax) {
      idle_[idle_count_++] = memory;
      memory = nullptr;
    }
  }
  given_back_.NotifyAll();
  delete memory;
}

}  // namespace embank
