// libcuckoo's map for the peer engine. No other file includes libcuckoo.
#ifndef EMBANK_BENCH_CUCKOO_MAP_H_
#define EMBANK_BENCH_CUCKOO_MAP_H_

#include <algorithm>
#include <functional>
#include <libcuckoo/cuckoohash_map.hh>
#include <utility>

#include "base/hash.h"
#include "bench/huge_page_allocator.h"
#include "tiers/row/location.h"

namespace embank {

// One concurrent map for all shards, with locks of its own. It cannot prefetch its lines.
class CuckooMap {
 public:
  CuckooMap(uint32_t /*shard_bits*/, uint64_t rows_announced)
      // A smaller map fails if threads grow it (docs/decisions/0059).
      : map_(std::max<size_t>(rows_announced, libcuckoo::DEFAULT_SIZE), MixHash(),
             std::equal_to<Key>(), HugePageAllocator<Entry>(&counter_)) {}

  // Does nothing.
  void Prefetch(uint32_t /*shard*/, Key /*key*/) const {}

  // kNoLocation: absent.
  Location Find(uint32_t /*shard*/, Key key, KeyHash /*hash*/) const {
    Location location = kNoLocation;
    map_.find(key, location);
    return location;
  }

  // Adds a key that is not there.
  void Insert(uint32_t /*shard*/, Key key, Location location) { map_.insert(key, location); }

  // Bytes of the map and its locks.
  uint64_t memory_bytes() const { return counter_.used_bytes(); }

 private:
  struct MixHash {
    size_t operator()(Key key) const { return Mix(key); }
  };
  using Entry = std::pair<const Key, Location>;

  MemoryBudget counter_{0};
  libcuckoo::cuckoohash_map<Key, Location, MixHash, std::equal_to<Key>, HugePageAllocator<Entry>>
      map_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_CUCKOO_MAP_H_
