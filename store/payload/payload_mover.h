// Moves rows between device memory and DRAM, in chunks, each while the payload gate is closed. Rows
// of DRAM that are evicted for a chunk leave before that. Between two chunks, batches that wait
// enter.
//
//   down:   payload gathered -> slot of DRAM, else a record in the log -> entry moves
//   up:     slot of DRAM -> payload scattered, entry moves
//   swap:   without space for either, a row that goes down and one that goes up change places
//
// Work of batches is in the device's stream in front of a chunk or behind it, never between.
#ifndef EMBANK_STORE_PAYLOAD_PAYLOAD_MOVER_H_
#define EMBANK_STORE_PAYLOAD_PAYLOAD_MOVER_H_

#include <cstddef>
#include <span>

#include "base/status.h"
#include "store/payload/payload_rows.h"
#include "store/payload/staged_rows.h"
#include "store/payload/topk_plan.h"

namespace embank {

// For one thread at a time. The caller holds no lock, no guard and no buffer.
class PayloadMover {
 public:
  static constexpr size_t kChunkRows = 512;

  explicit PayloadMover(PayloadRows* payloads) : payloads_(*payloads) {}
  PayloadMover(const PayloadMover&) = delete;
  PayloadMover& operator=(const PayloadMover&) = delete;

  // Moves the rows of a plan. A row that has moved since, or for which nothing has space, stays
  // where it is. kUnavailable: the device is lost.
  Status Move(TopkPlan* plan);
  // Moves rows up while device memory has space and no batch is inside the gate. *has_space is
  // false if space was missing.
  Status Raise(std::span<const PlannedRow> rows, bool* has_space);

 private:
  class FreeSlots;
  // Whether batches inside the gate are waited for. If not, no row is moved beside them, and the
  // answer is kGateInUse.
  enum class GateUse { kWait, kTry };
  static constexpr size_t kGateInUse = ~size_t{0};
  Status WaitForDevice();
  // Each moves the first rows, all of one size, and returns how many it has dealt with; 0: there is
  // no space for the first of them.
  StatusOr<size_t> LowerChunk(std::span<const PlannedRow> rows);
  StatusOr<size_t> RaiseChunk(std::span<const PlannedRow> rows, GateUse gate_use);

  bool LowerOne(const Table& table, const RowId& id, Location from, const std::byte* payload,
                FreeSlots* slots);
  void ToDram(KeyIndex::Shard* shard, const Table& table, const RowId& id, const Match& match,
              const std::byte* payload, Location slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool ToLog(KeyIndex::Shard* shard, const Table& table, const RowId& id, const Match& match,
             const std::byte* payload) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // Swaps the first rows of two lists, which are all of one size, and returns with how many of each
  // it has dealt; not both are 0.
  struct Dealt {
    size_t down = 0;
    size_t up = 0;
  };
  StatusOr<Dealt> SwapChunk(std::span<const PlannedRow> down, std::span<const PlannedRow> up);
  // Adds the rows that are still in HBM to an empty chunk, whose bytes the buffer then has, and
  // notes which ones they are.
  Status Gather(std::span<const PlannedRow> rows, StagedRows* staged, std::span<uint32_t> chosen);

  enum class Swapped { kYes, kDownIsGone, kUpIsGone, kStays };
  // `payload` is that of the row that goes down, and becomes that of the other one.
  Swapped SwapOne(const PlannedRow& down, const PlannedRow& up, std::byte* payload);
  Swapped SwapUnderLocks(KeyIndex::Shard* down_shard, KeyIndex::Shard* up_shard,
                         const PlannedRow& down, const PlannedRow& up, std::byte* payload)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(down_shard->mutex, up_shard->mutex);
  void CountLowered(bool is_dirty);
  enum class Raised { kYes, kGone, kNoSpace };
  Raised RaiseOne(const Table& table, const RowId& id, Location from, Location header,
                  StagedRows* staged);

  PayloadRows& payloads_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_PAYLOAD_MOVER_H_
