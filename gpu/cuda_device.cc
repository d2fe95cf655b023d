// A device of CUDA. One stream that does not wait for the default stream has all work; the streams
// of callers are joined by events.
#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/mutex.h"
#include "gpu/device.h"
#include "gpu/launch.h"

namespace embank {
namespace {

// Makes a device the thread's current one, and the one before current again at the end. Meanwhile
// calls are permitted that a capture of a stream, by this thread, would forbid.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : device_(device) {
    if (cudaGetDevice(&before_) != cudaSuccess || before_ != device) cudaSetDevice(device);
    cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  ~CurrentDevice() {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    if (before_ >= 0 && before_ != device_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  const int device_;
  int before_ = -1;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// The error as a status, with the name of the call that has failed.
Status CudaStatus(StatusCode code, const char* call, cudaError_t error) {
  return NoThrowStatus(code, [&] { return StrCat(call, ": ", cudaGetErrorString(error)); });
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int device) : device_(device) {}
  ~CudaDevice() override;

  // Makes stream, events and words. Statuses are those of OpenCudaDevice. Once, before all else.
  Status Open();

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
  Status CheckStream(void* stream) override;
  Status Join(void* stream) override;
  Status Release(void* stream) override;

 private:
  // Events are used in turn. An event that is recorded again stands for a later moment, so that a
  // thread that still waits for the earlier one waits a little longer.
  static constexpr uint64_t kEvents = 256;

  LaunchPlace Place() const { return {stream_, multiprocessors_}; }
  void CopyRows(const DevicePayloads& first, const DevicePayloads& second, PayloadPart part,
                const DeviceArray& rows, bool is_gather);
  // Notes an error of work, by which the device counts as lost.
  void Note(cudaError_t error) const;
  Status LostStatus() const;
  Status CheckCallers(cudaStream_t stream) const;
  Status StreamStatus(cudaError_t error) const;
  Status NoSpace(uint64_t bytes, cudaError_t error) const;

  const int device_;
  std::string name_;
  uint32_t multiprocessors_ = 0;
  cudaStream_t stream_ = nullptr;
  NotFiniteWords* words_ = nullptr;
  std::array<cudaEvent_t, kEvents> events_{};  // of Record: number n is events_[n % kEvents]
  mutable std::atomic<cudaError_t> error_{cudaSuccess};
  Mutex mutex_;  // keeps what a method enqueues together
  DeviceEvent recorded_ EMBANK_GUARDED_BY(mutex_) = 0;
  cudaEvent_t order_ EMBANK_GUARDED_BY(mutex_) = nullptr;  // of Join and Release
};

Status CudaDevice::Open() {
  const CurrentDevice current(device_);
  cudaDeviceProp properties = {};
  cudaError_t error = cudaGetDeviceProperties(&properties, device_);
  if (error == cudaSuccess && properties.major < 8) {
    return NoThrowStatus(StatusCode::kUnavailable, [&] {
      return StrCat(properties.name, " has compute capability ", properties.major, ".",
                    properties.minor, ", and 8.0 is needed");
    });
  }
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  for (cudaEvent_t& event : events_) {
    if (error == cudaSuccess) error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  MutexLock lock(&mutex_);
  if (error == cudaSuccess) error = cudaEventCreateWithFlags(&order_, cudaEventDisableTiming);
  if (error == cudaSuccess) error = cudaMalloc(&words_, sizeof *words_);
  const NotFiniteWords first = {};
  if (error == cudaSuccess) {
    error = cudaMemcpy(words_, &first, sizeof first, cudaMemcpyHostToDevice);
  }
  if (error != cudaSuccess) {
    cudaGetLastError();
    const StatusCode code = error == cudaErrorMemoryAllocation ? StatusCode::kResourceExhausted
                                                               : StatusCode::kUnavailable;
    return CudaStatus(code, "opening the device", error);
  }
  name_ = properties.name;
  multiprocessors_ = static_cast<uint32_t>(properties.multiProcessorCount);
  return OkStatus();
}

// Errors are those of a lost device: there is nothing left to free then.
CudaDevice::~CudaDevice() {
  const CurrentDevice current(device_);
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  if (words_ != nullptr) cudaFree(words_);
  MutexLock lock(&mutex_);
  if (order_ != nullptr) cudaEventDestroy(order_);
  for (const cudaEvent_t event : events_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  cudaGetLastError();
}

void CudaDevice::Note(cudaError_t error) const {
  cudaError_t none = cudaSuccess;
  if (error != cudaSuccess) error_.compare_exchange_strong(none, error);
}

Status CudaDevice::LostStatus() const {
  const cudaError_t error = error_.load();
  if (error == cudaSuccess) return OkStatus();
  return CudaStatus(StatusCode::kUnavailable, "the device is lost", error);
}

DeviceFigures CudaDevice::figures() const {
  const CurrentDevice current(device_);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  Note(cudaMemGetInfo(&free_bytes, &total_bytes));
  return {name_, false, total_bytes, free_bytes};
}

Status CudaDevice::NoSpace(uint64_t bytes, cudaError_t error) const {
  cudaGetLastError();  // this one is not for the application
  if (error != cudaErrorMemoryAllocation) {
    Note(error);
    return LostStatus();
  }
  const uint64_t free_bytes = figures().free_bytes;
  return NoThrowStatus(StatusCode::kResourceExhausted, [&] {
    return StrCat("the device has ", free_bytes, " bytes free, and ", bytes, " are needed");
  });
}

StatusOr<std::byte*> CudaDevice::Allocate(uint64_t bytes) {
  EMBANK_CHECK(bytes != 0);
  if (Status status = LostStatus(); !status.ok()) return status;
  const CurrentDevice current(device_);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error != cudaSuccess) return NoSpace(bytes, error);
  return static_cast<std::byte*>(memory);
}

void CudaDevice::Free(std::byte* memory) {
  if (memory == nullptr) return;
  const CurrentDevice current(device_);
  Note(cudaStreamSynchronize(stream_));
  Note(cudaFree(memory));
}

StatusOr<std::byte*> CudaDevice::AllocatePinned(uint64_t bytes) {
  EMBANK_CHECK(bytes != 0);
  if (Status status = LostStatus(); !status.ok()) return status;
  const CurrentDevice current(device_);
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocMapped);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return NoThrowStatus(StatusCode::kResourceExhausted, [&] {
      return StrCat("there are not ", bytes, " bytes of host memory that can be pinned");
    });
  }
  if (error != cudaSuccess) return NoSpace(bytes, error);
  return static_cast<std::byte*>(memory);
}

void CudaDevice::FreePinned(std::byte* memory) {
  if (memory == nullptr) return;
  const CurrentDevice current(device_);
  Note(cudaStreamSynchronize(stream_));
  Note(cudaFreeHost(memory));
}

bool CudaDevice::Owns(const void* address, uint64_t bytes) const {
  const CurrentDevice current(device_);
  const auto is_ours = [this](const std::byte* at) {
    cudaPointerAttributes attributes = {};
    if (cudaPointerGetAttributes(&attributes, at) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    const bool is_device =
        attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    return is_device && attributes.device == device_;
  };
  auto* const first = static_cast<const std::byte*>(address);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (bytes > ~begin) return false;
  return is_ours(first) && (bytes <= 1 || is_ours(first + bytes - 1));
}

void CudaDevice::CopyRows(const DevicePayloads& first, const DevicePayloads& second,
                          PayloadPart part, const DeviceArray& rows, bool is_gather) {
  EMBANK_CHECK(part.offset_bytes % 2 == 0 && part.bytes % 2 == 0);
  EMBANK_CHECK(rows.stride_bytes % 2 == 0);
  EMBANK_CHECK(first.list.size() + second.list.size() <= kListRowsMax);
  if ((first.list.empty() && second.list.empty()) || part.bytes == 0) return;
  const auto side = [&part](const DevicePayloads& of) -> LaunchPayloads {
    if (of.list.empty()) return {{nullptr, 0}, nullptr};
    EMBANK_CHECK(reinterpret_cast<uintptr_t>(of.memory) % 16 == 0);
    return {{of.list.data(), of.list.size()},
            const_cast<std::byte*>(of.memory) + part.offset_bytes};
  };
  const CurrentDevice current(device_);
  Note(LaunchCopies(Place(), side(first), side(second), rows, part.bytes, is_gather));
}

void CudaDevice::Gather(const DevicePayloads& first, const DevicePayloads& second, PayloadPart part,
                        DeviceArray to) {
  CopyRows(first, second, part, to, true);
}

void CudaDevice::Scatter(std::byte* row_memory, std::span<const DeviceRow> list, PayloadPart part,
                         DeviceArray from) {
  CopyRows({row_memory, list}, {}, part, from, false);
}

void CudaDevice::SumRows(std::span<const DeviceRow> list, const uint32_t* positions, uint32_t dim,
                         float limit, DeviceArray gradients, DeviceArray sums) {
  EMBANK_CHECK(dim >= 1 && dim <= kDimMax);
  EMBANK_CHECK(list.size() <= kListRowsMax);
  EMBANK_CHECK(gradients.stride_bytes % 4 == 0 && sums.stride_bytes % 4 == 0);
  if (list.empty()) return;
  const CurrentDevice current(device_);
  Note(LaunchSums(Place(), {list.data(), list.size()}, {positions, gradients, LimitOfTerms(limit)},
                  dim, sums));
}

void CudaDevice::StepRows(std::byte* row_memory, std::span<DeviceRow> list, const RowLayout& layout,
                          const UpdateRule& rule, DeviceArray gradients, DeviceArray seeds) {
  EMBANK_CHECK(layout.optimizer != Optimizer::kNone && layout.dim <= kDimMax);
  EMBANK_CHECK(list.size() <= kListRowsMax);
  EMBANK_CHECK(gradients.stride_bytes % 4 == 0);
  if (list.empty()) return;
  const CurrentDevice current(device_);
  Note(LaunchSteps(Place(), list, row_memory, layout, rule, gradients, seeds));
}

void CudaDevice::FindNotFinite(DeviceArray gradients, uint32_t rows, uint32_t dim,
                               uint64_t* first_bad) {
  EMBANK_CHECK(gradients.stride_bytes % 4 == 0);
  const CurrentDevice current(device_);
  Note(LaunchFindNotFinite(Place(), gradients, rows, dim, words_, first_bad));
}

void CudaDevice::Copy(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes == 0) return;
  const CurrentDevice current(device_);
  Note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
}

DeviceEvent CudaDevice::Record() {
  const CurrentDevice current(device_);
  MutexLock lock(&mutex_);
  ++recorded_;
  Note(cudaEventRecord(events_[recorded_ % kEvents], stream_));
  return recorded_;
}

Status CudaDevice::Wait(DeviceEvent event) {
  {
    MutexLock lock(&mutex_);
    EMBANK_CHECK(event <= recorded_);
  }
  const CurrentDevice current(device_);
  if (event != 0) Note(cudaEventSynchronize(events_[event % kEvents]));
  return LostStatus();
}

// On the current device.
Status CudaDevice::CheckCallers(cudaStream_t stream) const {
  EMBANK_RETURN_IF_ERROR(LostStatus());
  // First of all: other questions would break the capture.
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &capture);
  // The default stream has this error while a stream that waits for it is capturing.
  if (error == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone) {
    cudaGetLastError();
    return NoThrowStatus(StatusCode::kFailedPrecondition, [] { return "the stream is capturing"; });
  }
  EMBANK_RETURN_IF_ERROR(StreamStatus(error));
  // The default stream is that of the current device.
  int device = device_;
  if (stream != nullptr) EMBANK_RETURN_IF_ERROR(StreamStatus(cudaStreamGetDevice(stream, &device)));
  return device == device_ ? OkStatus() : StreamStatus(cudaErrorInvalidResourceHandle);
}

// The status of a call with a caller's stream. A wrong stream is the caller's error.
Status CudaDevice::StreamStatus(cudaError_t error) const {
  if (error == cudaErrorInvalidResourceHandle || error == cudaErrorInvalidValue) {
    cudaGetLastError();
    return NoThrowStatus(StatusCode::kInvalidArgument,
                         [&] { return StrCat("the stream is not one of CUDA device ", device_); });
  }
  Note(error);
  return LostStatus();
}

Status CudaDevice::CheckStream(void* stream) {
  const CurrentDevice current(device_);
  return CheckCallers(static_cast<cudaStream_t>(stream));
}

Status CudaDevice::Join(void* stream) {
  const CurrentDevice current(device_);
  auto* const callers = static_cast<cudaStream_t>(stream);
  EMBANK_RETURN_IF_ERROR(CheckCallers(callers));
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(StreamStatus(cudaEventRecord(order_, callers)));
  Note(cudaStreamWaitEvent(stream_, order_, 0));
  return LostStatus();
}

Status CudaDevice::Release(void* stream) {
  const CurrentDevice current(device_);
  auto* const callers = static_cast<cudaStream_t>(stream);
  EMBANK_RETURN_IF_ERROR(CheckCallers(callers));
  MutexLock lock(&mutex_);
  Note(cudaEventRecord(order_, stream_));
  return StreamStatus(cudaStreamWaitEvent(callers, order_, 0));
}

// The number of devices; kUnavailable: there is no driver, or one that is too old.
StatusOr<int> DeviceCount() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess) return count;
  cudaGetLastError();
  if (error == cudaErrorNoDevice) return 0;
  return CudaStatus(StatusCode::kUnavailable, "no driver of CUDA answers", error);
}

std::string BuildInfo() {
  std::string info = StrCat(CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10, ", ");
  const StatusOr<int> count = DeviceCount();
  cudaDeviceProp properties = {};
  if (!count.ok() || *count == 0 || cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
    return info + "no device";
  }
  return info + static_cast<const char*>(properties.name);
}

}  // namespace

StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int32_t cuda_device) {
  EMBANK_CHECK(cuda_device >= 0);
  EMBANK_ASSIGN_OR_RETURN(const int count, DeviceCount());
  if (cuda_device >= count) {
    return NoThrowStatus(StatusCode::kNotFound, [&] {
      return StrCat("there is no CUDA device ", cuda_device, ": this machine has ", count);
    });
  }
  auto device = std::make_unique<CudaDevice>(cuda_device);
  EMBANK_RETURN_IF_ERROR(device->Open());
  return std::unique_ptr<Device>(std::move(device));
}

const char* CudaBuildInfo() {
  static const std::string* const info = new std::string(BuildInfo());
  return info->c_str();
}

}  // namespace embank
