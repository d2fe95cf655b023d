// The rows of a peer: the store's own slabs, layout, initializer, update rules and heat. So a
// comparison shows the index and the path of a batch, and nothing else.
#ifndef EMBANK_BENCH_PEER_ROWS_H_
#define EMBANK_BENCH_PEER_ROWS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/memory/memory.h"
#include "base/status_or.h"
#include "bench/engine.h"
#include "store/table/initializer.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/row/row_header.h"
#include "tiers/row/row_layout.h"
#include "tiers/row/row_update.h"

namespace embank {

// Whether other threads may use a row at the same time.
enum class RowUse { kShared, kAlone };

// Thread-safe, but for a row's bytes: the engine's locks guard them.
class PeerRows {
 public:
  // RESOURCE_EXHAUSTED.
  static StatusOr<std::unique_ptr<PeerRows>> Create(const EngineConfig& config);

  // The bytes of a row.
  std::byte* Row(Location location) const { return tier_->Row(location); }

  // Prefetches a row's header and vector. Always inlined: g++ 12 drops calls of a function that
  // only prefetches.
  [[gnu::always_inline]] void Prefetch(const std::byte* row) const {
    constexpr uint32_t kLineBytes = 64;
    const uint32_t end = RowLayout::kVectorOffsetBytes + layout_.vector_bytes;
    for (uint32_t offset = 0; offset < end; offset += kLineBytes) __builtin_prefetch(row + offset);
  }

  // Writes header, first vector and first state to a new slot.
  void MakeRow(Key key, std::byte* row) const;

  // Copies a row's vector out and counts the position as heat. kShared: others may count at once.
  template <RowUse use>
  void Answer(std::byte* row, std::byte* out) const {
    std::memcpy(out, layout_.Vector(row), layout_.vector_bytes);
    RowHeader* const header = layout_.Header(row);
    if constexpr (use == RowUse::kShared) {
      TouchHeat(header, LoadMark(header), HeatEpochNow(), 1);
    } else {
      header->usage = TouchedUsage(header->usage, HeatEpochNow(), 1);
    }
  }

  // One optimizer step; none if its results would not be finite.
  void Step(const float* gradient, std::byte* row) const {
    RowImage former;
    static_cast<void>(StepRow(layout_, rule_, 0, gradient, row, former.bytes));
  }

  // Counts the answered positions of a batch; the heat of all rows ages as in docs/arithmetic.md.
  void CountHeat(uint64_t positions);

  uint32_t dim() const { return layout_.dim; }
  uint32_t vector_bytes() const { return layout_.vector_bytes; }
  // Memory of the slabs.
  uint64_t memory_bytes() const {
    return tier_->pool()->committed_bytes() + tier_->pool()->record_bytes();
  }

  // Takes slots for the rows that one call creates, and returns unused ones.
  class NewSlots {
   public:
    explicit NewSlots(PeerRows* rows) : rows_(rows) {}
    ~NewSlots();
    NewSlots(const NewSlots&) = delete;
    NewSlots& operator=(const NewSlots&) = delete;

    // A free slot, or kNoLocation when the machine has no memory.
    Location Take();

   private:
    PeerRows* const rows_;
    std::array<Location, 64> slots_;
    size_t left_ = 0;
    uint64_t used_ = 0;
  };

 private:
  PeerRows(const EngineConfig& config, uint64_t table_seed);

  HeatEpoch HeatEpochNow() const {
    return static_cast<HeatEpoch>(heat_epoch_.load(std::memory_order_relaxed));
  }

  const RowLayout layout_;
  const UpdateRule rule_;
  const Initializer initializer_;
  const uint64_t table_seed_;
  EpochTable epochs_;
  MemoryBudget budget_{0};
  std::unique_ptr<DramTier> tier_;
  SlotClass slot_class_ = 0;
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint64_t> heat_epoch_{0};
  std::atomic<uint64_t> heat_positions_{0};  // since the epoch began
};

}  // namespace embank

#endif  // EMBANK_BENCH_PEER_ROWS_H_
