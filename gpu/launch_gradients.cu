#include "gpu/gradient_rows.h"
#include "gpu/launch.h"
#include "gpu/warp_lanes.cuh"

namespace embank {
namespace {

struct SumLaunch {
  LaunchList list;
  GradientTerms terms;
  DeviceArray sums;
  uint32_t dim;
};

constexpr uint32_t PartsOf(uint32_t dim) { return (dim + kWarpThreads - 1) / kWarpThreads; }

// A warp sums 32 elements of a row, one in each lane: a key with many gradients is slow, and its
// warps share the work.
__global__ void __launch_bounds__(kBlockThreads)
    SumKernel(const __grid_constant__ SumLaunch launch) {
  const GridThread thread;
  const uint32_t parts = PartsOf(launch.dim);
  const uint64_t warps = thread.threads / kWarpThreads;
  for (uint64_t part = thread.number / kWarpThreads; part < launch.list.count * parts;
       part += warps) {
    const uint64_t k = part / parts;
    const uint32_t i =
        static_cast<uint32_t>(part % parts) * kWarpThreads + threadIdx.x % kWarpThreads;
    if (i >= launch.dim) continue;
    const DeviceRow row = launch.list.rows[k];
    auto* const sum = reinterpret_cast<float*>(launch.sums.rows + k * launch.sums.stride_bytes);
    sum[i] = SumElement(row, launch.terms, i);
  }
}

struct NotFiniteLaunch {
  DeviceArray gradients;
  uint32_t rows;
  uint32_t dim;
  NotFiniteWords* words;
  uint64_t* first_bad;
};

__device__ bool IsRowNotFinite(const NotFiniteLaunch& launch, uint64_t row) {
  auto* const values =
      reinterpret_cast<const float*>(launch.gradients.rows + row * launch.gradients.stride_bytes);
  bool is_bad = false;
#pragma unroll 4
  for (uint32_t i = threadIdx.x % kWarpThreads; i < launch.dim; i += kWarpThreads) {
    is_bad |= IsNotFinite(values[i]);
  }
  return __any_sync(0xFFFFFFFFu, is_bad);
}

// The last block to end writes the result. The atomic operations are on whole numbers, so that
// their order changes nothing.
__global__ void __launch_bounds__(kBlockThreads)
    FindNotFiniteKernel(const __grid_constant__ NotFiniteLaunch launch) {
  const GridThread thread;
  const uint64_t warps = thread.threads / kWarpThreads;
  for (uint64_t row = thread.number / kWarpThreads; row < launch.rows; row += warps) {
    if (!IsRowNotFinite(launch, row)) continue;
    if (threadIdx.x % kWarpThreads == 0) {
      atomicMin(&launch.words->first_bad, static_cast<unsigned long long>(row));
      __threadfence();  // before this block counts as done
    }
    break;  // the later rows of this warp come behind it
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (atomicAdd(&launch.words->blocks_done, 1u) + 1 != gridDim.x) return;
  __threadfence();
  const unsigned long long first = atomicExch(&launch.words->first_bad, ~0ull);
  *launch.first_bad = first < launch.rows ? first : launch.rows;
  launch.words->blocks_done = 0;
}

}  // namespace

cudaError_t LaunchSums(const LaunchPlace& place, const LaunchList& list, const GradientTerms& terms,
                       uint32_t dim, const DeviceArray& sums) {
  const SumLaunch launch = {list, terms, sums, dim};
  const cudaLaunchConfig_t config = GridOf(place, list.count * PartsOf(dim) * kWarpThreads);
  return cudaLaunchKernelEx(&config, SumKernel, launch);
}

cudaError_t LaunchFindNotFinite(const LaunchPlace& place, const DeviceArray& gradients,
                                uint32_t rows, uint32_t dim, NotFiniteWords* words,
                                uint64_t* first_bad) {
  const NotFiniteLaunch launch = {gradients, rows, dim, words, first_bad};
  const cudaLaunchConfig_t config = GridOf(place, uint64_t{rows > 0 ? rows : 1} * kWarpThreads);
  return cudaLaunchKernelEx(&config, FindNotFiniteKernel, launch);
}

}  // namespace embank
