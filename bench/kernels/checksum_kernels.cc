// Measures the smallest parts of a batch: checksums and hashes.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <vector>

#include "base/crc32c.h"
#include "base/hash.h"

namespace embank {
namespace {

constexpr size_t kKeys = 4096;

void Crc32c(benchmark::State& state) {
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)), std::byte{0x5A});
  for (auto _ : state) benchmark::DoNotOptimize(ExtendCrc32c(0, data));
  state.SetBytesProcessed(state.iterations() * state.range(0));
  state.SetLabel(Crc32cImplementation());
}
BENCHMARK(Crc32c)->Arg(64)->Arg(256)->Arg(588)->Arg(4096)->Arg(1 << 20);

void Crc32cPortable(benchmark::State& state) {
  const std::vector<std::byte> data(static_cast<size_t>(state.range(0)), std::byte{0x5A});
  for (auto _ : state) benchmark::DoNotOptimize(ExtendCrc32cPortable(0, data));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Crc32cPortable)->Arg(256)->Arg(4096);

void HashKeys(benchmark::State& state) {
  std::vector<Key> keys(kKeys);
  for (size_t i = 0; i < kKeys; ++i) keys[i] = i * kGoldenRatio;
  std::vector<KeyHash> hashes(kKeys);
  const uint64_t table_hash = TableHash("rows");
  for (auto _ : state) {
    for (size_t i = 0; i < kKeys; ++i) hashes[i] = HashKey(table_hash, keys[i]);
    benchmark::DoNotOptimize(hashes.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kKeys));
}
BENCHMARK(HashKeys);

}  // namespace
}  // namespace embank
