// The index alone: what an insertion costs with all the growth that it pays for.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "base/check.h"
#include "base/hash.h"
#include "store/index/bucket_array.h"
#include "store/index/key_index.h"

namespace embank {
namespace {

// A shard gets so many of a batch of 8,192 keys.
constexpr uint64_t kRunOfShard = 128;

// From an empty index to state.range(0) rows.
void InsertIntoIndex(benchmark::State& state) {
  const auto rows = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    MemoryBudget budget(0);
    EpochTable epochs;
    auto tier = DramTier::Create(SystemMemorySource(), &budget, &epochs, kHugePageBytes);
    EMBANK_CHECK(tier.ok());
    auto index = KeyIndex::Create(SystemMemorySource(), &budget, &epochs, tier->get());
    EMBANK_CHECK(index.ok());
    for (uint64_t row = 0; row < rows;) {
      const auto shard_number = static_cast<uint32_t>(row / kRunOfShard % KeyIndex::kShardCount);
      KeyIndex::Shard* const shard = (*index)->shard(shard_number);
      MutexLock lock(&shard->mutex);
      const auto hash_at = [&](uint64_t i) {
        return (Mix(row + i) >> KeyIndex::kShardBits) |
               (KeyHash{shard_number} << (64 - KeyIndex::kShardBits));
      };
      for (uint64_t i = 0; i < kRunOfShard; ++i) {
        const Bucket* const home = (*index)->ProbeOf(hash_at(i)).bucket;
        __builtin_prefetch(home);
        __builtin_prefetch(BucketArray::Next(home));
      }
      for (uint64_t i = 0; i < kRunOfShard; ++i) {
        const KeyHash hash = hash_at(i);
        EMBANK_CHECK((*index)->capacity()->ReserveOne(shard, hash).ok());
        (*index)->Insert(shard, hash, Location{row + i});
      }
      row += kRunOfShard;
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(InsertIntoIndex)
    ->ArgName("rows")
    ->Arg(1 << 16)
    ->Arg(1 << 20)
    ->Arg(1 << 23)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace embank
