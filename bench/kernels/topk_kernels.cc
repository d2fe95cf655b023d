// The planner of the top-k flush: what it costs before the first row moves.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "bench/huge_page_allocator.h"
#include "store/payload/topk_plan.h"

namespace embank {
namespace {

constexpr uint64_t kStrideBytes = 272;  // a row of 64 floats and its header
constexpr uint32_t kPayloadBytes = 256;

// Heats as a Zipf stream leaves them: few rows of much heat, many of one or two lookups.
enum HeatShape : int64_t { kZipfHeat = 0, kEqualHeat = 1, kUniformHeat = 2 };

uint32_t HeatOfRow(HeatShape shape, uint64_t row, uint64_t rows) {
  const uint64_t scattered = Mix(row + 1) % rows;
  switch (shape) {
    case kZipfHeat:
      return static_cast<uint32_t>(std::min<uint64_t>(kHeatMax, 2 * rows / (scattered + 1)));
    case kEqualHeat:
      return 3;
    case kUniformHeat:
      break;
  }
  return static_cast<uint32_t>(scattered & kHeatMax);
}

// Headers lie in DRAM as rows' headers do, so that each one costs a line of memory. Range 0: rows;
// range 1: HeatShape; range 2: share of the rows that fits, in thousandths.
void PlanTopkRows(benchmark::State& state) {
  const auto rows = static_cast<uint64_t>(state.range(0));
  const auto shape = static_cast<HeatShape>(state.range(1));
  const uint64_t budget_bytes = rows * kPayloadBytes / 1000 * static_cast<uint64_t>(state.range(2));
  MemoryBudget budget(0);
  std::vector<std::byte, HugePageAllocator<std::byte>> memory(
      rows * kStrideBytes, HugePageAllocator<std::byte>(&budget));
  const auto header_of = [&memory](uint64_t row) {
    return reinterpret_cast<RowHeader*>(memory.data() + row * kStrideBytes);
  };
  for (uint64_t row = 0; row < rows; ++row) {
    header_of(row)->key = Mix(row);
    header_of(row)->identity = 5;
    header_of(row)->usage = PackUsage(0, HeatOfRow(shape, row, rows), 0);
  }
  const auto source = [&](TopkVisit visit) {
    for (uint64_t row = 0; row < rows; ++row) {
      const RowHeader* const header = header_of(row);
      const RowMark mark = LoadMark(header);
      visit({.location = Location{row * (kStrideBytes / kLocationUnitBytes)},
             .heat = HeatOf(mark.usage, 0),
             .payload_bytes = kPayloadBytes,
             .table = TableOf(mark.identity),
             .key = LoadKey(header),
             .in_hbm = false});
    }
  };
  for (auto _ : state) {
    const StatusOr<TopkPlan> plan = PlanTopk(source, {.budget_bytes = budget_bytes});
    EMBANK_CHECK(plan.ok());
    benchmark::DoNotOptimize(plan->arrivals.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(PlanTopkRows)
    ->ArgNames({"rows", "heats", "thousandths"})
    ->ArgsProduct({{1'000'000}, {kZipfHeat, kEqualHeat, kUniformHeat}, {1, 10, 200, 500, 1000}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace embank
