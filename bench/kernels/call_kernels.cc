// Small calls through the C API, rows in the cache: what a call costs beside its rows.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "bindings/c/embank.h"

namespace embank {
namespace {

constexpr uint32_t kDim = 64;
constexpr uint64_t kRows = 1000;
constexpr uint32_t kPackedDim = 16;
constexpr size_t kPackedTables = 26;
constexpr uint64_t kPackedKeys = 1 << 20;  // of a run, which come again after that

// A call of one verb with `n` keys and as many rows of values.
using Call = embank_status (*)(embank_table* table, const uint64_t* keys, uint64_t n,
                               float* values);

embank_status Lookup(embank_table* table, const uint64_t* keys, uint64_t n, float* values) {
  return embank_lookup(table, keys, n, EMBANK_MISSING_CREATE, values, 0, nullptr);
}
embank_status Upsert(embank_table* table, const uint64_t* keys, uint64_t n, float* values) {
  return embank_upsert(table, keys, n, values, 0, nullptr);
}
embank_status Gradients(embank_table* table, const uint64_t* keys, uint64_t n, float* values) {
  return embank_apply_gradients(table, keys, n, values, 0, nullptr);
}
embank_status EraseAndMake(embank_table* table, const uint64_t* keys, uint64_t n, float* values) {
  const embank_status status = embank_erase(table, keys, n, nullptr);
  return status != EMBANK_OK ? status : Lookup(table, keys, n, values);
}

// state.range(0) keys a call, all of which have rows; EraseAndMake is two calls.
void SmallCalls(benchmark::State& state, Call call) {
  embank_store_options store_options;
  embank_store_options_init(&store_options, sizeof store_options);
  embank_store* store = nullptr;
  EMBANK_CHECK(embank_store_open(&store_options, &store) == EMBANK_OK);
  embank_table_options options;
  embank_table_options_init(&options, sizeof options);
  options.dim = kDim;
  options.optimizer = EMBANK_OPT_ADAGRAD;
  embank_table* table = nullptr;
  EMBANK_CHECK(embank_table_create(store, "calls", &options, &table) == EMBANK_OK);

  std::vector<uint64_t> keys(kRows);
  for (uint64_t i = 0; i < kRows; ++i) keys[i] = Mix(i);
  std::vector<float> values(kRows * kDim);
  EMBANK_CHECK(Lookup(table, keys.data(), kRows, values.data()) == EMBANK_OK);
  std::fill(values.begin(), values.end(), 0.5f);
  const auto count = static_cast<uint64_t>(state.range(0));
  uint64_t next = 0;
  for (auto _ : state) {
    if (next + count > kRows) next = 0;
    EMBANK_CHECK(call(table, keys.data() + next, count, values.data()) == EMBANK_OK);
    next += count;
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  embank_store_close(store);
}
BENCHMARK_CAPTURE(SmallCalls, lookup, Lookup)->ArgName("keys")->Arg(1)->Arg(64);
BENCHMARK_CAPTURE(SmallCalls, upsert, Upsert)->ArgName("keys")->Arg(1)->Arg(64);
BENCHMARK_CAPTURE(SmallCalls, gradients, Gradients)->ArgName("keys")->Arg(1)->Arg(64);
BENCHMARK_CAPTURE(SmallCalls, erase_and_make, EraseAndMake)->ArgName("keys")->Arg(1)->Arg(64);

// A packed call of 26 features.
using PackedCall = embank_status (*)(embank_feature* features);

embank_status LookupPacked(embank_feature* features) {
  return embank_lookup_packed(features, kPackedTables, EMBANK_MISSING_CREATE, nullptr);
}
embank_status GradientsPacked(embank_feature* features) {
  return embank_apply_gradients_packed(features, kPackedTables, nullptr);
}

// Packed calls of bags of one key each: features of state.range(0) tables of state.range(1) rows,
// of which each has state.range(2) keys in a call.
void SmallPackedCalls(benchmark::State& state, PackedCall call) {
  embank_store_options store_options;
  embank_store_options_init(&store_options, sizeof store_options);
  embank_store* store = nullptr;
  EMBANK_CHECK(embank_store_open(&store_options, &store) == EMBANK_OK);
  const auto tables = static_cast<size_t>(state.range(0));
  const auto rows = static_cast<uint64_t>(state.range(1));
  const auto count = static_cast<size_t>(state.range(2));
  std::vector<uint64_t> ids(rows);
  for (uint64_t i = 0; i < rows; ++i) ids[i] = Mix(i);
  std::vector<uint64_t> keys(kPackedKeys);
  for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = ids[Mix(~i) % rows];
  std::vector<float> out(std::max<size_t>(rows, kPackedTables * count) * kPackedDim);
  std::vector<uint64_t> offsets(count + 1);
  std::iota(offsets.begin(), offsets.end(), uint64_t{0});
  std::array<embank_feature, kPackedTables> features = {};
  for (size_t i = 0; i < kPackedTables; ++i) {
    embank_feature& feature = features[i];
    feature.struct_size = sizeof feature;
    feature.table = features[i % tables].table;
    if (i < tables) {
      embank_table_options options;
      embank_table_options_init(&options, sizeof options);
      options.dim = kPackedDim;
      options.optimizer = EMBANK_OPT_ADAGRAD;
      EMBANK_CHECK(embank_table_create(store, std::to_string(i).c_str(), &options,
                                       &feature.table) == EMBANK_OK);
      EMBANK_CHECK(Lookup(feature.table, ids.data(), rows, out.data()) == EMBANK_OK);
    }
    feature.pooling = EMBANK_POOL_SUM;
    feature.n = count;
    feature.offsets = offsets.data();
    feature.bags = count;
    feature.rows = out.data() + i * count * kPackedDim;
  }
  uint64_t next = 0;
  for (auto _ : state) {
    for (embank_feature& feature : features) {
      feature.keys = keys.data() + next;
      next = next + 2 * count > keys.size() ? 0 : next + count;
    }
    EMBANK_CHECK(call(features.data()) == EMBANK_OK);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kPackedTables * count));
  embank_store_close(store);
}
BENCHMARK_CAPTURE(SmallPackedCalls, lookup, LookupPacked)
    ->ArgNames({"tables", "rows", "keys"})
    ->ArgsProduct({{26}, {100, 200'000}, {1, 16, 64}})
    ->ArgsProduct({{1}, {5'200'000}, {1, 16}});
BENCHMARK_CAPTURE(SmallPackedCalls, gradients, GradientsPacked)
    ->ArgNames({"tables", "rows", "keys"})
    ->ArgsProduct({{26}, {100, 200'000}, {1, 16, 64}});

}  // namespace
}  // namespace embank
