// The file with the heat of a checkpoint's rows whose records do not have it
// (docs/file_formats.md): a sketch of it, whose empty blocks are left out.
//
// Only heat depends on it: if it is damaged or missing, rows have the heat of their records.
#ifndef EMBANK_STORE_CHECKPOINT_HEAT_FILE_H_
#define EMBANK_STORE_CHECKPOINT_HEAT_FILE_H_

#include <cstdint>
#include <string>

#include "base/files/file_system.h"
#include "base/status.h"
#include "base/status_or.h"
#include "store/checkpoint/manifest.h"
#include "store/placement/heat_sketch.h"
#include "store/table/store_context.h"

namespace embank {

// Writes the heat of the rows of a store to a file and syncs it, but not its name; it replaces a
// file of that name. Makes no file if there is no heat to keep. `sketch_bytes`: the size of the
// sketch in the file; where a block is full, its hottest rows are kept. Reads rows in memory and
// the store's sketch in the order of hashes, under shared locks of shards, some blocks at a time.
// Needs 1 MiB of memory. The statuses of files: there is no file. Throws std::bad_alloc, and may
// leave a file then.
StatusOr<HeatFile> SaveHeat(Directory* directory, const std::string& name,
                            const StoreContext& store, uint64_t sketch_bytes);

// Adds the heat of a file to a sketch, which nobody else uses and is at first empty; after an error
// it is empty. nullptr: only verifies the file. kDataLoss: it is not the file that the manifest
// names; only the end tells. The statuses of files. Needs 1 MiB of memory. Throws std::bad_alloc.
Status LoadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                HeatSketch* sketch);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_HEAT_FILE_H_
