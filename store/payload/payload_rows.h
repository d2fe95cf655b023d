// The rows of a store in device memory. The index names a slot of DRAM with the row's header and
// note; the note names the payload, which is in device memory.
//
//   index entry (HBM, slot) -> | header | ... note: record or checkpoint, payload offset |   DRAM
//                                                          |
//                                        payload: vector, state                             device
//
// A batch is inside the payload gate from its first look at the index until its work on the device
// is enqueued. Rows come to device memory, leave it and get slots only while the gate is closed
// (store/payload/payload_mover.h). Erased rows free their slots at any time; only the mover gives
// them out again. So the payload of a row that a batch has seen stays in its place while the batch
// is inside.
#ifndef EMBANK_STORE_PAYLOAD_PAYLOAD_ROWS_H_
#define EMBANK_STORE_PAYLOAD_PAYLOAD_ROWS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "store/gate/batch_gate.h"
#include "store/gate/entry_gate.h"
#include "store/index/key_index.h"
#include "store/payload/payload_memory.h"
#include "store/placement/class_rows.h"
#include "store/placement/page_mover.h"
#include "store/table/store_context.h"
#include "store/table/table.h"
#include "store/table/table_directory.h"
#include "tiers/dram/slot_notes.h"

namespace embank {

// Counts; each is monotonic.
struct PayloadCounters {
  std::atomic<uint64_t> arrived_rows{0};
  std::atomic<uint64_t> left_rows{0};
  std::atomic<uint64_t> written_back_rows{0};  // of them those that had changed in device memory
  std::atomic<uint64_t> pre_images{0};         // rows that a batch flushed before it changed them
  std::atomic<uint64_t> wait_ns{0};            // of all batches at the payload gate
  std::atomic<uint64_t> longest_wait_ns{0};    // of a batch at the payload gate
  std::atomic<uint64_t> answered{0};           // positions of lookups, in all tables
};

// The bytes that a row takes in device memory: without the padding of a slot of DRAM.
inline uint32_t PayloadBytesOf(const Table& table) {
  constexpr uint32_t kAlignment = 16;
  return (table.layout().payload_bytes() + kAlignment - 1) / kAlignment * kAlignment;
}
// The bytes of a payload with the padding of a slot, as the log has it.
inline uint32_t LoggedPayloadBytesOf(const Table& table) {
  return table.layout().row_bytes - static_cast<uint32_t>(sizeof(RowHeader));
}
// Whether the rows of two tables can be in one chunk (store/payload/staged_rows.h).
inline bool HaveOneSize(const Table& a, const Table& b) {
  return a.slot_class() == b.slot_class() && PayloadBytesOf(a) == PayloadBytesOf(b);
}

class PayloadRows {
 public:
  PayloadRows(const StoreContext& store, std::unique_ptr<PayloadMemory> memory);
  PayloadRows(const PayloadRows&) = delete;
  PayloadRows& operator=(const PayloadRows&) = delete;

  const StoreContext& store() const { return store_; }
  PayloadMemory& memory() { return *memory_; }
  const PayloadMemory& memory() const { return *memory_; }
  EntryGate* gate() { return &gate_; }
  PayloadCounters& counters() { return counters_; }
  const PayloadCounters& counters() const { return counters_; }

  SlotNote& NoteOf(Location location) const {
    return notes_.Of(notes_.NumberOf(DramSlotOf(location)));
  }
  // Where the payload of an HBM row is in device memory, in bytes. Inside the gate or while it is
  // closed, and inside an EpochTable::Guard or under the lock of the row's shard.
  uint64_t PayloadOf(Location location) const { return NoteOf(location).payload_offset_bytes(); }

  // Takes a slot for the payload of a row of the table, whose header gets this free slot of
  // kHeaderClass. kNoLocation: device memory has none. While the gate is closed.
  Location TakeSlot(const Table& table, Location header);
  // Gives both slots of a row of a table to one of another table, whose payload has the same size.
  // Under the lock of the former row's shard, while the gate is closed.
  void Replace(const Table& former, const Table& table, Location location);
  // Frees both slots of a row that the index has no more, and retires its header. Under the lock of
  // its shard.
  void Free(const Table& table, Location location);

  // Appends the rows of some headers, at most kSlotsAtOnce in the order of memory, to the log, if
  // their flush is pending; adds their number to *flushed. For the flush pass. The status of the
  // log or of the device.
  Status FlushSlots(std::span<const Location> headers, std::atomic<uint64_t>* flushed);
  // Does the same for rows that a batch changes next. Inside the gate and the batch gate, without
  // locks. Rows are given by their ids.
  Status FlushBeforeChange(std::span<const RowInSlot> rows);

 private:
  Status Flush(std::span<const RowInSlot> rows, std::atomic<uint64_t>* counter);

  const StoreContext& store_;
  const std::unique_ptr<PayloadMemory> memory_;
  const SlotNotes notes_;
  EntryGate gate_;
  PayloadCounters counters_;
};

// A batch holds one while it looks at rows and works on them. nullptr: no device memory.
class PayloadGuard {
 public:
  explicit PayloadGuard(PayloadRows* payloads) {
    if (payloads != nullptr) Enter(payloads);
  }
  PayloadGuard(const PayloadGuard&) = delete;
  PayloadGuard& operator=(const PayloadGuard&) = delete;

 private:
  void Enter(PayloadRows* payloads);

  std::optional<EpochTable::Guard> inside_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_PAYLOAD_ROWS_H_
