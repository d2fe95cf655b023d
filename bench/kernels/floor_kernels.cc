// The verbs of a store beside their floor: the same rows and ids in tagged_index.h, which promises
// nothing. A pair has one name but for its first part, `floor` or `embank`; compare_floor.py runs
// them in turns.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "bench/kernels/tagged_index.h"
#include "bench/table_options.h"
#include "bindings/c/embank.h"
#include "train/generator/permutation.h"
#include "train/generator/zipf.h"

namespace embank {
namespace {

constexpr uint64_t kIds = uint64_t{1} << 22;  // of a run, which come again after that
constexpr double kZipfExponent = 1.05;
constexpr float kLearningRate = 0.01f;
constexpr float kEpsilon = 1e-8f;
constexpr float kFirstAccumulator = 0.1f;

struct Shape {
  uint64_t rows = 0;
  uint32_t dim = 0;
  int32_t optimizer = EMBANK_OPT_NONE;

  bool operator==(const Shape&) const = default;
  uint32_t state_floats() const {
    if (optimizer == EMBANK_OPT_NONE) return 0;
    if (optimizer == EMBANK_OPT_ROWWISE_ADAGRAD) return 1;
    return optimizer == EMBANK_OPT_ADAM ? 2 * dim : dim;
  }
  uint32_t values_bytes() const {
    // Rows begin at multiples of 8 bytes, as those of the store.
    return (dim + state_floats() + 1) / 2 * 2 * static_cast<uint32_t>(sizeof(float));
  }
};

// Scattered ids below `rows`: uniform, or by Zipf.
std::vector<Key> Ids(uint64_t rows, bool is_zipf) {
  std::vector<Key> ids(kIds);
  StatusOr<ZipfSampler> zipf = ZipfSampler::Create(rows, is_zipf ? kZipfExponent : 0.0, 7);
  EMBANK_CHECK(zipf.ok());
  zipf->Ranks(0, ids);
  const Permutation permutation(rows, 7);
  for (Key& id : ids) id = permutation(id - 1);
  return ids;
}

// A table of the store with all rows of a shape.
class StoreRows {
 public:
  explicit StoreRows(const Shape& shape, uint64_t expected_rows = 0) {
    embank_store_options store_options;
    embank_store_options_init(&store_options, sizeof(store_options));
    store_options.worker_threads = 1;  // the time of the caller's thread is all there is
    EMBANK_CHECK(embank_store_open(&store_options, &store_) == EMBANK_OK);
    embank_table_options options;
    embank_table_options_init(&options, sizeof(options));
    options.dim = shape.dim;
    options.optimizer = shape.optimizer;
    options.expected_rows_log2 = ExpectedRowsLog2(expected_rows);
    options.initial_accumulator = kFirstAccumulator;
    EMBANK_CHECK(embank_table_create(store_, "rows", &options, &table_) == EMBANK_OK);
  }
  ~StoreRows() { embank_store_close(store_); }
  StoreRows(const StoreRows&) = delete;
  StoreRows& operator=(const StoreRows&) = delete;

  embank_table* table() const { return table_; }
  void Insert(const Key* keys, size_t count, const float* values) {
    EMBANK_CHECK(embank_upsert(table_, keys, count, values, 0, nullptr) == EMBANK_OK);
  }
  [[gnu::noinline]] void Lookup(const Key* keys, size_t count, float* out) {
    EMBANK_CHECK(embank_lookup(table_, keys, count, EMBANK_MISSING_CREATE, out, 0, nullptr) ==
                 EMBANK_OK);
  }
  [[gnu::noinline]] void Pool(const Key* keys, const uint64_t* offsets, size_t bags, float* out) {
    embank_feature feature = {};
    feature.struct_size = sizeof(feature);
    feature.pooling = EMBANK_POOL_SUM;
    feature.table = table_;
    feature.keys = keys;
    feature.n = offsets[bags];
    feature.offsets = offsets;
    feature.bags = bags;
    feature.rows = out;
    EMBANK_CHECK(embank_lookup_packed(&feature, 1, EMBANK_MISSING_CREATE, nullptr) == EMBANK_OK);
  }
  void Step(const Key* keys, size_t count, const float* gradients) {
    EMBANK_CHECK(embank_apply_gradients(table_, keys, count, gradients, 0, nullptr) == EMBANK_OK);
  }

 private:
  embank_store* store_ = nullptr;
  embank_table* table_ = nullptr;
};

// Half a line, which a register holds: g++ makes moves of 16 bytes of a memcpy.
using HalfLine = float __attribute__((vector_size(32), aligned(4), may_alias));

template <uint32_t dim>
EMBANK_FLOOR_LOOP [[gnu::always_inline]] inline void CopyValues(const std::byte* from, float* to) {
  for (uint32_t at = 0; at < dim; at += sizeof(HalfLine) / sizeof(*to)) {
    *reinterpret_cast<HalfLine*>(to + at) =
        *reinterpret_cast<const HalfLine*>(from + at * sizeof(*to));
  }
}

// The same with the index that promises nothing.
class FloorRows {
 public:
  explicit FloorRows(const Shape& shape, uint64_t = 0)
      : shape_(shape), index_(shape.rows, shape.values_bytes()) {}

  void Insert(const Key* keys, size_t count, const float* values) {
    for (size_t i = 0; i < count; ++i) {
      index_.PrefetchHome(keys[std::min(i + kFloorGroup, count - 1)]);
      std::byte* const to = index_.Insert(keys[i]);
      std::memcpy(to, values + i * shape_.dim, shape_.dim * sizeof(float));
      auto* const state = reinterpret_cast<float*>(to) + shape_.dim;
      const float first = shape_.optimizer == EMBANK_OPT_ADAM ? 0.0f : kFirstAccumulator;
      std::fill_n(state, shape_.state_floats(), first);
    }
  }
  [[gnu::noinline]] void Lookup(const Key* keys, size_t count, float* out) {
    WithDim([&](auto dim) { LookupOf<dim>(keys, count, out); });
  }
  [[gnu::noinline]] void Pool(const Key* keys, const uint64_t* offsets, size_t bags, float* out) {
    WithDim([&](auto dim) { PoolOf<dim>(keys, offsets, bags, out); });
  }
  void Step(const Key* keys, size_t count, const float* gradients) {
    WithDim([&](auto dim) { StepOf<dim>(keys, count, gradients); });
  }

 private:
  template <typename Use>
  void WithDim(Use use) {
    switch (shape_.dim) {
      case 16:
        return use(std::integral_constant<uint32_t, 16>());
      case 64:
        return use(std::integral_constant<uint32_t, 64>());
      case 128:
        return use(std::integral_constant<uint32_t, 128>());
      default:
        EMBANK_CHECK(false);
    }
  }

  template <uint32_t dim>
  EMBANK_FLOOR_LOOP void LookupOf(const Key* keys, size_t count, float* out) {
    index_.ForEachRow(keys, count, kFloorHeaderBytes + dim * sizeof(float),
                      [&](size_t i, const std::byte* row) EMBANK_FLOOR_LOOP {
                        CopyValues<dim>(row + kFloorHeaderBytes, out + i * dim);
                      });
  }

  template <uint32_t dim>
  EMBANK_FLOOR_LOOP void PoolOf(const Key* keys, const uint64_t* offsets, size_t bags, float* out) {
    size_t bag = 0;
    float* sum = out;
    std::fill_n(out, bags * dim, 0.0f);
    index_.ForEachRow(keys, offsets[bags], kFloorHeaderBytes + dim * sizeof(float),
                      [&](size_t i, const std::byte* row) EMBANK_FLOOR_LOOP {
                        while (i >= offsets[bag + 1]) sum = out + ++bag * dim;
                        const auto* const values =
                            reinterpret_cast<const float*>(row + kFloorHeaderBytes);
                        for (uint32_t j = 0; j < dim; ++j) sum[j] += values[j];
                      });
  }

  // Sums the gradients of a key in the order of its positions, then steps each row once.
  template <uint32_t dim>
  EMBANK_FLOOR_LOOP void StepOf(const Key* keys, size_t count, const float* gradients) {
    const size_t slots = std::bit_ceil(2 * count);
    slots_.assign(slots, 0);
    distinct_.resize(count);
    sums_.resize(count * dim);
    size_t distinct = 0;
    for (size_t i = 0; i < count; ++i) {
      const float* const gradient = gradients + i * dim;
      size_t slot = Mix(keys[i]) & (slots - 1);
      while (slots_[slot] != 0 && distinct_[slots_[slot] - 1] != keys[i]) {
        slot = (slot + 1) & (slots - 1);
      }
      if (slots_[slot] == 0) {
        std::memcpy(sums_.data() + distinct * dim, gradient, dim * sizeof(float));
        distinct_[distinct++] = keys[i];
        slots_[slot] = static_cast<uint32_t>(distinct);
        continue;
      }
      float* const sum = sums_.data() + (slots_[slot] - 1) * dim;
      for (uint32_t j = 0; j < dim; ++j) sum[j] += gradient[j];
    }
    index_.ForEachRow(distinct_.data(), distinct, index_.row_bytes(),
                      [&](size_t i, std::byte* row) EMBANK_FLOOR_LOOP {
                        auto* const values = reinterpret_cast<float*>(row + kFloorHeaderBytes);
                        StepRow<dim>(sums_.data() + i * dim, values, values + dim);
                      });
  }

  template <uint32_t dim>
  EMBANK_FLOOR_LOOP [[gnu::always_inline]] void StepRow(const float* __restrict gradient,
                                                        float* __restrict values,
                                                        float* __restrict state) {
    if (shape_.optimizer == EMBANK_OPT_ADAGRAD) {
      for (uint32_t j = 0; j < dim; ++j) {
        state[j] += gradient[j] * gradient[j];
        values[j] -= kLearningRate * gradient[j] / (std::sqrt(state[j]) + kEpsilon);
      }
      return;
    }
    if (shape_.optimizer == EMBANK_OPT_ROWWISE_ADAGRAD) {
      float squares = 0.0f;
      for (uint32_t j = 0; j < dim; ++j) squares += gradient[j] * gradient[j];
      *state += squares / dim;
      const float rate = kLearningRate / (std::sqrt(*state) + kEpsilon);
      for (uint32_t j = 0; j < dim; ++j) values[j] -= rate * gradient[j];
      return;
    }
    for (uint32_t j = 0; j < dim; ++j) {  // Adam, without the correction of its first steps
      state[j] = 0.9f * state[j] + 0.1f * gradient[j];
      state[dim + j] = 0.999f * state[dim + j] + 0.001f * gradient[j] * gradient[j];
      values[j] -= kLearningRate * state[j] / (std::sqrt(state[dim + j]) + kEpsilon);
    }
  }

  const Shape shape_;
  TaggedIndex index_;
  std::vector<uint32_t> slots_;  // of the keys of a call: 1 + the number in distinct_; 0: free
  std::vector<Key> distinct_;    // the keys of a call
  std::vector<float> sums_;      // of their gradients
};

// All rows of a shape, kept from one benchmark to the next, and the ids of its calls.
template <typename Rows>
Rows* RowsOf(const Shape& shape) {
  static std::optional<Shape> made_shape;
  static std::unique_ptr<Rows> made;
  if (made_shape == shape) return made.get();
  made.reset();
  made = std::make_unique<Rows>(shape, shape.rows);
  made_shape = shape;
  constexpr uint64_t kBatch = 8192;
  std::vector<Key> keys(kBatch);
  const std::vector<float> values(kBatch * shape.dim, 0.5f);
  for (uint64_t first = 0; first < shape.rows; first += kBatch) {
    std::iota(keys.begin(), keys.end(), first);
    made->Insert(keys.data(), std::min(kBatch, shape.rows - first), values.data());
  }
  return made.get();
}

const std::vector<Key>& IdsOf(uint64_t rows, bool is_zipf) {
  static uint64_t made_rows[2] = {};
  static std::vector<Key> made[2];
  if (made_rows[is_zipf] != rows) made[is_zipf] = Ids(rows, is_zipf);
  made_rows[is_zipf] = rows;
  return made[is_zipf];
}

// Calls with `count` ids each, one call after the other.
template <typename Call>
void RunCalls(benchmark::State& state, const std::vector<Key>& ids, uint64_t count, Call call) {
  uint64_t next = 0;
  for (auto _ : state) {
    if (next + count > ids.size()) next = 0;
    call(ids.data() + next);
    next += count;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(count));
}

// Uniform ids: rows, dim, keys of a call.
template <typename Rows>
void Lookup(benchmark::State& state) {
  const Shape shape = {.rows = static_cast<uint64_t>(state.range(0)),
                       .dim = static_cast<uint32_t>(state.range(1))};
  const auto count = static_cast<uint64_t>(state.range(2));
  Rows* const rows = RowsOf<Rows>(shape);
  std::vector<float> out(count * shape.dim);
  RunCalls(state, IdsOf(shape.rows, false), count,
           [&](const Key* keys) { rows->Lookup(keys, count, out.data()); });
}

// The same with Zipf ids, of which many are there more than once.
template <typename Rows>
void LookupRepeated(benchmark::State& state) {
  const Shape shape = {.rows = static_cast<uint64_t>(state.range(0)),
                       .dim = static_cast<uint32_t>(state.range(1))};
  const auto count = static_cast<uint64_t>(state.range(2));
  Rows* const rows = RowsOf<Rows>(shape);
  std::vector<float> out(count * shape.dim);
  RunCalls(state, IdsOf(shape.rows, true), count,
           [&](const Key* keys) { rows->Lookup(keys, count, out.data()); });
}

// Zipf ids: rows, dim, ids of a bag; about 16,000 ids a call.
template <typename Rows>
void Pool(benchmark::State& state) {
  const Shape shape = {.rows = static_cast<uint64_t>(state.range(0)),
                       .dim = static_cast<uint32_t>(state.range(1))};
  const auto bag = static_cast<uint64_t>(state.range(2));
  const uint64_t bags = 16'000 / bag;
  Rows* const rows = RowsOf<Rows>(shape);
  std::vector<uint64_t> offsets(bags + 1);
  for (uint64_t i = 0; i <= bags; ++i) offsets[i] = i * bag;
  std::vector<float> out(bags * shape.dim);
  RunCalls(state, IdsOf(shape.rows, true), bags * bag,
           [&](const Key* keys) { rows->Pool(keys, offsets.data(), bags, out.data()); });
}

// Zipf ids: rows, dim, optimizer; 8,192 positions a call.
template <typename Rows>
void Step(benchmark::State& state) {
  constexpr uint64_t kCount = 8192;
  const Shape shape = {.rows = static_cast<uint64_t>(state.range(0)),
                       .dim = static_cast<uint32_t>(state.range(1)),
                       .optimizer = static_cast<int32_t>(state.range(2))};
  Rows* const rows = RowsOf<Rows>(shape);
  const std::vector<float> gradients(kCount * shape.dim, 1e-4f);
  RunCalls(state, IdsOf(shape.rows, true), kCount,
           [&](const Key* keys) { rows->Step(keys, kCount, gradients.data()); });
}

// An empty table that gets all its rows: rows, dim, whether it was told how many.
template <typename Rows>
void Fill(benchmark::State& state) {
  constexpr uint64_t kBatch = 8192;
  const Shape shape = {.rows = static_cast<uint64_t>(state.range(0)),
                       .dim = static_cast<uint32_t>(state.range(1))};
  const Permutation permutation(shape.rows, 7);
  std::vector<Key> keys(kBatch);
  const std::vector<float> values(kBatch * shape.dim, 0.5f);
  for (auto _ : state) {
    Rows rows(shape, state.range(2) != 0 ? shape.rows : 0);
    for (uint64_t first = 0; first < shape.rows; first += kBatch) {
      const uint64_t count = std::min(kBatch, shape.rows - first);
      for (uint64_t i = 0; i < count; ++i) keys[i] = permutation(first + i);
      rows.Insert(keys.data(), count, values.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(shape.rows));
}

constexpr int64_t kMillion = 1'000'000;

void LookupCases(benchmark::internal::Benchmark* of) {
  of->ArgNames({"rows", "dim", "keys"})->Unit(benchmark::kMicrosecond);
  // In the cache, with their answers: out of it, `embank-bench limits` has the bound.
  of->ArgsProduct({{4096}, {16, 64}, {1024}});
  of->ArgsProduct({{1000}, {64}, {1, 64}});
}
BENCHMARK(Lookup<FloorRows>)->Name("floor/lookup")->Apply(LookupCases);
BENCHMARK(Lookup<StoreRows>)->Name("embank/lookup")->Apply(LookupCases);

void RepeatedCases(benchmark::internal::Benchmark* of) {
  of->ArgNames({"rows", "dim", "keys"})->Unit(benchmark::kMicrosecond);
  of->ArgsProduct({{kMillion}, {16, 64}, {4096, 83'200}});
}
BENCHMARK(LookupRepeated<FloorRows>)->Name("floor/repeated")->Apply(RepeatedCases);
BENCHMARK(LookupRepeated<StoreRows>)->Name("embank/repeated")->Apply(RepeatedCases);

void PoolCases(benchmark::internal::Benchmark* of) {
  of->ArgNames({"rows", "dim", "bag"})->Unit(benchmark::kMicrosecond);
  of->ArgsProduct({{kMillion}, {16, 64, 128}, {1, 10, 100}});
}
BENCHMARK(Pool<FloorRows>)->Name("floor/pool")->Apply(PoolCases);
BENCHMARK(Pool<StoreRows>)->Name("embank/pool")->Apply(PoolCases);

void StepCases(benchmark::internal::Benchmark* of) {
  of->ArgNames({"rows", "dim", "optimizer"})->Unit(benchmark::kMicrosecond);
  of->ArgsProduct(
      {{kMillion}, {16, 64}, {EMBANK_OPT_ADAGRAD, EMBANK_OPT_ROWWISE_ADAGRAD, EMBANK_OPT_ADAM}});
}
BENCHMARK(Step<FloorRows>)->Name("floor/step")->Apply(StepCases);
BENCHMARK(Step<StoreRows>)->Name("embank/step")->Apply(StepCases);

void FillCases(benchmark::internal::Benchmark* of) {
  of->ArgNames({"rows", "dim", "told"})->Unit(benchmark::kMillisecond);
  of->ArgsProduct({{kMillion, 12 * kMillion}, {16}, {0, 1}});
}
BENCHMARK(Fill<FloorRows>)->Name("floor/fill")->Apply(FillCases);
BENCHMARK(Fill<StoreRows>)->Name("embank/fill")->Apply(FillCases);

}  // namespace
}  // namespace embank
