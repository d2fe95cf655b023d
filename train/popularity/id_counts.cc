#include "train/popularity/id_counts.h"

#include <algorithm>
#include <atomic>
#include <libcuckoo/cuckoohash_map.hh>

#include "base/hash.h"

namespace embank {
namespace {

// Most tables of a click log are small. The default of 262,144 ids takes 9 MB with its locks, which
// no cache holds, and a sample of a log would take longer to allocate than to count.
constexpr size_t kCapacityFirst = 4096;

}  // namespace

struct IdCounts::Map {
  struct MixHash {
    size_t operator()(Key id) const { return Mix(id); }
  };

  libcuckoo::cuckoohash_map<Key, uint32_t, MixHash> counts{kCapacityFirst};
  std::atomic<uint64_t> occurrences{0};
};

IdCounts::IdCounts() : map_(std::make_unique<Map>()) {}
IdCounts::IdCounts(IdCounts&& other) noexcept = default;
IdCounts& IdCounts::operator=(IdCounts&& other) noexcept = default;
IdCounts::~IdCounts() = default;

void IdCounts::Add(std::span<const Key> ids) {
  for (const Key id : ids) {
    map_->counts.upsert(
        id, [](uint32_t& count) { count += count < UINT32_MAX ? 1 : 0; }, 1u);
  }
  map_->occurrences.fetch_add(ids.size(), std::memory_order_relaxed);
}

uint64_t IdCounts::occurrences() const { return map_->occurrences.load(std::memory_order_relaxed); }

uint64_t IdCounts::size() const { return map_->counts.size(); }

std::vector<IdCount> IdCounts::Entries() const {
  std::vector<IdCount> entries;
  entries.reserve(size());
  for (const auto& [id, count] : map_->counts.lock_table()) entries.push_back({id, count});
  std::ranges::sort(entries, {}, &IdCount::id);
  return entries;
}

}  // namespace embank
