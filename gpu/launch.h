// The kernels of a CUDA device: each function enqueues one launch on a stream, and returns what
// CUDA answers. Only sources of a build with CUDA include this header.
#ifndef EMBANK_GPU_LAUNCH_H_
#define EMBANK_GPU_LAUNCH_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/device.h"
#include "gpu/gradient_rows.h"
#include "gpu/payload_step.h"

namespace embank {

// The place of a launch. `multiprocessors` is that of the device.
struct LaunchPlace {
  cudaStream_t stream;
  uint32_t multiprocessors;
};

// A list of rows in memory that the device reads; at least one row if it stands alone.
struct LaunchList {
  const DeviceRow* rows;
  uint64_t count;
};

// Parts of payloads; the list may be empty.
struct LaunchPayloads {
  LaunchList list;
  std::byte* parts;  // where the part of a payload at offset 0 begins
};

// The words that FindNotFinite keeps in device memory between its launches.
struct NotFiniteWords {
  unsigned long long first_bad = ~0ull;  // the first bad row so far
  uint32_t blocks_done = 0;
};

// Device::Gather and Device::Scatter, of at least one row.
cudaError_t LaunchCopies(const LaunchPlace& place, const LaunchPayloads& first,
                         const LaunchPayloads& second, const DeviceArray& rows, uint32_t bytes,
                         bool is_gather);

// Device::SumRows.
cudaError_t LaunchSums(const LaunchPlace& place, const LaunchList& list, const GradientTerms& terms,
                       uint32_t dim, const DeviceArray& sums);

// Device::StepRows. The optimizer is not kNone.
cudaError_t LaunchSteps(const LaunchPlace& place, std::span<DeviceRow> list, std::byte* row_memory,
                        const RowLayout& layout, const UpdateRule& rule,
                        const DeviceArray& gradients, const DeviceArray& seeds);

// Device::FindNotFinite. `words` is in device memory, and has its first values before the first
// launch; each launch leaves them so.
cudaError_t LaunchFindNotFinite(const LaunchPlace& place, const DeviceArray& gradients,
                                uint32_t rows, uint32_t dim, NotFiniteWords* words,
                                uint64_t* first_bad);

}  // namespace embank

#endif  // EMBANK_GPU_LAUNCH_H_
