// A device with memory of its own, in which rows live without their headers, and one stream of work
// on them. It knows neither keys nor tables. There are two implementations: CUDA, and the twin,
// which is host memory behind addresses that no host code can use (gpu/twin.h).
//
//   host thread:   work, work, Record = 7, work, ...    Wait(7)
//   stream:              work, work  .  work, ...          ^ everything before moment 7 has ended
//
// Payload of a row in device memory: its layout without the header of 16 bytes. The vector is at
// offset 0, the state at layout.state_offset_bytes - 16.
//
// All methods are thread-safe.
#ifndef EMBANK_GPU_DEVICE_H_
#define EMBANK_GPU_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/clock.h"
#include "tiers/row/row_layout.h"
#include "tiers/row/update_rule.h"

namespace embank {

// The payload of a row, and the row of another array that belongs to it.
struct DeviceRow {
  uint64_t offset_bytes;  // of the payload, from the start of its memory; a multiple of 16
  uint32_t index;         // of the row in the other array
  uint32_t count = 1;     // SumRows: the entries of `positions` from `index` on; at least 1.
                          // StepRows sets it to 0 where the step was not made
};
static_assert(sizeof(DeviceRow) == 16);

// Payloads of a list, in device memory or in pinned memory. `memory` is a multiple of 16.
struct DevicePayloads {
  const std::byte* memory;
  std::span<const DeviceRow> list;
};

// The rows that the lists of one call have at most.
inline constexpr uint64_t kListRowsMax = uint64_t{1} << 31;

// The bytes of each payload that a copy moves. Both are multiples of 2.
struct PayloadPart {
  uint32_t offset_bytes;
  uint32_t bytes;
};

// Rows at equal distances, in pinned or in device memory. `rows` and `stride_bytes` are multiples
// of 2; where the rows are floats, of 4.
struct DeviceArray {
  std::byte* rows;
  uint64_t stride_bytes;
};

// The number of a moment in the device's stream. Later moments have higher numbers.
using DeviceEvent = uint64_t;

struct DeviceFigures {
  std::string name;
  bool is_twin;
  uint64_t total_bytes;
  uint64_t free_bytes;
};

class Device {
 public:
  // Waits for all work. The caller frees all memory before.
  virtual ~Device() = default;

  // Returns name and memory, as they are now.
  virtual DeviceFigures figures() const = 0;

  // Makes device memory, aligned to 256 bytes, with any contents. The host must not dereference it.
  // kResourceExhausted: there is less memory; the message has both numbers. kUnavailable: the
  // device is lost.
  virtual StatusOr<std::byte*> Allocate(uint64_t bytes) = 0;
  // Frees memory of Allocate (nullptr: nothing), once the work before this call has ended.
  virtual void Free(std::byte* memory) = 0;
  // Makes host memory that kernels can read and write, aligned to 256 bytes. Statuses are those of
  // Allocate.
  virtual StatusOr<std::byte*> AllocatePinned(uint64_t bytes) = 0;
  // Frees memory of AllocatePinned (nullptr: nothing), once the work before this call has ended.
  virtual void FreePinned(std::byte* memory) = 0;
  // Whether [address, address + bytes) is inside one allocation of Allocate. On a CUDA device: or
  // in other memory of the same device, as other libraries allocate it.
  virtual bool Owns(const void* address, uint64_t bytes) const = 0;

  // The work. A call only enqueues it, in at most one kernel launch. It runs behind all that any
  // thread has enqueued before. Lists and arrays are in device memory, or in pinned memory. They
  // stay as they are until an event that was recorded afterwards has ended. No two rows of a list
  // have the same payload, except in Gather; no two rows write the same row of an array. A lost
  // device drops the work; Wait reports the loss. Lists of one call have at most
  // kListRowsMax rows.

  // Copies a part of each payload of both lists to the row `index` of `to`. Where the first
  // payloads are in pinned memory, they cross the link while the second are copied.
  virtual void Gather(const DevicePayloads& first, const DevicePayloads& second, PayloadPart part,
                      DeviceArray to) = 0;
  // Copies the row `index` of `from` to a part of each payload, in device or in pinned memory.
  virtual void Scatter(std::byte* row_memory, std::span<const DeviceRow> list, PayloadPart part,
                       DeviceArray from) = 0;
  // Row k of `sums` becomes the sum of the gradients whose numbers are positions[index] ..
  // positions[index + count - 1] of the k-th row of the list, in runs of 32 (docs/arithmetic.md).
  // Each number is first clipped to `limit` (0: is not). offset_bytes is not used.
  virtual void SumRows(std::span<const DeviceRow> list, const uint32_t* positions, uint32_t dim,
                       float limit, DeviceArray gradients, DeviceArray sums) = 0;
  // Makes one step of layout.optimizer (not kNone) on each payload, with the row `index` of
  // `gradients`, which are layout.dim floats. A step that would leave a number that is not finite
  // is not made: the payload stays, and `count` of its row in the list becomes 0. Row k of `seeds`
  // is the RoundingSeed of the k-th row of the list, 8 bytes; of no matter unless rule.rounding is
  // stochastic.
  virtual void StepRows(std::byte* row_memory, std::span<DeviceRow> list, const RowLayout& layout,
                        const UpdateRule& rule, DeviceArray gradients, DeviceArray seeds) = 0;
  // Sets *first_bad, which is pinned, to the first of `rows` rows of floats with a NaN or an
  // infinity; to `rows` if there is none.
  virtual void FindNotFinite(DeviceArray gradients, uint32_t rows, uint32_t dim,
                             uint64_t* first_bad) = 0;
  // Copies between any of device, pinned and other host memory. With the latter, a CUDA device may
  // wait until the copy has ended.
  virtual void Copy(std::byte* to, const std::byte* from, uint64_t bytes) = 0;

  // Returns the moment behind all work that was enqueued so far.
  virtual DeviceEvent Record() = 0;
  // Waits for the moment. kUnavailable: the device is lost, for good.
  virtual Status Wait(DeviceEvent event) = 0;
  // Says whether work can be ordered with a caller's stream (nullptr: the default stream).
  // kInvalidArgument: it is a stream of another device.
  // kFailedPrecondition: the stream is capturing.
  // kUnavailable: the device is lost.
  virtual Status CheckStream(void* stream) = 0;
  // Makes later work wait for all that is on the caller's stream now. Does not wait itself.
  // Statuses are those of CheckStream.
  virtual Status Join(void* stream) = 0;
  // Makes the caller's stream wait for all work that was enqueued so far. Does not wait itself.
  // Statuses are those of CheckStream.
  virtual Status Release(void* stream) = 0;
};

struct TwinOptions {
  // 0: work runs only when somebody waits for it, so that a missing wait shows. Otherwise: at other
  // moments, too, as this seed says.
  uint64_t seed = 0;
  uint64_t memory_bytes = 0;  // the limit of Allocate; 0: none
  // A model of the link between host and device (gpu/twin.h). 0: no model, nothing sleeps.
  double link_bytes_per_second = 0;
  uint64_t link_latency_ns = 0;
  // These outlive the twin. nullptr: the system's.
  MemorySource* memory = nullptr;
  const Clock* clock = nullptr;
};

// Makes a twin, which needs no hardware.
std::unique_ptr<Device> MakeTwin(const TwinOptions& options);

// Opens a CUDA device, cuda_device >= 0.
// kUnimplemented: this is a build without CUDA.
// kNotFound: there is no such device; the message says how many there are.
// kUnavailable: there is no driver, or an unsuitable one, or the device does not answer.
StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int32_t cuda_device);

// The version of CUDA and the name of the first device, such as "13.0, NVIDIA H100" or
// "13.0, no device". nullptr: this is a build without CUDA.
const char* CudaBuildInfo();

}  // namespace embank

#endif  // EMBANK_GPU_DEVICE_H_
