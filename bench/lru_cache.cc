#include "bench/lru_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "base/threads/mutex.h"
#include "bench/huge_page_allocator.h"
#include "bench/peer_batch.h"
#include "bench/peer_engine.h"
#include "bench/peer_rows.h"

namespace embank {
namespace {

constexpr uint32_t kNoSlot = 0xFFFFFFFF;

struct MixHash {
  size_t operator()(Key key) const { return Mix(key); }
};

// A list of slots from the one used last to the one used longest ago, in arrays made beforehand.
struct SlotLinks {
  uint32_t previous;
  uint32_t next;
};

// Bytes of an absl map that is told to hold so many entries: slots are one less than a power of
// two, of which seven of eight are used, and each has a byte beside it.
uint64_t MapBytes(uint64_t rows, uint64_t entry_bytes) {
  const uint64_t slots = std::bit_ceil(rows * 8 / 7 + 1);
  return slots * (entry_bytes + 1) + 64;
}

class LruShard {
 public:
  LruShard(uint32_t capacity, const RowLayout& layout, MemoryBudget* counter)
      : row_bytes_(layout.row_bytes),
        capacity_(capacity),
        rows_(uint64_t{capacity} * layout.row_bytes, std::byte{0},
              HugePageAllocator<std::byte>(counter)),
        links_(capacity + 1, {capacity, capacity}, HugePageAllocator<SlotLinks>(counter)),
        slots_(capacity, MixHash(), std::equal_to<Key>(), HugePageAllocator<Entry>(counter)) {}

  // The bytes of a shard with so many rows.
  static uint64_t BytesOf(uint64_t capacity, const RowLayout& layout) {
    return capacity * (layout.row_bytes + sizeof(SlotLinks)) + MapBytes(capacity, sizeof(Entry));
  }

  Mutex mutex;

  uint32_t rows() const { return used_; }

  void Prefetch(Key key) const { slots_.prefetch(key); }
  // The key's slot, its links on their way; kNoSlot: it has no row.
  uint32_t Find(Key key, KeyHash hash) const {
    const auto found = slots_.find(key, hash);
    if (found == slots_.end()) return kNoSlot;
    __builtin_prefetch(&links_[found->second], 1);
    return found->second;
  }
  std::byte* Row(uint32_t slot) { return &rows_[uint64_t{slot} * row_bytes_]; }
  bool IsRowOf(uint32_t slot, Key key) {
    return slot != kNoSlot && reinterpret_cast<const RowHeader*>(Row(slot))->key == key;
  }
  void PrefetchNeighbours(uint32_t slot) const {
    __builtin_prefetch(&links_[links_[slot].previous], 1);
    __builtin_prefetch(&links_[links_[slot].next], 1);
  }

  void Touch(uint32_t slot) {
    if (links_[slot].previous == end()) return;
    Unlink(slot);
    LinkFirst(slot);
  }
  // A slot for an absent key, which has it from now on: a new one, or that of the row that was used
  // longest ago.
  uint32_t Insert(Key key) {
    uint32_t slot = used_;
    if (used_ < capacity_) {
      ++used_;
    } else {
      slot = links_[end()].previous;
      slots_.erase(reinterpret_cast<const RowHeader*>(Row(slot))->key);
      Unlink(slot);
    }
    slots_.try_emplace(key, slot);
    LinkFirst(slot);
    return slot;
  }

 private:
  using Entry = std::pair<const Key, uint32_t>;
  using Map =
      absl::flat_hash_map<Key, uint32_t, MixHash, std::equal_to<Key>, HugePageAllocator<Entry>>;

  // The links behind those of all slots are those of the list's end.
  uint32_t end() const { return capacity_; }
  void Unlink(uint32_t slot) {
    links_[links_[slot].previous].next = links_[slot].next;
    links_[links_[slot].next].previous = links_[slot].previous;
  }
  void LinkFirst(uint32_t slot) {
    links_[slot] = {end(), links_[end()].next};
    links_[links_[end()].next].previous = slot;
    links_[end()].next = slot;
  }

  const uint32_t row_bytes_;
  const uint32_t capacity_;
  uint32_t used_ = 0;
  std::vector<std::byte, HugePageAllocator<std::byte>> rows_;
  std::vector<SlotLinks, HugePageAllocator<SlotLinks>> links_;
  Map slots_;
};

class LruCache final : public CacheEngine {
 public:
  LruCache(const CacheConfig& config, uint32_t capacity, const RowLayout& layout,
           std::unique_ptr<PeerRows> rows)
      : shard_bits_(PeerShardBits(config.threads)), rows_(std::move(rows)) {
    for (size_t i = 0; i < size_t{1} << shard_bits_; ++i) {
      shards_.push_back(std::make_unique<LruShard>(capacity, layout, &counter_));
    }
  }

  Status Lookup(KeySpan keys, BatchAnswer answer) override {
    thread_local PeerBatch batch;
    batch.Plan(keys, shard_bits_);
    for (uint32_t i = 0; i < shards_.size(); ++i) {
      // Threads begin at different shards, so that they do not wait for one another all the way.
      const auto number = static_cast<uint32_t>((batch.HashAt(0) + i) & (shards_.size() - 1));
      const std::span<const uint32_t> positions = batch.Group(number);
      LruShard& shard = *shards_[number];
      MutexLock lock(&shard.mutex);
      for (size_t begin = 0; begin < positions.size(); begin += kGroup) {
        const size_t size = std::min(kGroup, positions.size() - begin);
        LookUpGroup(batch, positions.subspan(begin, size), &shard, answer);
      }
    }
    rows_->CountHeat(keys.size());
    return OkStatus();
  }

  StatusOr<CacheMemory> Memory() const override {
    CacheMemory memory{.used_bytes = counter_.used_bytes()};
    for (const std::unique_ptr<LruShard>& shard : shards_) memory.rows += shard->rows();
    return memory;
  }

 private:
  static constexpr size_t kGroup = 64;

  void LookUpGroup(const PeerBatch& batch, std::span<const uint32_t> group, LruShard* shard,
                   BatchAnswer answer) const {
    std::array<uint32_t, kGroup> slots;
    for (const uint32_t position : group) shard->Prefetch(batch.KeyAt(position));
    for (size_t i = 0; i < group.size(); ++i) {
      slots[i] = shard->Find(batch.KeyAt(group[i]), batch.HashAt(group[i]));
      if (slots[i] != kNoSlot) rows_->Prefetch(shard->Row(slots[i]));
    }
    for (size_t i = 0; i < group.size(); ++i) {
      if (slots[i] != kNoSlot) shard->PrefetchNeighbours(slots[i]);
    }
    for (size_t i = 0; i < group.size(); ++i) {
      const uint32_t position = group[i];
      const Key key = batch.KeyAt(position);
      // An earlier position of the group may have taken the slot, or made the row.
      uint32_t slot = slots[i];
      if (!shard->IsRowOf(slot, key)) slot = shard->Find(key, batch.HashAt(position));
      const bool is_new = slot == kNoSlot;
      if (is_new) {
        slot = shard->Insert(key);
        rows_->MakeRow(key, shard->Row(slot));
      } else {
        shard->Touch(slot);
      }
      rows_->Answer<RowUse::kAlone>(shard->Row(slot),
                                    answer.rows + uint64_t{position} * rows_->vector_bytes());
      answer.outcomes[position] =
          static_cast<uint8_t>(is_new ? Outcome::kCreated : Outcome::kFound);
    }
  }

  const uint32_t shard_bits_;
  const std::unique_ptr<PeerRows> rows_;  // makes and answers rows; it has none itself
  MemoryBudget counter_{0};
  std::vector<std::unique_ptr<LruShard>> shards_;
};

// The most rows of a shard that fit into so many bytes.
uint64_t CapacityIn(uint64_t bytes, const RowLayout& layout) {
  uint64_t fits = 0;
  uint64_t too_many = bytes / layout.row_bytes + 1;
  while (too_many - fits > 1) {
    const uint64_t middle = fits + (too_many - fits) / 2;
    (LruShard::BytesOf(middle, layout) <= bytes ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace

StatusOr<std::unique_ptr<CacheEngine>> MakeLruCache(const CacheConfig& config) {
  const TableShape& shape = config.shape;
  const RowLayout layout = MakeRowLayout(shape.dim, shape.value_type, shape.optimizer);
  const uint64_t shard_bytes = config.dram_bytes >> PeerShardBits(config.threads);
  const uint64_t capacity = CapacityIn(shard_bytes, layout);
  if (capacity == 0 || capacity >= kNoSlot) {
    return ResourceExhaustedError("the budget of the peer holds no row, or too many");
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<PeerRows> rows,
                          PeerRows::Create({shape, config.seed, config.threads, 0}));
  return std::make_unique<LruCache>(config, static_cast<uint32_t>(capacity), layout,
                                    std::move(rows));
}

}  // namespace embank
