// The reservations of a log: space and memory for dirty rows, so that they can always be written,
// and space for the other files of a checkpoint (tiers/space/).
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

// Thread-safe. A function takes the log's lock unless its contract says otherwise. If space is
// missing, Reserve, CanReserve and ReserveMetadata first free that of dead segments, which may need
// writes.
class SpaceReservations {
 public:
  // All of them outlive it.
  SpaceReservations(LogSegments& segments, DeadSegments& dead, LogWriter& writer,
                    const RowLogOptions& options)
      : segments_(segments), dead_(dead), writer_(writer), options_(options) {}

  // Lets rows of a class be dirty. kResourceExhausted: dram_bytes has no memory for its segments;
  // nothing was changed. Throws std::bad_alloc.
  Status AddRowClass(uint32_t row_class, uint32_t record_bytes, bool forgets = false);

  // Reserves space for up to `rows` rows that will be dirty; returns for how many.
  uint64_t Reserve(uint32_t row_class, uint64_t rows);
  // Releases the reservation of so many rows that are not dirty.
  void Release(uint32_t row_class, uint64_t rows);
  // Reserves space for the row at a location, which will change in memory, and marks its record
  // dead. False: there is no space.
  bool ReserveAndMarkDead(Location location);
  // Whether Reserve would succeed for so many rows; without a lock if there is plenty of space.
  bool CanReserve(uint32_t row_class, uint32_t record_bytes, uint64_t rows);
  // Reserves `bytes` for manifests and heat, instead of the former reservation. Always succeeds if
  // they are no more than before, or with `must`. False: there is no space, and the former
  // reservation stays.
  bool ReserveMetadata(uint64_t bytes, bool must);

  // Whether less than an eighth of ssd_bytes is spare. Without a lock.
  bool IsNearFull() const;
  // The bytes of dram_bytes that the log needs free. Without a lock.
  uint64_t slack_bytes() const { return segments_.figures().slack_bytes(); }
  // The bytes of rows, in memory or not, to forget where a class forgets. Without a lock.
  uint64_t BytesToForget() const { return segments_.figures().bytes_to_forget(); }
  // The reason why rows may have been refused.
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
