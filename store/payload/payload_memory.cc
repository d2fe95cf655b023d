#include "store/payload/payload_memory.h"

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {

StatusOr<std::unique_ptr<PayloadMemory>> PayloadMemory::Create(std::unique_ptr<Device> device,
                                                               MemoryBudget* budget,
                                                               uint64_t hbm_bytes) {
  if (hbm_bytes < PayloadSlots::kBytesMin) {
    return InvalidArgumentError(StrCat("hbm_bytes is ", hbm_bytes, "; it must be 0, or at least ",
                                       PayloadSlots::kBytesMin, " for one row of any size"));
  }
  const uint64_t buffer_bytes = StagingPool::BufferBytes(hbm_bytes);
  const DeviceFigures figures = device->figures();
  if (figures.free_bytes < hbm_bytes || figures.free_bytes - hbm_bytes < buffer_bytes) {
    return ResourceExhaustedError(StrCat("hbm_bytes is ", hbm_bytes, ", and a buffer takes ",
                                         buffer_bytes, "; ", figures.name, " has ",
                                         figures.free_bytes, " bytes free"));
  }
  std::unique_ptr<PayloadMemory> memory(new PayloadMemory(std::move(device), budget, hbm_bytes));
  EMBANK_ASSIGN_OR_RETURN(memory->payloads_, memory->device_->Allocate(hbm_bytes));
  const uint64_t host_bytes = PayloadSlots::HostBytesMax(hbm_bytes);
  if (const Status charged = budget->Charge(host_bytes); !charged.ok()) {
    return ResourceExhaustedError(StrCat("dram_bytes is ", budget->limit_bytes(), "; hbm_bytes of ",
                                         hbm_bytes, " take ", HostBytesMax(hbm_bytes),
                                         " of it besides headers of rows"));
  }
  memory->charged_bytes_ = host_bytes;
  EMBANK_ASSIGN_OR_RETURN(memory->staging_,
                          StagingPool::Create(memory->device_.get(), budget, buffer_bytes));
  MutexLock lock(&memory->scratch_mutex_);
  EMBANK_ASSIGN_OR_RETURN(memory->scratch_, memory->device_->Allocate(buffer_bytes));
  return memory;
}

void PayloadMemory::UseScratch(FunctionRef<void(std::byte*)> use) {
  MutexLock lock(&scratch_mutex_);
  EMBANK_CHECK(scratch_ != nullptr);
  use(scratch_);
}

PayloadMemory::~PayloadMemory() {
  {
    MutexLock lock(&scratch_mutex_);
    device_->Free(scratch_);
  }
  device_->Free(payloads_);
  budget_->Release(charged_bytes_);
}

}  // namespace embank
