#include "bench/absl_engine.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/hash.h"
#include "bench/huge_page_allocator.h"
#include "bench/peer_engine.h"

namespace embank {
namespace {

// The batch has this hash already; the map would else hash again.
struct MixHash {
  size_t operator()(Key key) const { return Mix(key); }
};

class AbslMap {
 public:
  AbslMap(uint32_t shard_bits, uint64_t rows_announced) {
    const size_t shards = size_t{1} << shard_bits;
    for (size_t i = 0; i < shards; ++i) {
      shards_.emplace_back(rows_announced >> shard_bits, MixHash(), std::equal_to<Key>(),
                           HugePageAllocator<Entry>(&counter_));
    }
  }

  void Prefetch(uint32_t shard, Key key) const { shards_[shard].prefetch(key); }

  Location Find(uint32_t shard, Key key, KeyHash hash) const {
    const auto found = shards_[shard].find(key, hash);
    return found == shards_[shard].end() ? kNoLocation : found->second;
  }

  void Insert(uint32_t shard, Key key, Location location) {
    shards_[shard].try_emplace(key, location);
  }

  uint64_t memory_bytes() const { return counter_.used_bytes(); }

 private:
  using Entry = std::pair<const Key, Location>;
  using Shard =
      absl::flat_hash_map<Key, Location, MixHash, std::equal_to<Key>, HugePageAllocator<Entry>>;

  MemoryBudget counter_{0};
  std::vector<Shard> shards_;
};

}  // namespace

StatusOr<std::unique_ptr<Engine>> MakeAbslEngine(const EngineConfig& config) {
  return PeerEngine<AbslMap>::Create(config);
}

}  // namespace embank
