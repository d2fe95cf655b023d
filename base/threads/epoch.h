// Epochs decide when memory that a reader could still look at may be reused. Readers announce
// themselves once per batch. A thread that retires memory notes the epoch, and waits until no
// reader of that epoch or an earlier one is left.
#ifndef EMBANK_BASE_THREADS_EPOCH_H_
#define EMBANK_BASE_THREADS_EPOCH_H_

#include <array>
#include <atomic>
#include <cstdint>

namespace embank {

class EpochTable {
 public:
  // While a guard lives, nothing that was reachable when it was made is reused.
  class Guard {
   public:
    explicit Guard(EpochTable* table) : slot_(table->Enter()) {}
    ~Guard() { slot_->store(kIdle, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<uint64_t>* const slot_;
  };

  // Ends the epoch and returns its number, to be noted for memory that was retired before the call.
  // Thread-safe.
  uint64_t Retire() { return epoch_.fetch_add(1, std::memory_order_seq_cst); }

  // Whether no reader of the epoch is left. Thread-safe.
  bool HasPassed(uint64_t epoch) const;

  // Returns how many guards were made so far. Includes every guard that a completed wait waited
  // for. Thread-safe.
  uint64_t entered() const;

  // Waits until HasPassed, at most as long as a reader's batch takes. The caller must not be a
  // reader, nor hold anything that a reader spins on.
  void WaitUntilPassed(uint64_t epoch) const;

 private:
  // Readers beyond this number wait for a slot: four per core of a large machine.
  static constexpr size_t kReadersMax = 512;
  static constexpr uint64_t kIdle = 0;

  struct alignas(64) Slot {
    std::atomic<uint64_t> epoch{kIdle};
    std::atomic<uint64_t> entered{0};  // written by the holder of the slot
  };

  std::atomic<uint64_t>* Enter();

  std::atomic<uint64_t> epoch_{1};
  std::array<Slot, kReadersMax> slots_;
};

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_EPOCH_H_
