#include "train/popularity/id_counts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include "base/hash.h"
#include "base/threads/mutex.h"

namespace embank {
namespace {

// Few threads count one table at the same time: at most as many as features share it.
constexpr uint32_t kShardBits = 4;
constexpr size_t kShards = size_t{1} << kShardBits;
// Ids that are sorted by shard at once: 64 for each shard, whose lines are fetched together.
constexpr size_t kBlock = kShards * 64;
// A shard grows for at most this many ids at once. They may all be one id, and where ids repeat a
// shard gets more of a block.
constexpr size_t kGroup = 128;

struct HashedId {
  Key id;
  uint64_t hash;

  size_t shard() const { return hash >> (64 - kShardBits); }
};

}  // namespace

// A table of open addressing with a lock.
class IdCounts::Shard {
 public:
  void Add(std::span<const HashedId> ids) EMBANK_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    occurrences_ += ids.size();
    for (size_t begin = 0; begin < ids.size(); begin += kGroup) {
      AddGroup(ids.subspan(begin, std::min(kGroup, ids.size() - begin)));
    }
  }

  void AppendTo(std::vector<IdCount>* entries) const EMBANK_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    std::ranges::copy_if(slots_, std::back_inserter(*entries), IsUsed);
  }

  uint64_t occurrences() const EMBANK_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return occurrences_;
  }
  uint64_t size() const EMBANK_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return size_;
  }
  uint64_t memory_bytes() const EMBANK_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return slots_.capacity() * sizeof(IdCount);
  }

 private:
  static bool IsUsed(const IdCount& slot) { return slot.count > 0; }

  void AddGroup(std::span<const HashedId> ids) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (const size_t most = (size_ + ids.size()) * 2; most > slots_.size()) Grow(most);
    for (const HashedId& id : ids) __builtin_prefetch(&slots_[id.hash & (slots_.size() - 1)]);
    for (const HashedId& id : ids) {
      IdCount& slot = SlotOf(id);
      size_ += slot.count == 0 ? 1 : 0;
      slot.id = id.id;
      slot.count += slot.count < UINT32_MAX ? 1 : 0;
    }
  }

  // Returns the slot that has the id, or the empty one where it would be.
  IdCount& SlotOf(const HashedId& id) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t mask = slots_.size() - 1;
    size_t i = id.hash & mask;
    while (IsUsed(slots_[i]) && slots_[i].id != id.id) i = (i + 1) & mask;
    return slots_[i];
  }

  void Grow(size_t slots) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::vector<IdCount> before = std::exchange(slots_, {});
    slots_.resize(std::bit_ceil(slots));
    for (const IdCount& slot : before) {
      if (IsUsed(slot)) SlotOf({slot.id, Mix(slot.id)}) = slot;
    }
  }

  mutable Mutex mutex_;
  std::vector<IdCount> slots_ EMBANK_GUARDED_BY(mutex_);  // a power of two; at least half are empty
  uint64_t size_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t occurrences_ EMBANK_GUARDED_BY(mutex_) = 0;
};

IdCounts::IdCounts() : shards_(std::make_unique<Shard[]>(kShards)) {}
IdCounts::IdCounts(IdCounts&& other) noexcept = default;
IdCounts& IdCounts::operator=(IdCounts&& other) noexcept = default;
IdCounts::~IdCounts() = default;

void IdCounts::Add(std::span<const Key> ids) {
  std::array<HashedId, kBlock> hashed, sorted;
  for (size_t begin = 0; begin < ids.size(); begin += kBlock) {
    const std::span<const Key> block = ids.subspan(begin, std::min(kBlock, ids.size() - begin));
    std::array<uint32_t, kShards> ends = {};
    for (size_t i = 0; i < block.size(); ++i) {
      hashed[i] = {block[i], Mix(block[i])};
      ++ends[hashed[i].shard()];
    }
    // Now they are counts; then they are where each shard begins; then where it ends.
    uint32_t end = 0;
    for (uint32_t& of_shard : ends) of_shard = std::exchange(end, end + of_shard);
    for (size_t i = 0; i < block.size(); ++i) sorted[ends[hashed[i].shard()]++] = hashed[i];
    for (size_t i = 0, first = 0; i < kShards; first = ends[i++]) {
      if (ends[i] > first) shards_[i].Add(std::span(sorted).subspan(first, ends[i] - first));
    }
  }
}

uint64_t IdCounts::occurrences() const {
  uint64_t all = 0;
  for (size_t i = 0; i < kShards; ++i) all += shards_[i].occurrences();
  return all;
}

uint64_t IdCounts::size() const {
  uint64_t all = 0;
  for (size_t i = 0; i < kShards; ++i) all += shards_[i].size();
  return all;
}

uint64_t IdCounts::memory_bytes() const {
  uint64_t all = 0;
  for (size_t i = 0; i < kShards; ++i) all += shards_[i].memory_bytes();
  return all;
}

std::vector<IdCount> IdCounts::Entries() const {
  std::vector<IdCount> entries;
  entries.reserve(size());
  for (size_t i = 0; i < kShards; ++i) shards_[i].AppendTo(&entries);
  std::ranges::sort(entries, {}, &IdCount::id);
  return entries;
}

}  // namespace embank
