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
  template <typename Number, typename Gradient>
  __device__ Number SumOfSquares(uint32_t dim, Gradient gradient) const {
    Number sum = 0;
    for (uint32_t i = lane; i < dim; i += kWarpThreads) {
      const auto g = static_cast<Number>(gradient(i));
      sum = sum + g * g;
    }
    for (uint32_t half = kWarpThreads / 2; half > 0; half /= 2) {
      sum = sum + __shfl_down_sync(0xFFFFFFFFu, sum, half);
    }
    return __shfl_sync(0xFFFFFFFFu, sum, 0);
  }

  // A row of up to kAtOnce elements for each lane stays in registers until all are known to be
  // finite. The elements of a longer row are stepped twice: first to see that, then to be stored.
  template <typename Step>
  __device__ bool Update(uint32_t dim, const Step& step, uint32_t not_finite) const {
    StepElement elements[kAtOnce];
    if (dim <= kAtOnce * kWarpThreads) {
      not_finite |= StepSome(dim, step, lane, elements);
      if (__any_sync(0xFFFFFFFFu, not_finite != 0)) return false;
      StoreSome(dim, step, lane, elements);
      return true;
    }
    for (uint32_t begin = lane; begin < dim; begin += kAtOnce * kWarpThreads) {
      not_finite |= StepSome(dim, step, begin, elements);
    }
    if (__any_sync(0xFFFFFFFFu, not_finite != 0)) return false;
    for (uint32_t begin = lane; begin < dim; begin += kAtOnce * kWarpThreads) {
      StepSome(dim, step, begin, elements);
      StoreSome(dim, step, begin, elements);
    }
    return true;
  }

 private:
  static constexpr uint32_t kAtOnce = 4;

  // A lane loads some elements before it steps the first of them: so the loads overlap.
  template <typename Step>
  static __device__ uint32_t StepSome(uint32_t dim, const Step& step, uint32_t begin,
                                      StepElement* elements) {
    uint32_t not_finite = 0;
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      const uint32_t i = begin + k * kWarpThreads;
      if (i < dim) elements[k] = step.Load(i);
    }
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      const uint32_t i = begin + k * kWarpThreads;
      if (i < dim) not_finite |= step.Step(i, &elements[k]);
    }
    return not_finite;
  }

  template <typename Step>
  static __device__ void StoreSome(uint32_t dim, const Step& step, uint32_t begin,
                                   const StepElement* elements) {
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      const uint32_t i = begin + k * kWarpThreads;
      if (i < dim) step.Store(i, elements[k]);
    }
  }
};

}  // namespace embank

#endif  // EMBANK_GPU_WARP_LANES_CUH_
