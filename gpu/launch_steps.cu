#include "gpu/launch.h"
#include "gpu/payload_step.h"
#include "gpu/warp_lanes.cuh"

namespace embank {
namespace {

struct StepLaunch {
  DeviceRow* list;
  uint64_t count;
  std::byte* row_memory;
  DeviceArray gradients;
  DeviceArray seeds;
  StepNumbers numbers;
};

// A warp makes the step of a row. No other warp writes it, so that nothing is atomic.
template <Optimizer kOptimizer, ValueType kType>
__global__ void __launch_bounds__(kBlockThreads)
    StepKernel(const __grid_constant__ StepLaunch launch) {
  const GridThread thread;
  const WarpLanes lanes;
  const uint64_t warps = thread.threads / kWarpThreads;
  for (uint64_t k = thread.number / kWarpThreads; k < launch.count; k += warps) {
    const DeviceRow row = launch.list[k];
    const bool is_made = PayloadStep<kOptimizer, kType>(
                             launch.numbers, launch.row_memory + row.offset_bytes,
                             launch.gradients.rows + row.index * launch.gradients.stride_bytes,
                             RoundingSeedAt(launch.numbers.rule, launch.seeds, k))
                             .Run(lanes);
    if (!is_made && lanes.IsFirst()) launch.list[k].count = 0;
  }
}

}  // namespace

cudaError_t LaunchSteps(const LaunchPlace& place, std::span<DeviceRow> list, std::byte* row_memory,
                        const RowLayout& layout, const UpdateRule& rule,
                        const DeviceArray& gradients, const DeviceArray& seeds) {
  const StepLaunch launch = {list.data(), list.size(), row_memory,
                             gradients,   seeds,       NumbersOf(layout, rule)};
  const cudaLaunchConfig_t config = GridOf(place, list.size() * kWarpThreads);
  cudaError_t error = cudaErrorInvalidValue;
  WithStepOf(layout.optimizer, layout.value_type, [&]<Optimizer kOptimizer, ValueType kType>() {
    error = cudaLaunchKernelEx(&config, StepKernel<kOptimizer, kType>, launch);
  });
  return error;
}

}  // namespace embank
