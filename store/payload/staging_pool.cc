#include "store/payload/staging_pool.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {
namespace {

// A batch of 8,192 rows of 512 bytes fits into the larger.
constexpr uint64_t kBufferBytesMin = uint64_t{256} << 10;
constexpr uint64_t kBufferBytesMax = uint64_t{8} << 20;
static_assert(kBufferBytesMin > 4 * (kRowBytesMax + sizeof(DeviceRow)));

}  // namespace

uint64_t StagingPool::BufferBytes(uint64_t hbm_bytes) {
  return std::clamp(RoundDown(hbm_bytes / 64, kSmallPageBytes), kBufferBytesMin, kBufferBytesMax);
}

StatusOr<std::unique_ptr<StagingPool>> StagingPool::Create(Device* device, MemoryBudget* budget,
                                                           uint64_t buffer_bytes) {
  const uint64_t bytes = kBuffers * buffer_bytes;
  std::unique_ptr<StagingPool> pool(new StagingPool(device, budget, buffer_bytes));
  EMBANK_ASSIGN_OR_RETURN(std::byte* const memory, device->AllocatePinned(bytes));
  if (const Status charged = budget->Charge(bytes); !charged.ok()) {
    device->FreePinned(memory);
    return charged;
  }
  pool->memory_ = memory;
  MutexLock lock(&pool->mutex_);
  for (size_t i = 0; i < kBuffers; ++i) pool->free_.push_back({memory + i * buffer_bytes, 0});
  return pool;
}

StagingPool::~StagingPool() {
  if (memory_ == nullptr) return;
  device_->FreePinned(memory_);
  budget_->Release(kBuffers * buffer_bytes_);
}

std::span<std::byte> StagingPool::Take() {
  FreeBuffer buffer = {};
  {
    MutexLock lock(&mutex_);
    while (free_.empty()) returned_.Wait(&mutex_);
    buffer = free_.front();
    free_.erase(free_.begin());
  }
  // A lost device does not use it either; the next wait for work reports the loss.
  if (buffer.last_use != 0) static_cast<void>(device_->Wait(buffer.last_use));
  return {buffer.memory, buffer_bytes_};
}

void StagingPool::Return(std::span<std::byte> buffer, DeviceEvent last_use) {
  EMBANK_CHECK(buffer.size() == buffer_bytes_ && buffer.data() >= memory_);
  EMBANK_CHECK(static_cast<uint64_t>(buffer.data() - memory_) % buffer_bytes_ == 0);
  {
    MutexLock lock(&mutex_);
    EMBANK_CHECK(free_.size() < kBuffers);
    free_.push_back({buffer.data(), last_use});
  }
  returned_.NotifyAll();
}

}  // namespace embank
