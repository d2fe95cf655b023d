// What a log tells of itself.
#ifndef EMBANK_TIERS_LOG_LOG_REPORT_H_
#define EMBANK_TIERS_LOG_LOG_REPORT_H_

#include <atomic>
#include <cstdint>

namespace embank {

// Monotonic.
struct RowLogCounters {
  std::atomic<uint64_t> appended_rows{0};
  std::atomic<uint64_t> compacted_rows{0};  // of them those that compaction moved
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> reads{0};      // transfers from the device
  std::atomic<uint64_t> read_rows{0};  // records that came with them
  std::atomic<uint64_t> read_bytes{0};
  std::atomic<uint64_t> buffered_reads{0};  // records that were not on the device yet
  std::atomic<uint64_t> dead_segments{0};   // given up: their places may be others' now
};

struct LogSpace {
  uint64_t budget_bytes;    // 0: no limit
  uint64_t used_bytes;      // of segments' files
  uint64_t live_bytes;      // of records that are not dead
  uint64_t dirty_bytes;     // of records that rows in memory will need: they are dirty
  uint64_t reserved_bytes;  // of the budget for those and manifests; 0 without a limit
};

// Why rows are moved: changes go on, and it is time; changes need space now; or will, once the
// checkpoints of now are not kept any more. Or why they are looked at: rows are too many, and some
// are to be forgotten.
enum class CompactionAim : uint32_t { kPace, kSpace, kLaterSpace, kForget };

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_REPORT_H_
