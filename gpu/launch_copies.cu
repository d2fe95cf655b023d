#include <algorithm>
#include <bit>

#include "gpu/copy_pieces.h"
#include "gpu/launch.h"
#include "gpu/warp_lanes.cuh"

namespace embank {
namespace {

// Numbers of rows, plus those of a grid, have 32 bits: registers are scarce.
static_assert(kListRowsMax < uint64_t{1} << 32);

struct CopyNumbers {
  LaunchPayloads first;
  LaunchPayloads second;
  uint32_t count;  // of both lists
  DeviceArray rows;
  uint32_t bytes;
  uint32_t lanes;  // of a warp that copy a row together: a power of two
  uint32_t chunk;  // rows of the lists that a warp reads together: 1 .. 32
};

// The two ends of one row's copy.
struct CopyEnds {
  std::byte* to;
  const std::byte* from;
};

template <bool kIsGather>
__device__ CopyEnds EndsOf(const CopyNumbers& numbers, uint32_t k) {
  const DeviceRow* list = numbers.first.list.rows;
  std::byte* parts = numbers.first.parts;
  if (k >= numbers.first.list.count) {
    list = numbers.second.list.rows - numbers.first.list.count;
    parts = numbers.second.parts;
  }
  const DeviceRow row = list[k];
  std::byte* const payload = parts + row.offset_bytes;
  std::byte* const other = numbers.rows.rows + row.index * numbers.rows.stride_bytes;
  if constexpr (kIsGather) return {other, payload};
  return {payload, other};
}

__device__ CopyEnds EndsOfLane(const CopyEnds& mine, uint32_t lane) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  const auto to = __shfl_sync(kAll, reinterpret_cast<unsigned long long>(mine.to), lane);
  const auto from = __shfl_sync(kAll, reinterpret_cast<unsigned long long>(mine.from), lane);
  return {reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from)};
}

// The lanes of a warp read a chunk of the lists together, since lists are in host memory mostly;
// then groups of lanes copy a row each.
template <uint32_t kUnit, bool kIsGather>
__global__ void __launch_bounds__(kBlockThreads)
    CopyKernel(const __grid_constant__ CopyNumbers numbers) {
  const GridThread thread;
  const auto warp = static_cast<uint32_t>(thread.number / kWarpThreads);
  const auto warps = static_cast<uint32_t>(thread.threads / kWarpThreads);
  const uint32_t lane = threadIdx.x % kWarpThreads;
  const uint32_t groups = kWarpThreads / numbers.lanes;
  const uint32_t pieces = CopyPieces(numbers.bytes, kUnit);
  for (uint32_t begin = warp * numbers.chunk; begin < numbers.count;
       begin += warps * numbers.chunk) {
    const uint32_t rest = numbers.count - begin;
    const uint32_t rows = rest < numbers.chunk ? rest : numbers.chunk;
    CopyEnds mine = {};
    if (lane < rows) mine = EndsOf<kIsGather>(numbers, begin + lane);
    for (uint32_t done = 0; done < rows; done += groups) {
      const uint32_t row = done + lane / numbers.lanes;
      const CopyEnds ends = EndsOfLane(mine, row % kWarpThreads);
      if (row >= rows) continue;
      for (uint32_t piece = lane & (numbers.lanes - 1); piece < pieces; piece += numbers.lanes) {
        CopyPiece<kUnit>(ends.to, ends.from, piece, numbers.bytes);
      }
    }
  }
}

// A chunk is as large as it can be with work for all warps that run at once.
template <uint32_t kUnit, bool kIsGather>
cudaError_t LaunchCopiesOf(const LaunchPlace& place, CopyNumbers numbers) {
  const uint32_t pieces = CopyPieces(numbers.bytes, kUnit);
  numbers.lanes = pieces < kWarpThreads ? std::bit_ceil(pieces) : kWarpThreads;
  const uint32_t warps = place.multiprocessors * (2048 / kWarpThreads);
  numbers.chunk =
      std::clamp(std::bit_floor(numbers.count / warps), kWarpThreads / numbers.lanes, kWarpThreads);
  const uint64_t chunks = (uint64_t{numbers.count} + numbers.chunk - 1) / numbers.chunk;
  const cudaLaunchConfig_t config = GridOf(place, chunks * kWarpThreads);
  return cudaLaunchKernelEx(&config, CopyKernel<kUnit, kIsGather>, numbers);
}

template <bool kIsGather>
cudaError_t LaunchCopiesInUnits(const LaunchPlace& place, const CopyNumbers& numbers) {
  // All payloads are at multiples of 16 from their memory, and so is that.
  const LaunchPayloads& any = numbers.first.list.count > 0 ? numbers.first : numbers.second;
  const CopySide payloads = {any.parts, 16};
  switch (CopyUnitBytes(payloads, {numbers.rows.rows, numbers.rows.stride_bytes})) {
    case 16:
      return LaunchCopiesOf<16, kIsGather>(place, numbers);
    case 8:
      return LaunchCopiesOf<8, kIsGather>(place, numbers);
    case 4:
      return LaunchCopiesOf<4, kIsGather>(place, numbers);
    default:
      return LaunchCopiesOf<2, kIsGather>(place, numbers);
  }
}

}  // namespace

cudaError_t LaunchCopies(const LaunchPlace& place, const LaunchPayloads& first,
                         const LaunchPayloads& second, const DeviceArray& rows, uint32_t bytes,
                         bool is_gather) {
  const uint64_t count = first.list.count + second.list.count;
  const CopyNumbers numbers = {first, second, static_cast<uint32_t>(count), rows, bytes, 0, 0};
  return is_gather ? LaunchCopiesInUnits<true>(place, numbers)
                   : LaunchCopiesInUnits<false>(place, numbers);
}

}  // namespace embank
