// The phases of an ssd run on one engine: their work and their measurements.
#ifndef EMBANK_BENCH_SSD_PHASES_H_
#define EMBANK_BENCH_SSD_PHASES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "base/types.h"
#include "bench/options.h"
#include "bench/phase_run.h"
#include "bench/ssd_engine.h"
#include "bench/ssd_samples.h"
#include "bench/workload.h"

namespace embank {

// An overwritten table gets a checkpoint after so many of its rows.
inline constexpr uint64_t kCheckpointsPerTable = 10;

// One thread. Every answer is checked: a row of another key, a torn or a missing one is INTERNAL,
// DATA_LOSS or NOT_FOUND. Other statuses are the engine's.
class SsdPhases {
 public:
  // Options and workload must outlive it. `observe` is called every few milliseconds.
  SsdPhases(const SsdOptions& options, const Workload& workload, std::function<void()> observe);

  // Writes every row once, and brings them into order.
  StatusOr<SsdFigures> Fill(SsdEngine* engine);
  // Writes every row once to an engine with a PMem tier, and makes a checkpoint: the rows that this
  // wrote to the SSD.
  StatusOr<SsdFigures> FillPmem(SsdEngine* engine);
  // Reads rows of the stream for `seconds`. Figures of PMem too, if the engine has such a tier.
  StatusOr<SsdFigures> Lookup(SsdEngine* engine, uint32_t threads, double seconds);
  // Reads every row once, in any order.
  StatusOr<SsdFigures> Scan(SsdEngine* engine);
  // Writes rows of the stream anew, with checkpoints beside it. It ends when an engine takes no
  // more rows; a note says so.
  StatusOr<SsdFigures> Overwrite(SsdEngine* engine);
  // A checkpoint alone, then a trainer without and with checkpoints, which changes the rows of
  // options.changed alone.
  StatusOr<SsdFigures> Checkpoint(SsdEngine* engine);
  // Closes and opens, and reads a part of the rows.
  StatusOr<SsdFigures> Recover(SsdEngine* engine);

  // Returns remarkable events since the last call.
  std::vector<std::string> TakeNotes();

 private:
  // The buffers that one thread passes to an engine.
  struct Buffer {
    std::vector<std::byte> vectors;
  };

  Status WriteBatch(SsdEngine* engine, uint32_t thread, KeySpan keys);
  Status ReadBatch(SsdEngine* engine, uint32_t thread, KeySpan keys);
  StatusOr<PhaseTiming> WriteOnce(SsdEngine* engine, KeySpan keys);
  Status OverwritePart(SsdEngine* engine, KeySpan keys, bool with_checkpoint, PhaseTiming* timing);
  StatusOr<PhaseTiming> Train(SsdEngine* engine, KeySpan keys, std::vector<double>* checkpoints);
  Status TrainBeside(SsdEngine* engine, SsdFigures* figures);
  Status ReadMarked(SsdEngine* engine, KeySpan keys);
  bool NoteFull(const Status& status, const char* phase);
  std::span<std::byte> VectorOf(uint32_t thread, size_t i);

  // The next positions of the stream: `count`, or 0: all up to its end.
  KeySpan Ahead(uint64_t count);

  const SsdOptions& options_;
  const Workload& workload_;
  const std::function<void()> observe_;
  const uint32_t vector_bytes_;
  const uint32_t payload_bytes_;
  std::vector<Buffer> buffers_;  // one per thread
  uint64_t next_position_ = 0;
  uint32_t version_ = 0;  // of the rows that are written now
  std::vector<std::string> notes_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_SSD_PHASES_H_
