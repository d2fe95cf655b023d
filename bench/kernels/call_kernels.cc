// Small calls through the C API, rows in the cache: what a call costs beside its rows.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "bindings/c/embank.h"

namespace embank {
namespace {

constexpr uint32_t kDim = 64;
constexpr uint64_t kRows = 1000;

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

}  // namespace
}  // namespace embank
