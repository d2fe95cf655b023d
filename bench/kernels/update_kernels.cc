// One optimizer step on a row that lies in the cache.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "base/random.h"
#include "tiers/row/row_layout.h"
#include "tiers/row/row_update.h"

namespace embank {
namespace {

void Step(benchmark::State& state) {
  const auto optimizer = static_cast<Optimizer>(state.range(0));
  const auto value_type = static_cast<ValueType>(state.range(1));
  const auto dim = static_cast<uint32_t>(state.range(2));
  const RowLayout layout = MakeRowLayout(dim, value_type, optimizer);
  const UpdateRule rule;
  // uint64_t: rows are aligned to more than a byte.
  std::vector<uint64_t> memory(layout.row_bytes / sizeof(uint64_t));
  auto* const row = reinterpret_cast<std::byte*>(memory.data());
  ResetState(layout, rule, row);
  RowImage former;
  const CounterRandom random(1);
  std::vector<float> gradient(dim);
  uint64_t position = 0;
  for (auto _ : state) {
    for (uint32_t i = 0; i < dim; ++i) gradient[i] = random.UnitFloat(position++) - 0.5f;
    benchmark::DoNotOptimize(StepRow(layout, rule, 0, gradient.data(), row, former.bytes));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Step)
    ->ArgNames({"optimizer", "type", "dim"})
    ->ArgsProduct({{static_cast<int64_t>(Optimizer::kSgd),
                    static_cast<int64_t>(Optimizer::kAdagrad),
                    static_cast<int64_t>(Optimizer::kRowwiseAdagrad),
                    static_cast<int64_t>(Optimizer::kAdam), static_cast<int64_t>(Optimizer::kFtrl)},
                   {static_cast<int64_t>(ValueType::kF32), static_cast<int64_t>(ValueType::kF16),
                    static_cast<int64_t>(ValueType::kBf16)},
                   {32, 128}});

}  // namespace
}  // namespace embank
