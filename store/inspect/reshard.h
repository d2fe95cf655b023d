// Makes the stores of some number of ranks out of those of another number.
//
//   rows of rank 0 ──┐                       ┌─▶ store of rank 0
//   rows of rank 1 ──┼── owner of its key ───┼─▶ store of rank 1
//   ...              │   (base/hash.h)       │   ...
//   a table that all ranks have: one copy ───┴─▶ all
//
// Rows have the same vectors, states and heat afterwards; tables have the same options, learning
// rates included. The stores are new ones, with ids of their own, and have one checkpoint.
#ifndef EMBANK_STORE_INSPECT_RESHARD_H_
#define EMBANK_STORE_INSPECT_RESHARD_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/status_or.h"
#include "store/inspect/checkpoint_rows.h"

namespace embank {

// The store of a rank that is to be made.
struct ReshardTarget {
  std::string directory;  // must not exist, or be empty; in an existing one
  std::string blob;       // of its checkpoint
};

struct ReshardOptions {
  // Names of tables whose rows all ranks have.
  std::vector<std::string> replicated = {};
  uint64_t now_ns = 0;  // the ids of the new stores are made of it
};

struct ReshardedTable {
  std::string name;
  bool is_replicated = false;
  uint64_t rows = 0;  // those of a replicated table count once
};

struct ReshardReport {
  std::vector<ReshardedTable> tables = {};
  uint64_t rows = 0;
  uint64_t written_bytes = 0;
  std::vector<std::string> heat_lost = {};  // why, for each source whose heat could not be read
};

// Reports that `done` of `total` rows of the sources are read; returns false to stop.
using ReshardProgress = FunctionRef<bool(uint64_t done, uint64_t total)>;

// The memory of a reshard: for the heat of all sources; for their windows, of which each takes at
// least a record; and for the records and keys of all targets, where each row class of each target
// takes at least a page of 64 KiB.
inline constexpr uint64_t kReshardHeatBytes = uint64_t{128} << 20;  // 12 M rows, six to 64 bytes
inline constexpr uint64_t kReshardWindowBytes = uint64_t{16} << 20;
inline constexpr uint64_t kReshardTargetBytes = uint64_t{64} << 20;

// Chooses the checkpoint of each source: the places in CheckpointRows::kept(). Divides
// kReshardHeatBytes among them. Throws std::bad_alloc. The statuses of CheckpointRows::Choose.
Status ChooseCheckpoints(std::span<const std::unique_ptr<CheckpointRows>> sources,
                         std::span<const size_t> places);

// Makes the targets, by rank, out of the chosen checkpoints of the sources, by rank; there are 1 to
// kOwnersMax of each. Sources are only read. Segments of all sources are read in the order of their
// relative age, so that tables that forget forget about the same rows. When it returns OK, the
// targets are durable, except the names of their directories. After an error some of them may be
// there: the caller removes them. Memory: as above, and the
// manifests. Throws std::bad_alloc.
// kInvalidArgument: no source has a table of `replicated`.
// kFailedPrecondition: sources have other seeds, or a table with other options; a row is not on the
// rank that owns it; copies of a replicated table differ. The message names table, key and ranks.
// kAlreadyExists: a target is not empty.
// kDataLoss: a record of a source cannot be read.
// kCancelled: progress returned false.
// The statuses of files.
StatusOr<ReshardReport> ReshardStores(FileSystem* files,
                                      std::span<const std::unique_ptr<CheckpointRows>> sources,
                                      std::span<const ReshardTarget> targets,
                                      const ReshardOptions& options, ReshardProgress progress);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_RESHARD_H_
