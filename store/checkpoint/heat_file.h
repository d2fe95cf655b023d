// The file that keeps the heat of a checkpoint's rows, as far as their records do not say it
// (docs/file_formats.md): of rows in memory, and the blocks of a sketch that are not empty.
//
// Nothing but heat depends on it: where it is damaged or missing, rows have what their records say.
#ifndef EMBANK_STORE_CHECKPOINT_HEAT_FILE_H_
#define EMBANK_STORE_CHECKPOINT_HEAT_FILE_H_

#include <cstdint>
#include <string>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "store/checkpoint/manifest.h"
#include "store/placement/row_mover.h"

namespace embank {

// Whose heat is saved; all of it outlives the call.
struct HeatToSave {
  KeyIndex* index;
  const DramTier* tier;
  const TableDirectory* tables;
  const HeatClock* clock;
  const HeatSketch* sketch;
  uint64_t rows_bytes_max;  // of the list of rows in memory: five for 64 bytes
};

// Writes the file, and syncs it, but not its name; what stood there is replaced. No file is made
// where there is no heat to keep. Rows in memory are read without locks, in the order of memory,
// the sketch under locks of shards, shared, for 64 blocks at a time: the heat of a row that travels
// meanwhile may be missing. Of rows in memory that are more than it has space for it keeps the
// hottest ones. Memory: 1 MiB. The statuses of files: then there is no file. std::bad_alloc leaves
// it, and may leave a file.
StatusOr<HeatFile> SaveHeat(Directory* directory, const std::string& name, const HeatToSave& heat);

// Calls add(hash, heat) for each row, and add_block(number, block) for each block of a file.
// kDataLoss: it is not the file that the manifest names, which only the end tells; statuses of
// files. Memory: 1 MiB. std::bad_alloc leaves it.
using VisitHotRow = FunctionRef<void(KeyHash hash, uint32_t heat)>;
using VisitHeatBlock = FunctionRef<void(uint64_t number, const HeatBlock& block)>;
Status ReadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                VisitHotRow add, VisitHeatBlock add_block);

// Fills a new sketch; one that stays empty after an error. Statuses as ReadHeat's.
Status LoadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                HeatSketch* sketch);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_HEAT_FILE_H_
