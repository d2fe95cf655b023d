// The figures of a log's accounts that any thread reads without the log's lock. SpaceAccounts
// writes them under that lock; a reader may see slightly older ones.
#ifndef EMBANK_TIERS_SPACE_SPACE_FIGURES_H_
#define EMBANK_TIERS_SPACE_SPACE_FIGURES_H_

#include <atomic>
#include <cstdint>

namespace embank {

class SpaceFigures {
 public:
  // Whole segments that are neither used nor reserved; negative: a part of the reservation is
  // missing.
  int64_t spare_segments() const { return spare_segments_.load(std::memory_order_relaxed); }
  // The bytes of rows, in memory or not, to forget where a class forgets.
  uint64_t bytes_to_forget() const { return bytes_to_forget_.load(std::memory_order_relaxed); }
  // The rows to move for each CompactionPace::kChangedRows rows that change.
  uint32_t pace() const { return pace_.load(std::memory_order_relaxed); }
  // The bytes of dram_bytes that the log needs free.
  uint64_t slack_bytes() const { return slack_bytes_.load(std::memory_order_relaxed); }

  // For SpaceAccounts alone.
  void set_spare_segments(int64_t segments) { Set(&spare_segments_, segments); }
  void set_bytes_to_forget(uint64_t bytes) { Set(&bytes_to_forget_, bytes); }
  void set_pace(uint32_t pace) { Set(&pace_, pace); }
  void set_slack_bytes(uint64_t bytes) { Set(&slack_bytes_, bytes); }

 private:
  // A figure that does not change is not written, so that its line stays in the readers' caches.
  template <typename T>
  static void Set(std::atomic<T>* figure, T value) {
    if (value != figure->load(std::memory_order_relaxed)) {
      figure->store(value, std::memory_order_relaxed);
    }
  }

  std::atomic<int64_t> spare_segments_{0};
  std::atomic<uint64_t> bytes_to_forget_{0};
  std::atomic<uint32_t> pace_{0};
  std::atomic<uint64_t> slack_bytes_{0};
};

}  // namespace embank

#endif  // EMBANK_TIERS_SPACE_SPACE_FIGURES_H_
