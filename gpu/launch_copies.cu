#include <bit>

#include "gpu/copy_pieces.h"
#include "gpu/launch.h"
#include "gpu/warp_lanes.cuh"

namespace embank {
namespace {

struct CopyNumbers {
  LaunchList list;
  std::byte* payloads;
  DeviceArray rows;
  uint32_t bytes;
  uint32_t lanes;  // of a warp that copy a row together: a power of two
};

// The two ends of one row's copy.
struct CopyEnds {
  std::byte* to;
  const std::byte* from;
};

template <bool kIsGather>
__device__ CopyEnds EndsOf(const CopyNumbers& numbers, uint64_t k) {
  const DeviceRow row = numbers.list.rows[k];
  std::byte* const payload = numbers.payloads + row.offset_bytes;
  std::byte* const other = numbers.rows.rows + row.index * numbers.rows.stride_bytes;
  if constexpr (kIsGather) return {other, payload};
  return {payload, other};
}

// Copies one piece of some rows: all loads come before the first store.
template <uint32_t kUnit, uint32_t kAtOnce>
__device__ void CopyPieceOfRows(const CopyEnds (&ends)[kAtOnce], uint32_t rows, uint32_t piece,
                                uint32_t bytes) {
  const uint32_t offset = piece * kUnit;
  if (bytes - offset < kUnit) {
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      if (k < rows) CopyRest(ends[k].to, ends[k].from, offset, bytes);
    }
    return;
  }
  using Unit = CopyUnit<kUnit>;
  Unit units[kAtOnce];
#pragma unroll
  for (uint32_t k = 0; k < kAtOnce; ++k) {
    if (k < rows) units[k] = *reinterpret_cast<const Unit*>(ends[k].from + offset);
  }
#pragma unroll
  for (uint32_t k = 0; k < kAtOnce; ++k) {
    if (k < rows) *reinterpret_cast<Unit*>(ends[k].to + offset) = units[k];
  }
}

// A group of lanes copies kAtOnce rows at a time.
template <uint32_t kUnit, bool kIsGather, uint32_t kAtOnce>
__global__ void __launch_bounds__(kBlockThreads)
    CopyKernel(const __grid_constant__ CopyNumbers numbers) {
  const GridThread thread;
  const uint32_t lane = threadIdx.x & (numbers.lanes - 1);
  const uint32_t pieces = CopyPieces(numbers.bytes, kUnit);
  const uint64_t groups = thread.threads / numbers.lanes;
  for (uint64_t first = thread.number / numbers.lanes * kAtOnce; first < numbers.list.count;
       first += groups * kAtOnce) {
    const uint64_t rest = numbers.list.count - first;
    const uint32_t rows = rest < kAtOnce ? static_cast<uint32_t>(rest) : kAtOnce;
    CopyEnds ends[kAtOnce];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      if (k < rows) ends[k] = EndsOf<kIsGather>(numbers, first + k);
    }
    for (uint32_t piece = lane; piece < pieces; piece += numbers.lanes) {
      CopyPieceOfRows<kUnit>(ends, rows, piece, numbers.bytes);
    }
  }
}

// Groups copy two rows at a time once the list has two for each group that can run at once. With
// four, a thread needs all of 64 registers.
constexpr uint32_t kRowsAtOnce = 2;

template <uint32_t kUnit, bool kIsGather>
cudaError_t LaunchCopiesOf(const LaunchPlace& place, CopyNumbers numbers) {
  const uint32_t pieces = CopyPieces(numbers.bytes, kUnit);
  numbers.lanes = pieces < kWarpThreads ? std::bit_ceil(pieces) : kWarpThreads;
  const uint64_t threads = numbers.list.count * numbers.lanes;
  if (threads < uint64_t{place.multiprocessors} * 2048 * kRowsAtOnce) {
    const cudaLaunchConfig_t config = GridOf(place, threads);
    return cudaLaunchKernelEx(&config, CopyKernel<kUnit, kIsGather, 1>, numbers);
  }
  const cudaLaunchConfig_t config = GridOf(place, threads / kRowsAtOnce);
  return cudaLaunchKernelEx(&config, CopyKernel<kUnit, kIsGather, kRowsAtOnce>, numbers);
}

template <bool kIsGather>
cudaError_t LaunchCopiesInUnits(const LaunchPlace& place, const CopyNumbers& numbers) {
  const CopySide payloads = {numbers.payloads, 16};
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

cudaError_t LaunchCopies(const LaunchPlace& place, const LaunchList& list, std::byte* payloads,
                         const DeviceArray& rows, uint32_t bytes, bool is_gather) {
  const CopyNumbers numbers = {list, payloads, rows, bytes, 0};
  return is_gather ? LaunchCopiesInUnits<true>(place, numbers)
                   : LaunchCopiesInUnits<false>(place, numbers);
}

}  // namespace embank
