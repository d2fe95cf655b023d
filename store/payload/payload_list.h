// The rows of a batch that are in device memory: noted while the index is looked at, then worked on
// as one list.
#ifndef EMBANK_STORE_PAYLOAD_PAYLOAD_LIST_H_
#define EMBANK_STORE_PAYLOAD_PAYLOAD_LIST_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/memory/scratch.h"
#include "base/status.h"
#include "store/payload/payload_rows.h"
#include "tiers/row/location.h"

namespace embank {

// A position of a batch, or another number of the caller's, whose row is in device memory.
struct PayloadPosition {
  uint64_t payload;  // its offset in device memory, in bytes
  uint32_t number;
  uint32_t shard;  // for callers that need it
};

class PayloadList {
 public:
  // Allocates space for a batch of so many keys. nullptr: the store has no device memory, and
  // nothing is allocated. kResourceExhausted.
  Status Allocate(PayloadRows* payloads, size_t keys);
  // Forgets all positions, so that the list serves another batch of at most as many keys.
  void Clear();

  // The part of the list for the keys from `begin` on, for one thread.
  class Part {
   public:
    Part(PayloadList* list, size_t begin)
        : list_(*list), next_(list->payloads_ == nullptr ? 0 : begin), begin_(next_) {}
    ~Part() {
      if (next_ > begin_) list_.has_any_.store(true, std::memory_order_relaxed);
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    // Inside an EpochTable::Guard, or under the lock of the row's shard: another thread may erase
    // the row afterwards, and the page of its note may go. The payload stays in its place while the
    // batch is inside the payload gate.
    void Add(uint32_t number, Location location, uint32_t shard = 0) {
      list_.positions_.values()[next_++] = {list_.payloads_->PayloadOf(location), number, shard};
    }

   private:
    PayloadList& list_;
    size_t next_;
    const size_t begin_;
  };

  // ---- after all parts, inside the payload gate, without locks ----
  // Each waits for the device, and returns its status.

  // Reads `bytes` from `offset_bytes` on of each payload: calls visit(position, bytes).
  using Visit = FunctionRef<void(const PayloadPosition&, const std::byte*)>;
  Status Read(uint32_t offset_bytes, uint32_t bytes, Visit visit);
  // Writes them: calls fill(position, bytes), whose bytes are aligned to 16. If several positions
  // have the same row, the last one counts.
  using Fill = FunctionRef<void(const PayloadPosition&, std::byte*)>;
  Status Write(uint32_t offset_bytes, uint32_t bytes, Fill fill);
  // Makes an optimizer step with the gradients that fill(position, gradient) writes; it returns the
  // seed of the rounding. Each row is there once. Calls done(position, is_made) for each: a step
  // that would leave a number that is not finite is not made. If the device is lost, it calls it
  // with true for those of which nothing is known.
  using FillStep = FunctionRef<uint64_t(const PayloadPosition&, std::byte*)>;
  using Done = FunctionRef<void(const PayloadPosition&, bool)>;
  Status Step(const RowLayout& layout, const UpdateRule& rule, FillStep fill, Done done);

  // The number of positions in the list.
  size_t size();
  // The positions, for callers that enqueue the work themselves. The list keeps them.
  std::span<const PayloadPosition> positions() { return Collect(); }
  // Drops all but the last of the positions that have the same row, and sorts the others by
  // payload. Returns them.
  std::span<const PayloadPosition> KeepLast();

 private:
  static constexpr PayloadPosition kNone = {~uint64_t{0}, 0, 0};

  std::span<PayloadPosition> Collect();

  PayloadRows* payloads_ = nullptr;
  std::atomic<bool> has_any_{false};
  bool is_collected_ = false;
  size_t size_ = 0;
  Scratch<PayloadPosition, kInlineKeys> positions_;
};

// Notes a row that changes next, under the lock of its shard. kRefused: the log has no space for a
// change; the row is not in the list.
Outcome NotePayload(const Table& table, uint32_t number, Location location,
                    PayloadList::Part* payloads, uint32_t shard = 0);

// Where a row's vector and state are in its payload.
inline constexpr uint32_t kVectorInPayload = 0;
inline uint32_t StateInPayload(const RowLayout& layout) {
  return layout.state_offset_bytes - static_cast<uint32_t>(sizeof(RowHeader));
}

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_PAYLOAD_LIST_H_
