// The parts of a trainer: reading and generating samples, and layers beside their products alone.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/threads/clock.h"
#include "train/data/click_reader.h"
#include "train/data/criteo_parser.h"
#include "train/dense/gemm.h"
#include "train/dense/interaction.h"
#include "train/dense/linear.h"
#include "train/generator/click_generator.h"
#include "train/generator/criteo_writer.h"
#include "train/generator/zipf.h"
#include "train/models/dlrm.h"
#include "train/models/graph_run.h"
#include "train/models/model_table.h"
#include "train/pipeline/unique_partition.h"
#include "train/trainer.h"

namespace embank {
namespace {

constexpr uint32_t kLines = 20'000;
constexpr uint32_t kBatchSamples = 1024;
// A slice of a batch of 1,024; one of 4,096 has four times as many samples.
constexpr uint32_t kSliceSamples = 128;

std::unique_ptr<ClickGenerator> MakeKaggleGenerator() {
  return *ClickGenerator::Create(*MakeClickSchema("criteo-kaggle"), {}, nullptr);
}

// A file in memory, so that no disk is measured.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  StatusOr<size_t> Read(std::span<std::byte> out) override {
    const size_t count = std::min(out.size(), bytes_.size());
    std::copy_n(bytes_.begin(), count, out.begin());
    bytes_ = bytes_.subspan(count);
    return count;
  }
  double FractionRead() const override { return 0.0; }

 private:
  std::span<const std::byte> bytes_;
};

void ReadCriteo(benchmark::State& state) {
  std::string lines;
  EMBANK_CHECK(AppendCriteoLines(*MakeKaggleGenerator(), 0, kLines, &lines).ok());
  ClickBatch batch;
  for (auto _ : state) {
    ClickReader reader("memory", std::make_unique<MemorySource>(std::as_bytes(std::span(lines))),
                       std::make_unique<CriteoParser>(), 0.0, 0);
    uint32_t samples = 0;
    while (const uint32_t count = *reader.Next(kBatchSamples, &batch)) samples += count;
    EMBANK_CHECK(samples == kLines);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * lines.size()));
  state.SetItemsProcessed(state.iterations() * kLines);
}
BENCHMARK(ReadCriteo);

void GenerateKaggle(benchmark::State& state) {
  const std::unique_ptr<ClickGenerator> generator = MakeKaggleGenerator();
  ClickBatch batch;
  for (auto _ : state) EMBANK_CHECK(*generator->Next(kBatchSamples, &batch) == kBatchSamples);
  state.SetItemsProcessed(state.iterations() * kBatchSamples);
}
BENCHMARK(GenerateKaggle);

// The matrices of a linear layer and of its gradients.
struct LayerMemory {
  LayerMemory(uint32_t samples, uint32_t inputs, uint32_t outputs)
      : floats(2 * (uint64_t{samples} * (inputs + outputs) + uint64_t{inputs} * outputs + outputs),
               0.5f) {
    EMBANK_CHECK(PrepareGemm().ok());
    float* next = floats.data();
    auto Take = [&](uint32_t rows, uint32_t columns) {
      return Matrix(std::exchange(next, next + uint64_t{rows} * columns), rows, columns);
    };
    input = Take(samples, inputs), input_gradient = Take(samples, inputs);
    output = Take(samples, outputs), output_gradient = Take(samples, outputs);
    weights = Take(outputs, inputs), weight_gradient = Take(outputs, inputs);
    bias = Take(1, outputs).Row(0), bias_gradient = Take(1, outputs).Row(0);
  }

  std::vector<float> floats;
  Matrix input, input_gradient, output, output_gradient, weights, weight_gradient;
  std::span<float> bias, bias_gradient;
};

void SetFlops(benchmark::State& state) {
  const auto flops = static_cast<double>(6 * kSliceSamples * state.range(0) * state.range(1));
  state.counters["flops"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void LinearLayer(benchmark::State& state) {
  LayerMemory m(kSliceSamples, static_cast<uint32_t>(state.range(0)),
                static_cast<uint32_t>(state.range(1)));
  for (auto _ : state) {
    LinearForward(m.input, m.weights, m.bias, m.output);
    LinearBackward(m.input, m.weights, m.output_gradient,
                   {m.weight_gradient, m.bias_gradient, m.input_gradient});
  }
  SetFlops(state);
}
BENCHMARK(LinearLayer)->Args({13, 512})->Args({512, 256})->Args({367, 512})->Args({1024, 1024});

// The products of the layer above and nothing else.
void LinearProducts(benchmark::State& state) {
  LayerMemory m(kSliceSamples, static_cast<uint32_t>(state.range(0)),
                static_cast<uint32_t>(state.range(1)));
  for (auto _ : state) {
    MultiplyTransposed(m.input, m.weights, Accumulation::kReplace, m.output);
    TransposedMultiply(m.output_gradient, m.input, Accumulation::kReplace, m.weight_gradient);
    Multiply(m.output_gradient, m.weights, Accumulation::kReplace, m.input_gradient);
  }
  SetFlops(state);
}
BENCHMARK(LinearProducts)->Args({13, 512})->Args({512, 256})->Args({367, 512})->Args({1024, 1024});

// Forward and backward for a slice of RMC2: 27 vectors of 16 values.
void DotInteraction(benchmark::State& state) {
  constexpr uint32_t kVectors = 27, kValues = 16;
  EMBANK_CHECK(PrepareGemm().ok());
  std::vector<float> values(kVectors * kSliceSamples * kValues, 0.5f), gradient_values = values;
  std::vector<float> pairs(kSliceSamples * PairCount(kVectors), 0.5f);
  std::vector<ConstMatrix> vectors;
  std::vector<Matrix> gradients;
  for (uint32_t v = 0; v < kVectors; ++v) {
    const uint64_t begin = uint64_t{v} * kSliceSamples * kValues;
    vectors.emplace_back(values.data() + begin, kSliceSamples, kValues);
    gradients.emplace_back(gradient_values.data() + begin, kSliceSamples, kValues);
  }
  const Matrix output(pairs.data(), kSliceSamples, PairCount(kVectors));
  for (auto _ : state) {
    DotInteractionForward(vectors, output);
    DotInteractionBackward(vectors, output, gradients);
  }
  state.SetItemsProcessed(state.iterations() * kSliceSamples);
}
BENCHMARK(DotInteraction);

constexpr uint32_t kRmc2Features = 26, kRmc2Dim = 16;

// RMC2's dense part for a slice, forward and backward, without the update.
void Rmc2Slice(benchmark::State& state) {
  EMBANK_CHECK(PrepareGemm().ok());
  const auto samples = static_cast<uint32_t>(state.range(0));
  const LayerGraph graph =
      MakeDlrm({13, std::vector<uint32_t>(kRmc2Features, kRmc2Dim)}, Rmc2Layers());
  std::vector<float> weights(graph.parameters()), gradients(weights.size());
  graph.Initialize(1, weights);
  std::vector<float> values(samples * kRmc2Features * kRmc2Dim, 0.1f);
  std::vector<float> value_gradients = values, dense(samples * 13, 0.5f);
  std::vector<ConstMatrix> features;
  std::vector<Matrix> feature_gradients;
  for (uint32_t f = 0; f < kRmc2Features; ++f) {
    const uint64_t begin = uint64_t{f} * samples * kRmc2Dim;
    features.emplace_back(values.data() + begin, samples, kRmc2Dim);
    feature_gradients.emplace_back(value_gradients.data() + begin, samples, kRmc2Dim);
  }
  const SliceInput input{{dense.data(), samples, 13}, features};
  GraphRun run(&graph, samples);
  std::vector<float> logit_gradients(samples);
  for (auto _ : state) {
    run.Forward(input, weights);
    std::ranges::fill(logit_gradients, 0.01f);
    run.Backward(input, weights, {logit_gradients.data(), samples, 1},
                 {gradients, feature_gradients});
  }
  state.SetItemsProcessed(state.iterations() * samples);
}
BENCHMARK(Rmc2Slice)->Arg(kSliceSamples)->Arg(4 * kSliceSamples);

// The products of RMC2's linear layers and its interaction, for the samples of a slice.
class Rmc2Multiplication {
 public:
  explicit Rmc2Multiplication(uint32_t samples)
      : samples_(samples), values_(kVectors * (kVectors + 2 * kRmc2Dim), 0.5f) {
    constexpr uint32_t kShapes[][2] = {{13, 512},  {512, 256}, {256, 64}, {64, 16},
                                       {367, 512}, {512, 256}, {256, 1}};
    layers_.reserve(std::size(kShapes));
    for (const auto& [inputs, outputs] : kShapes) layers_.emplace_back(samples, inputs, outputs);
  }

  void Run() {
    for (const LayerMemory& m : layers_) {
      MultiplyTransposed(m.input, m.weights, Accumulation::kReplace, m.output);
      TransposedMultiply(m.output_gradient, m.input, Accumulation::kReplace, m.weight_gradient);
      // Nobody needs the gradients of the dense features.
      if (m.input.columns == 13) continue;
      Multiply(m.output_gradient, m.weights, Accumulation::kReplace, m.input_gradient);
    }
    const Matrix vectors(values_.data(), kVectors, kRmc2Dim);
    const Matrix results(vectors.Row(0).data() + kVectors * kRmc2Dim, kVectors, kRmc2Dim);
    const Matrix pairs(results.Row(0).data() + kVectors * kRmc2Dim, kVectors, kVectors);
    for (uint32_t sample = 0; sample < samples_; ++sample) {
      MultiplyTransposed(vectors, vectors, Accumulation::kReplace, pairs);
      Multiply(pairs, vectors, Accumulation::kReplace, results);
    }
  }

 private:
  static constexpr uint32_t kVectors = kRmc2Features + 1;
  const uint32_t samples_;
  std::vector<float> values_;
  std::vector<LayerMemory> layers_;
};

void Rmc2Products(benchmark::State& state) {
  const auto samples = static_cast<uint32_t>(state.range(0));
  Rmc2Multiplication multiplication(samples);
  for (auto _ : state) multiplication.Run();
  state.SetItemsProcessed(state.iterations() * samples);
}
BENCHMARK(Rmc2Products)->Arg(kSliceSamples)->Arg(4 * kSliceSamples);

// A step of RMC2 beside its products on as many threads, in turns, in one process. The counters are
// milliseconds of a step: its products alone, its embedding part, and step / (products + embedding
// part). No data are read or made meanwhile.
void Rmc2Step(benchmark::State& state) {
  constexpr uint32_t kThreads = 2, kBatches = 8;
  const auto samples = static_cast<uint32_t>(state.range(0));
  const uint32_t slice_samples = samples / kSlicesDefault;
  const std::unique_ptr<ClickGenerator> generator =
      *ClickGenerator::Create(*MakeClickSchema("criteo-kaggle", {.divisor = 20}), {}, nullptr);
  std::vector<ClickBatch> batches(kBatches);
  for (ClickBatch& batch : batches) EMBANK_CHECK(*generator->Next(samples, &batch) == samples);
  TrainerOptions options;
  options.model = *FindModel("rmc2");
  options.batch = samples;
  options.threads = kThreads;
  options.store.worker_threads = kThreads;
  const std::unique_ptr<Trainer> trainer = *Trainer::Open(options, generator->columns());
  std::vector<float> logits;
  for (const ClickBatch& batch : batches) EMBANK_CHECK(trainer->Step(batch, &logits).ok());
  const std::unique_ptr<Executor> executor = MakeThreadPool(kThreads);
  std::vector<Rmc2Multiplication> multiplications;
  for (uint32_t i = 0; i < kThreads; ++i) multiplications.emplace_back(slice_samples);
  const StepSeconds before = trainer->pass()->seconds();
  uint64_t step_ns = 0, products_ns = 0;
  uint32_t next = 0;
  for (auto _ : state) {
    const uint64_t begin_ns = SteadyClock()->NowNs();
    EMBANK_CHECK(trainer->Step(batches[next++ % kBatches], &logits).ok());
    const uint64_t middle_ns = SteadyClock()->NowNs();
    executor->ParallelFor(kThreads, [&](uint32_t thread) {
      for (uint32_t i = 0; i < kSlicesDefault / kThreads; ++i) multiplications[thread].Run();
    });
    step_ns += middle_ns - begin_ns;
    products_ns += SteadyClock()->NowNs() - middle_ns;
    state.SetIterationTime(static_cast<double>(middle_ns - begin_ns) * 1e-9);
  }
  const StepSeconds after = trainer->pass()->seconds();
  const double iterations = static_cast<double>(state.iterations());
  const double products_ms = static_cast<double>(products_ns) * 1e-6 / iterations;
  const double embedding_ms =
      1e3 / iterations * (after.lookup + after.gradients - before.lookup - before.gradients);
  state.counters["products_ms"] = products_ms;
  state.counters["embedding_ms"] = embedding_ms;
  state.counters["ratio"] =
      static_cast<double>(step_ns) * 1e-6 / iterations / (products_ms + embedding_ms);
}
BENCHMARK(Rmc2Step)->Arg(1024)->Arg(4096)->UseManualTime()->Unit(benchmark::kMillisecond);

// The ids of a slice of the largest field: 0.46 of them are distinct at Zipf's 1.05 in 8,192.
std::vector<Key> SliceIds(size_t count) {
  const ZipfSampler zipf = *ZipfSampler::Create(1'000'000, 1.05, 7);
  std::vector<Key> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = Mix(zipf.Rank(i));
  return ids;
}

void UniqueAndPartitionFused(benchmark::State& state) {
  const std::vector<Key> ids = SliceIds(static_cast<size_t>(state.range(0)));
  std::vector<Key> unique(ids.size());
  std::vector<uint16_t> touches(ids.size());
  std::vector<IdPlace> index(ids.size());
  UniquePartition unique_partition(static_cast<uint32_t>(state.range(1)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(unique_partition.Run(ids, 1, {unique, touches, index}));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(ids.size()));
}
BENCHMARK(UniqueAndPartitionFused)->Args({128, 8})->Args({8192, 8})->Args({262144, 8});

// Unique with one owner, then a pass that parts the distinct ids by owner, and one that moves
// places.
void UniqueThenPartition(benchmark::State& state) {
  const std::vector<Key> ids = SliceIds(static_cast<size_t>(state.range(0)));
  const auto owners = static_cast<uint32_t>(state.range(1));
  std::vector<Key> unique(ids.size());
  std::vector<Key> parted(ids.size());
  std::vector<uint16_t> touches(ids.size());
  std::vector<IdPlace> index(ids.size());
  std::vector<uint32_t> owner_of(ids.size());
  std::vector<uint32_t> place(ids.size());
  UniquePartition unique_ids(1);
  for (auto _ : state) {
    const uint32_t count = unique_ids.Run(ids, 1, {unique, touches, index});
    std::vector<uint32_t> next(owners + 1);
    for (uint32_t i = 0; i < count; ++i) {
      owner_of[i] = OwnerOf(HashKey(1, unique[i]), owners);
      ++next[owner_of[i] + 1];
    }
    for (uint32_t owner = 0; owner < owners; ++owner) next[owner + 1] += next[owner];
    for (uint32_t i = 0; i < count; ++i) {
      place[i] = next[owner_of[i]]++;
      parted[place[i]] = unique[i];
    }
    for (IdPlace& of_id : index) of_id.bits = place[of_id.bits];
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(ids.size()));
}
BENCHMARK(UniqueThenPartition)->Args({128, 8})->Args({8192, 8})->Args({262144, 8});

}  // namespace
}  // namespace embank
