// The twin of a device: host memory behind tokens (gpu/twin_memory.h), the row code of the kernels
// in plain loops, and streams that run when somebody waits (gpu/twin_streams.h). Everything that a
// device promises is true for it. Everything that a device does not promise fails on it, as far as
// tests can see: a missing wait shows old bytes, and a host pointer stops the process.
#ifndef EMBANK_GPU_TWIN_H_
#define EMBANK_GPU_TWIN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/status_or.h"
#include "gpu/device.h"
#include "gpu/twin_callers.h"
#include "gpu/twin_link.h"
#include "gpu/twin_memory.h"
#include "gpu/twin_streams.h"

namespace embank {

// Thread-safe, like every device.
class Twin final : public Device {
 public:
  explicit Twin(const TwinOptions& options);
  ~Twin() override;

  DeviceFigures figures() const override;
  StatusOr<std::byte*> Allocate(uint64_t bytes) override;
  void Free(std::byte* memory) override;
  StatusOr<std::byte*> AllocatePinned(uint64_t bytes) override;
  void FreePinned(std::byte* memory) override;
  bool Owns(const void* address, uint64_t bytes) const override;
  void Gather(const DevicePayloads& first, const DevicePayloads& second, PayloadPart part,
              DeviceArray to) override;
  void Scatter(std::byte* row_memory, std::span<const DeviceRow> list, PayloadPart part,
               DeviceArray from) override;
  void SumRows(std::span<const DeviceRow> list, const uint32_t* positions, uint32_t dim,
               float limit, DeviceArray gradients, DeviceArray sums) override;
  void StepRows(std::byte* row_memory, std::span<DeviceRow> list, const RowLayout& layout,
                const UpdateRule& rule, DeviceArray gradients, DeviceArray seeds) override;
  void FindNotFinite(DeviceArray gradients, uint32_t rows, uint32_t dim,
                     uint64_t* first_bad) override;
  void Copy(std::byte* to, const std::byte* from, uint64_t bytes) override;
  DeviceEvent Record() override;
  Status Wait(DeviceEvent event) override;
  Status CheckStream(void* stream) override { return NumberOf(stream).status(); }
  Status Join(void* stream) override;
  Status Release(void* stream) override;

  // ---- for tests ----

  // The n-th call of Allocate or AllocatePinned from now on fails (1: the next one; 0: none).
  void FailAllocation(uint64_t n) { memory_.FailAllocation(n); }
  // The device is lost at the n-th piece of work that runs from now on (1: the next one; 0: never).
  // That piece does nothing, nor do later ones.
  void LoseAt(uint64_t n) { lost_in_.store(n, std::memory_order_relaxed); }
  // Returns how much work was enqueued so far: the kernel launches and copies of a CUDA device.
  uint64_t enqueued_work() const { return enqueued_work_.load(std::memory_order_relaxed); }

  // Returns how often device or pinned memory was asked for so far.
  uint64_t allocations() const { return memory_.allocations(); }

  // Returns where work of a caller reads and writes memory of Allocate, as a kernel of its own
  // would.
  std::byte* RealAddress(const void* address) const { return memory_.Resolve(address).begin; }

  // The streams of callers, for Join and Release.
  TwinCallers& callers() { return callers_; }

 private:
  template <typename Body>
  void Enqueue(uint64_t link_bytes, const Body& body);
  void CopyRows(const DevicePayloads& first, const DevicePayloads& second, PayloadPart part,
                const DeviceArray& array, bool is_gather);
  bool BeginWork();
  Status LostStatus() const;
  StatusOr<TwinStreams::Stream> NumberOf(void* stream);

  TwinMemory memory_;
  TwinLink link_;
  TwinStreams streams_;
  TwinCallers callers_{&streams_};
  std::atomic<uint64_t> enqueued_work_{0};
  std::atomic<uint64_t> lost_in_{0};
  std::atomic<bool> is_lost_{false};
};

}  // namespace embank

#endif  // EMBANK_GPU_TWIN_H_
