// The reservations of a log: space and memory for rows that are dirty, so that they can always be
// written, and space for what a checkpoint writes besides (tiers/space/).
#ifndef EMBANK_TIERS_LOG_SPACE_RESERVATIONS_H_
#define EMBANK_TIERS_LOG_SPACE_RESERVATIONS_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/threads/mutex.h"
#include "tiers/log/dead_segments.h"
#include "tiers/log/log_report.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/log_writer.h"
#include "tiers/log/row_log_options.h"

namespace embank {

// Thread-safe. Where a function says nothing else, it takes the log's lock. Where space is missing,
// Reserve, CanReserve and ReserveMetadata bring that of dead segments back first, which may take
// writes.
class SpaceReservations {
 public:
  // All of them outlive it.
  SpaceReservations(LogSegments& segments, DeadSegments& dead, LogWriter& writer,
                    const RowLogOptions& options)
      : segments_(segments), dead_(dead), writer_(writer), options_(options) {}

  // Rows of a class may be dirty from now on. kResourceExhausted: dram_bytes has no memory for its
  // segments; nothing was changed. std::bad_alloc leaves it.
  Status AddRowClass(uint32_t row_class, uint32_t record_bytes, bool forgets = false);

  // Reserves space for up to `rows` rows that will be dirty; returns for how many there was space.
  uint64_t Reserve(uint32_t row_class, uint64_t rows);
  // So many rows that were dirty, or were to be, are not.
  void Release(uint32_t row_class, uint64_t rows);
  // The row at a location will change in memory: reserves space for it; the record is dead. False:
  // there is no space.
  bool ReserveAndMarkDead(Location location);
  // Whether Reserve would give so much; without a lock where there is plenty.
  bool CanReserve(uint32_t row_class, uint32_t record_bytes, uint64_t rows);
  // Keeps so many bytes for manifests and heat, instead of what was kept. False: that is more, and
  // there is no space; nothing was changed, unless `must`.
  bool ReserveMetadata(uint64_t bytes, bool must);

  // Whether less than an eighth of ssd_bytes is spare. Without a lock.
  bool IsNearFull() const;
  // Bytes of dram_bytes that the log wants to find free. Without a lock.
  uint64_t slack_bytes() const { return segments_.figures().slack_bytes(); }
  // How many bytes of rows, in memory or not, are too many where a class forgets. Without a lock.
  uint64_t BytesToForget() const { return segments_.figures().bytes_to_forget(); }
  // Why rows may have been refused.
  std::string RefusalReason() const;
  LogSpace Report() const;

 private:
  uint64_t ReserveLocked(uint32_t row_class, uint64_t rows)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  bool FreeMore() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());

  LogSegments& segments_;
  DeadSegments& dead_;
  LogWriter& writer_;
  const RowLogOptions& options_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_SPACE_RESERVATIONS_H_
