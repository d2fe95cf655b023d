// The report of a log about itself.
#ifndef EMBANK_TIERS_LOG_LOG_REPORT_H_
#define EMBANK_TIERS_LOG_LOG_REPORT_H_

#include <atomic>
#include <cstdint>

namespace embank {

// Monotonic.
struct RowLogCounters {
  std::atomic<uint64_t> appended_rows{0};
  std::atomic<uint64_t> compacted_rows{0};  // appended by compaction
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> written_buffers{0};  // one write each: records, a header, or a footer
  std::atomic<uint64_t> reads{0};            // transfers from the device
  std::atomic<uint64_t> read_rows{0};        // records that were read by them
  std::atomic<uint64_t> read_bytes{0};
  std::atomic<uint64_t> buffered_reads{0};  // records that were not on the device yet
  std::atomic<uint64_t> dead_segments{0};   // given up: their places may have other rows now
};

struct LogSpace {
  uint64_t budget_bytes;    // 0: no limit
  uint64_t used_bytes;      // of segments' files
  uint64_t live_bytes;      // of living records
  uint64_t dirty_bytes;     // of the records that dirty rows in memory will need
  uint64_t reserved_bytes;  // reserved for those and manifests; 0 without a limit
};

// The reason for compaction's work. kPace: changes go on, and it is time. kSpace: changes need
// space now. kLaterSpace: they will need space when the current checkpoints are not kept any more.
// kSize: the log takes much more space than its rows, and no limit asks for it. kForget: there are
// too many rows, and some are to be forgotten. kDemote: a log has too many rows, and some are to go
// to a lower tier. kEvacuate: the log has stopped, and rows that are not durable in it are to go to
// a lower tier.
enum class CompactionAim : uint32_t {
  kPace,
  kSpace,
  kLaterSpace,
  kSize,
  kForget,
  kDemote,
  kEvacuate,
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_REPORT_H_
