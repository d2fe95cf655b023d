// The lanes of a warp that work on one row, and the grid of warps that work on many.
#ifndef EMBANK_GPU_WARP_LANES_CUH_
#define EMBANK_GPU_WARP_LANES_CUH_

#include <cstdint>

#include "gpu/launch.h"
#include "tiers/row/update_rule.h"

namespace embank {

inline constexpr uint32_t kWarpThreads = 32;
inline constexpr uint32_t kBlockThreads = 256;
static_assert(kReductionLanes == kWarpThreads, "lane j adds the elements j, j + 32, ...");

// Every thread of the grid has a number; `threads` is how many there are.
struct GridThread {
  uint64_t number = uint64_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  uint64_t threads = uint64_t{gridDim.x} * kBlockThreads;
};

// A one-dimensional grid for so many threads of work. It is at most as large as all
// multiprocessors hold at once (2,048 threads each): threads then go on to further work.
inline cudaLaunchConfig_t GridOf(const LaunchPlace& place, uint64_t threads) {
  const uint64_t blocks = (threads + kBlockThreads - 1) / kBlockThreads;
  const uint64_t blocks_max = uint64_t{place.multiprocessors} * (2048 / kBlockThreads);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks < blocks_max ? blocks : blocks_max));
  config.blockDim = dim3(kBlockThreads);
  config.stream = place.stream;
  return config;
}

// As HostLanes of gpu/payload_step.h. All lanes of the warp call each function together.
struct WarpLanes {
  uint32_t lane = threadIdx.x % kWarpThreads;

  __device__ bool IsFirst() const { return lane == 0; }
  __device__ void Sync() const { __syncwarp(); }

  // Each lane adds its own squares; the halves are folded onto each other. All get the sum.
  template <typename Gradient>
  __device__ float SumOfSquares(uint32_t dim, Gradient gradient) const {
    float sum = 0.0f;
    for (uint32_t i = lane; i < dim; i += kWarpThreads) {
      const float g = gradient(i);
      sum = sum + g * g;
    }
    for (uint32_t half = kWarpThreads / 2; half > 0; half /= 2) {
      sum = sum + __shfl_down_sync(0xFFFFFFFFu, sum, half);
    }
    return __shfl_sync(0xFFFFFFFFu, sum, 0);
  }

  // A lane loads some elements before it stores the first of them: so the loads overlap.
  template <typename Step>
  __device__ void Update(uint32_t dim, const Step& step) const {
    constexpr uint32_t kAtOnce = 4;
    for (uint32_t begin = lane; begin < dim; begin += kAtOnce * kWarpThreads) {
      StepElement elements[kAtOnce];
#pragma unroll
      for (uint32_t k = 0; k < kAtOnce; ++k) {
        const uint32_t i = begin + k * kWarpThreads;
        if (i < dim) elements[k] = step.Load(i);
      }
#pragma unroll
      for (uint32_t k = 0; k < kAtOnce; ++k) {
        const uint32_t i = begin + k * kWarpThreads;
        if (i >= dim) break;
        step.Step(&elements[k]);
        step.Store(i, elements[k]);
      }
    }
  }
};

}  // namespace embank

#endif  // EMBANK_GPU_WARP_LANES_CUH_
