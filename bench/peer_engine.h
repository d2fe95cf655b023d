// A peer: another project's map from keys to slots over PeerRows. Written once for all maps.
//
// Keys are split into shards, whose locks are taken once per batch. They guard the rows, and the
// map if it has no locks of its own. Within a shard, keys go through in groups: the map's lines are
// prefetched (if it can), then entries are found and the rows' lines prefetched, then the rows are
// copied.
#ifndef EMBANK_BENCH_PEER_ENGINE_H_
#define EMBANK_BENCH_PEER_ENGINE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "bench/engine.h"
#include "bench/peer_batch.h"
#include "bench/peer_rows.h"

namespace embank {

// The bits of the hash that choose the shard. With one thread a lock is never contended, and
// splitting the keys would only cost time. With more threads, 32 shards per thread make two threads
// meet rarely.
constexpr uint32_t PeerShardBits(uint32_t threads) {
  return threads == 1 ? 0 : static_cast<uint32_t>(std::bit_width(threads - 1)) + 5;
}

// Map:
//   Map(uint32_t shard_bits, uint64_t rows_announced)
//   void Prefetch(uint32_t shard, Key) const
//   Location Find(uint32_t shard, Key, KeyHash) const        kNoLocation: absent
//   void Insert(uint32_t shard, Key, Location)               under the shard's exclusive lock
//   uint64_t memory_bytes() const                            thread-safe
template <typename Map>
class PeerEngine final : public Engine {
 public:
  // RESOURCE_EXHAUSTED.
  static StatusOr<std::unique_ptr<Engine>> Create(const EngineConfig& config) {
    StatusOr<std::unique_ptr<PeerRows>> rows = PeerRows::Create(config);
    if (!rows.ok()) return rows.status();
    return std::unique_ptr<Engine>(new PeerEngine(config, *std::move(rows)));
  }

  Status Fill(KeySpan keys, BatchAnswer answer) override {
    const PeerBatch& batch = Planned(keys);
    PeerRows::NewSlots slots(rows_.get());
    for (uint32_t i = 0; i < locks_.size(); ++i) {
      const uint32_t shard = ShardInTurn(batch, i);
      if (batch.Group(shard).empty()) continue;
      MutexLock lock(&locks_[shard].mutex);
      if (!FillGroups(batch, shard, answer, &slots)) {
        return ResourceExhaustedError("no memory for the peer's rows");
      }
    }
    rows_->CountHeat(keys.size());
    return OkStatus();
  }

  Status Lookup(KeySpan keys, BatchAnswer answer) override {
    const PeerBatch& batch = Planned(keys);
    for (uint32_t i = 0; i < locks_.size(); ++i) {
      const uint32_t shard = ShardInTurn(batch, i);
      if (batch.Group(shard).empty()) continue;
      ReaderMutexLock lock(&locks_[shard].mutex);
      // One calling thread counts heat without locked instructions, though its lock is shared.
      if (one_caller_) {
        LookupGroups<RowUse::kAlone>(batch, shard, answer);
      } else {
        LookupGroups<RowUse::kShared>(batch, shard, answer);
      }
    }
    rows_->CountHeat(keys.size());
    return OkStatus();
  }

  Status Update(KeySpan keys, const float* gradients, uint8_t* outcomes) override {
    PeerBatch& batch = Planned(keys);
    for (uint32_t i = 0; i < locks_.size(); ++i) {
      const uint32_t shard = ShardInTurn(batch, i);
      if (batch.Group(shard).empty()) continue;
      batch.FindDistinct(batch.Group(shard));
      MutexLock lock(&locks_[shard].mutex);
      UpdateGroups(batch, shard, gradients, outcomes);
    }
    return OkStatus();
  }

  StatusOr<EngineMemory> Memory() const override {
    const uint64_t index_bytes = map_.memory_bytes();
    return EngineMemory{index_bytes, index_bytes + rows_->memory_bytes()};
  }

 private:
  static constexpr size_t kGroup = 64;

  struct alignas(64) Lock {
    Mutex mutex;
  };

  PeerEngine(const EngineConfig& config, std::unique_ptr<PeerRows> rows)
      : shard_bits_(PeerShardBits(config.threads)),
        one_caller_(config.threads == 1),
        rows_(std::move(rows)),
        locks_(size_t{1} << shard_bits_),
        map_(shard_bits_, config.rows_announced) {}

  PeerBatch& Planned(KeySpan keys) const {
    thread_local PeerBatch batch;
    batch.Plan(keys, shard_bits_);
    return batch;
  }

  // Threads begin at different shards, so that they do not wait for one another at each.
  uint32_t ShardInTurn(const PeerBatch& batch, uint32_t i) const {
    return static_cast<uint32_t>((batch.HashAt(0) + i) & (locks_.size() - 1));
  }

  // Calls body(group) for at most kGroup positions at a time, with the map's lines prefetched.
  template <typename Body>
  void ForGroups(const PeerBatch& batch, uint32_t shard, std::span<const uint32_t> positions,
                 Body body) const {
    for (size_t begin = 0; begin < positions.size(); begin += kGroup) {
      const auto group = positions.subspan(begin, std::min(kGroup, positions.size() - begin));
      for (const uint32_t position : group) map_.Prefetch(shard, batch.KeyAt(position));
      body(group);
    }
  }

  // The rows of a group, prefetched; nullptr for absent keys.
  void FindRows(const PeerBatch& batch, uint32_t shard, std::span<const uint32_t> group,
                std::array<std::byte*, kGroup>* rows) const {
    for (size_t i = 0; i < group.size(); ++i) {
      const Location location = map_.Find(shard, batch.KeyAt(group[i]), batch.HashAt(group[i]));
      std::byte* const row = location == kNoLocation ? nullptr : rows_->Row(location);
      if (row != nullptr) rows_->Prefetch(row);
      (*rows)[i] = row;
    }
  }

  template <RowUse use>
  void LookupGroups(const PeerBatch& batch, uint32_t shard, BatchAnswer answer) const {
    ForGroups(batch, shard, batch.Group(shard), [&](std::span<const uint32_t> group) {
      std::array<std::byte*, kGroup> rows;
      FindRows(batch, shard, group, &rows);
      for (size_t i = 0; i < group.size(); ++i) {
        if (rows[i] != nullptr) AnswerRow<use>(rows[i], group[i], answer);
        answer.outcomes[group[i]] =
            static_cast<uint8_t>(rows[i] != nullptr ? Outcome::kFound : Outcome::kAbsent);
      }
    });
  }

  bool FillGroups(const PeerBatch& batch, uint32_t shard, BatchAnswer answer,
                  PeerRows::NewSlots* slots) {
    bool has_memory = true;
    ForGroups(batch, shard, batch.Group(shard), [&](std::span<const uint32_t> group) {
      for (const uint32_t position : group) {
        const Key key = batch.KeyAt(position);
        Location location = map_.Find(shard, key, batch.HashAt(position));
        const bool is_new = location == kNoLocation;
        if (is_new) location = slots->Take();
        has_memory = has_memory && location != kNoLocation;
        if (!has_memory) return;
        std::byte* const row = rows_->Row(location);
        if (is_new) {
          rows_->MakeRow(key, row);
          map_.Insert(shard, key, location);
        }
        AnswerRow<RowUse::kAlone>(row, position, answer);
        answer.outcomes[position] =
            static_cast<uint8_t>(is_new ? Outcome::kCreated : Outcome::kFound);
      }
    });
    return has_memory;
  }

  void UpdateGroups(PeerBatch& batch, uint32_t shard, const float* gradients, uint8_t* outcomes) {
    uint32_t distinct = 0;
    ForGroups(batch, shard, batch.first_positions(), [&](std::span<const uint32_t> group) {
      std::array<std::byte*, kGroup> rows;
      FindRows(batch, shard, group, &rows);
      for (size_t i = 0; i < group.size(); ++i, ++distinct) {
        const Outcome outcome = rows[i] != nullptr ? Outcome::kFound : Outcome::kAbsent;
        if (rows[i] != nullptr) {
          rows_->Step(batch.Sum(distinct, gradients, rows_->dim()).data(), rows[i]);
        }
        batch.ForEachPosition(distinct, [&](uint32_t position) {
          outcomes[position] = static_cast<uint8_t>(outcome);
        });
      }
    });
  }

  template <RowUse use>
  void AnswerRow(std::byte* row, uint32_t position, BatchAnswer answer) const {
    rows_->Answer<use>(row, answer.rows + uint64_t{position} * rows_->vector_bytes());
  }

  const uint32_t shard_bits_;
  const bool one_caller_;
  const std::unique_ptr<PeerRows> rows_;
  std::vector<Lock> locks_;  // by shard: of the rows, and of a map that has none
  Map map_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_PEER_ENGINE_H_
