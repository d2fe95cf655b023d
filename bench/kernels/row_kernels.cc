// Making and copying rows, from few enough rows that they lie in the cache to far too many.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "base/hash.h"
#include "store/table/initializer.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_layout.h"

namespace embank {
namespace {

constexpr uint64_t kBatch = 4096;

void Initialize(benchmark::State& state) {
  const Initializer initializer{static_cast<InitializerKind>(state.range(0)), -0.05f, 0.05f};
  const auto dim = static_cast<uint32_t>(state.range(1));
  std::vector<std::byte> vector(dim * sizeof(float));
  const uint64_t table_seed = TableSeed(1, TableHash("rows"));
  Key key = 0;
  for (auto _ : state) {
    InitializeVector(initializer, table_seed, key++, ValueType::kF32, dim, vector.data());
    benchmark::DoNotOptimize(vector.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * dim);
}
BENCHMARK(Initialize)
    ->ArgNames({"kind", "dim"})
    ->ArgsProduct({{static_cast<int64_t>(InitializerKind::kZero),
                    static_cast<int64_t>(InitializerKind::kUniform),
                    static_cast<int64_t>(InitializerKind::kNormal)},
                   {32, 128}});

void CopyRows(benchmark::State& state) {
  const auto dim = static_cast<uint32_t>(state.range(0));
  const auto rows = static_cast<uint64_t>(state.range(1));
  const RowLayout layout = MakeRowLayout(dim, ValueType::kF32, Optimizer::kNone);
  std::vector<std::byte> slab(rows * layout.row_bytes);
  std::vector<std::byte> out(kBatch * layout.vector_bytes);
  uint64_t position = 0;
  for (auto _ : state) {
    for (uint64_t i = 0; i < kBatch; ++i) {
      std::byte* const row = slab.data() + Mix(position++) % rows * layout.row_bytes;
      CopyFromRow(layout.Vector(row), layout.vector_bytes, out.data() + i * layout.vector_bytes);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBatch));
}
BENCHMARK(CopyRows)->ArgNames({"dim", "rows"})->ArgsProduct({{8, 32, 128}, {1 << 10, 1 << 20}});

}  // namespace
}  // namespace embank
