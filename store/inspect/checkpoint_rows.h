// The rows of a checkpoint of a closed store, read from its segments: neither log nor index is made
// of it.
#ifndef EMBANK_STORE_INSPECT_CHECKPOINT_ROWS_H_
#define EMBANK_STORE_INSPECT_CHECKPOINT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/segment_reader.h"
#include "store/placement/heat_sketch.h"

namespace embank {

// A row as its record has it.
struct CheckpointRow {
  size_t table;  // its place in Manifest::tables
  Key key;
  KeyHash hash;
  uint32_t heat;                       // that a store has which opens the checkpoint
  std::span<const std::byte> payload;  // vector and state, with padding
};

// Locks the store together with other readers while it lives, and writes nothing. One thread at a
// time.
class CheckpointRows {
 public:
  // Opens a store's directory, and loads the manifests of its checkpoints. `files` outlives the
  // result. Throws std::bad_alloc.
  // kNotFound: there is no store.
  // kUnavailable: it is open to be changed.
  // kDataLoss: there are segments, and no manifest.
  // The statuses of files.
  static StatusOr<std::unique_ptr<CheckpointRows>> Open(FileSystem* files, const std::string& path);

  const std::string& path() const { return path_; }
  // Returns the checkpoints, the newest first; none after Choose.
  std::span<const KeptCheckpoint> kept() const { return kept_; }
  // The bytes of memory for all heat that a checkpoint keeps beside its records.
  uint64_t HeatBytesOf(size_t place) const { return kept_[place].manifest->heat.SketchBytesFor(0); }

  // Chooses the checkpoint at this place of kept(), whose manifest was loaded; once. Its heat takes
  // at most `heat_bytes_max` of memory, but at least 4 KiB: with less than HeatBytesOf, some of the
  // coldest rows have the heat of their records. Heat that cannot be read costs no row; heat_lost
  // tells. Records are read in pieces of `window_bytes` (SegmentReader). Throws std::bad_alloc.
  // kResourceExhausted.
  Status Choose(size_t place, uint64_t heat_bytes_max, uint64_t window_bytes);
  // All below is about the chosen checkpoint. Segments are in the order in which they were begun.
  const Manifest& manifest() const { return manifest_; }
  uint64_t rows() const { return rows_; }
  const std::string& heat_lost() const { return heat_lost_; }  // why; empty: it is all there

  // Calls visit(row) for each row of a segment, until that returns an error, which is returned.
  // kDataLoss: a record is damaged, or the segment is missing or cut off; no row is left out
  // without an error. The statuses of files.
  using VisitRow = FunctionRef<Status(const CheckpointRow&)>;
  Status VisitSegment(size_t segment, VisitRow visit);

 private:
  CheckpointRows(FileSystem* files, std::string path,
                 std::unique_ptr<CheckpointDirectory> directory);

  Status LoadHeat(uint64_t heat_bytes_max);
  StatusOr<CheckpointRow> RowOf(const SegmentRows& rows, uint32_t slot,
                                std::span<const std::byte> record) const;
  Status Lost(const SegmentRows& rows, std::string_view what) const;

  FileSystem* const files_;
  const std::string path_;
  const std::unique_ptr<CheckpointDirectory> directory_;
  std::optional<SegmentReader> reader_;  // of the chosen checkpoint
  MemoryBudget budget_{0};
  std::vector<KeptCheckpoint> kept_;
  Manifest manifest_;
  std::unique_ptr<HeatSketch> heat_;  // nullptr: records have it all
  std::string heat_lost_;
  uint64_t rows_ = 0;
  struct TableOfRows {
    size_t place;
    uint32_t row_class;
    uint64_t hash;
  };
  std::vector<TableOfRows> tables_;  // by id; a place that no table has is kNoTable
};

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_CHECKPOINT_ROWS_H_
