#include "store/checkpoint.h"

#include <algorithm>
#include <bit>

#include "store/table.h"

namespace embank {
namespace {

// Rows under one hold of a lock: a few buffers' blocks at most, which batches wait for.
constexpr uint64_t kRowsAtATime = 16;
constexpr uint32_t kShardHashBits = 64 - std::bit_width(KeyIndex::kShardCount - 1);

// A row never leaves its place in the order of hashes: one pass by hashes meets each.
class ShardSweep {
 public:
  ShardSweep(const SweepParts& parts, uint32_t shard)
      : parts_(parts),
        shard_(parts.index->shard(shard)),
        first_(KeyHash{shard} << kShardHashBits) {}

  void Run() {
    uint64_t rows = 0;
    {
      ReaderMutexLock lock(&shard_->mutex);
      rows = shard_->rows;
    }
    const auto parts_bits = static_cast<uint32_t>(std::bit_width(rows / kRowsAtATime));
    const KeyHash step = KeyHash{1} << (kShardHashBits - parts_bits);
    for (uint64_t i = 0; i < uint64_t{1} << parts_bits && parts_.gate->IsSweeping(); ++i) {
      Sweep(first_ + i * step, first_ + i * step + (step - 1));
    }
  }

 private:
  void Sweep(KeyHash first, KeyHash last) {
    parts_.log->WaitForCalm();
    absl::Status status;
    MutexLock lock(&shard_->mutex);
    parts_.index->VisitHashes(shard_, first, last, [&](Location location) {
      if (location.tier() != Tier::kDram || !status.ok()) return;
      const auto* const header = reinterpret_cast<const RowHeader*>(parts_.tier->Row(location));
      status = parts_.tables->Get(TableOf(LoadIdentity(header)))->mover()->SaveOwed(location);
    });
    if (!status.ok()) parts_.gate->Fail(status);
  }

  const SweepParts parts_;
  KeyIndex::Shard* const shard_;
  const KeyHash first_;
};

}  // namespace

void SweepOwed(const SweepParts& parts) {
  // One shard after the other: the device is as fast, and the threads are left to batches.
  for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) {
    parts.executor->ParallelFor(1, [&](uint32_t) { ShardSweep(parts, shard).Run(); });
  }
}

}  // namespace embank
