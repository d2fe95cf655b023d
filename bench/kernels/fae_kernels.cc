// The parts of a calibration: counts of a sample beside those of a whole log, and the classifier of
// inputs beside the probes that it cannot do without.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/threads/executor.h"
#include "train/fae/input_classifier.h"
#include "train/generator/click_generator.h"
#include "train/popularity/id_counts.h"
#include "train/popularity/id_places.h"
#include "train/popularity/sample.h"

namespace embank {
namespace {

constexpr uint32_t kInputs = 1u << 20;
constexpr uint32_t kBatchInputs = 1u << 14;
constexpr uint32_t kSchemaDivisor = 100;

// The batches of a log with 26 id features.
const std::vector<ClickBatch>& Inputs() {
  static const std::vector<ClickBatch> batches = [] {
    const auto generator = *ClickGenerator::Create(
        *MakeClickSchema("criteo-kaggle", {.divisor = kSchemaDivisor}), {}, nullptr);
    std::vector<ClickBatch> all(kInputs / kBatchInputs);
    for (ClickBatch& batch : all) EMBANK_CHECK(*generator->Next(kBatchInputs, &batch) > 0);
    return all;
  }();
  return batches;
}

// All ids of the inputs are hot, or those of inputs `begin` and later: an input is cold as soon as
// one id is.
HotIds MakeHotIds(size_t begin) {
  HotIds ids;
  const size_t columns = Inputs()[0].features.size();
  ids.tables.resize(columns);
  for (uint32_t i = 0; i < columns; ++i) {
    ids.table_of_column.push_back(i);
    for (size_t batch = begin; batch < Inputs().size(); ++batch) {
      for (const Key id : Inputs()[batch].features[i].ids) ids.tables[i].Add(id);
    }
  }
  return ids;
}

// Whether all inputs are hot, which takes all probes; and the number of threads.
void ClassifyInputs(benchmark::State& state) {
  const HotIds ids = MakeHotIds(state.range(0) == 1 ? 0 : Inputs().size() / 4);
  InputClassifier classifier(&ids);
  const auto threads = static_cast<uint32_t>(state.range(1));
  const std::unique_ptr<Executor> executor = threads == 1 ? nullptr : MakeThreadPool(threads);
  std::vector<uint8_t> is_hot;
  uint64_t hot = 0;
  for (auto _ : state) {
    hot = 0;
    for (const ClickBatch& batch : Inputs()) {
      classifier.Classify(batch, {}, executor.get(), &is_hot);
      hot += static_cast<uint64_t>(std::ranges::count(is_hot, 1));
    }
  }
  state.SetItemsProcessed(state.iterations() * kInputs);
  state.counters["hot share"] = static_cast<double>(hot) / kInputs;
}
BENCHMARK(ClassifyInputs)
    ->ArgNames({"all hot", "threads"})
    ->Args({1, 1})
    ->Args({1, 2})
    ->Args({0, 1})
    ->Args({0, 2})
    ->UseRealTime();

// The floor: a probe for each id, and nothing else.
void ProbeAllIds(benchmark::State& state) {
  const HotIds ids = MakeHotIds(0);
  std::vector<uint32_t> places(kBatchInputs);
  for (auto _ : state) {
    for (const ClickBatch& batch : Inputs()) {
      for (size_t i = 0; i < batch.features.size(); ++i) {
        ids.tables[i].PlacesOf(batch.features[i].ids, places.data());
        benchmark::DoNotOptimize(places.data());
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * kInputs);
}
BENCHMARK(ProbeAllIds)->UseRealTime();

// Counts parsed ids: all of them, or those of a sample of 5 % of the inputs.
void CountIds(benchmark::State& state) {
  const bool is_sampled = state.range(0) == 1;
  const InputSample sample(kSampledShareDefault, 1);
  Inputs();  // it makes the log when it is first called
  uint64_t counted = 0;
  for (auto _ : state) {
    std::vector<IdCounts> counts(Inputs()[0].features.size());
    uint64_t position = 0;
    for (const ClickBatch& batch : Inputs()) {
      std::vector<uint32_t> sampled;
      for (uint32_t i = 0; is_sampled && i < batch.samples; ++i) {
        if (sample.Has(position++)) sampled.push_back(i);
      }
      for (size_t i = 0; i < counts.size(); ++i) {
        if (is_sampled) {
          std::vector<Key> ids;
          batch.features[i].AppendIdsOf(sampled, &ids);
          counts[i].Add(ids);
        } else {
          counts[i].Add(batch.features[i].ids);
        }
      }
    }
    counted = counts[0].occurrences();
  }
  state.SetItemsProcessed(state.iterations() * kInputs);
  state.counters["counted share"] = static_cast<double>(counted) / kInputs;
}
BENCHMARK(CountIds)->ArgNames({"sampled"})->Arg(0)->Arg(1)->UseRealTime();

}  // namespace
}  // namespace embank
