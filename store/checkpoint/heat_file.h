// The file with the heat of a checkpoint's rows whose records do not have it
// (docs/file_formats.md): the heat of rows in memory, and the blocks of a sketch that are not
// empty.
//
// Only heat depends on it: if it is damaged or missing, rows have the heat of their records.
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
#include "store/table/store_context.h"

namespace embank {

// Writes the heat of the rows of a store to a file and syncs it, but not its name; it replaces a
// file of that name. Makes no file if there is no heat to keep. Reads rows in memory without locks,
// in the order of memory, and the sketch under shared locks of shards, 64 blocks at a time. So the
// heat of a row that travels meanwhile may be missing. If rows in memory are more than the file
// holds, it keeps the hottest ones. `rows_bytes_max`: bytes of the list of rows in memory, five of
// which take 64 bytes. Needs 1 MiB of memory. The statuses of files: there is no file. Throws
// std::bad_alloc, and may leave a file then.
StatusOr<HeatFile> SaveHeat(Directory* directory, const std::string& name,
                            const StoreContext& store, uint64_t rows_bytes_max);

// Calls add(hash, heat) for each row, and add_block(number, block) for each block of a file.
// kDataLoss: it is not the file that the manifest names; only the end tells. The statuses of files.
// Needs 1 MiB of memory. Throws std::bad_alloc.
using VisitHeatOfRow = FunctionRef<void(KeyHash hash, uint32_t heat)>;
using VisitHeatBlock = FunctionRef<void(uint64_t number, const HeatBlock& block)>;
Status ReadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                VisitHeatOfRow add, VisitHeatBlock add_block);

// Fills a new sketch, which stays empty after an error. Statuses like ReadHeat.
Status LoadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                HeatSketch* sketch);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_HEAT_FILE_H_
