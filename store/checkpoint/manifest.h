// The contents of a checkpoint (docs/file_formats.md): the tables of a store, and the records of
// its segments that are their rows.
#ifndef EMBANK_STORE_CHECKPOINT_MANIFEST_H_
#define EMBANK_STORE_CHECKPOINT_MANIFEST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "store/placement/heat_sketch.h"
#include "store/table/options.h"
#include "tiers/segment/log_segment.h"

namespace embank {

inline constexpr uint32_t kManifestFormatVersion = 4;
// Older versions are read, too: in 2 and 3 tables have the defaults of the options that came later,
// and there is no time, no id of PMem and no lost row; in 2, which is older than PMem, all segments
// are on the SSD.
inline constexpr uint32_t kManifestFormatVersionMin = 2;
inline constexpr uint64_t kManifestBytesMax = uint64_t{1} << 32;
inline constexpr uint64_t kBlobBytesMax = uint64_t{32} << 20;

struct ManifestTable {
  TableId id;
  std::string name;
  TableOptions options;  // with the update rule of the moment
  uint64_t gradient_calls = 0;
};

// The file that keeps the heat of a checkpoint's rows (store/checkpoint/heat_file.h).
struct HeatFile {
  uint64_t bytes = 0;         // 0: there is none
  uint64_t sketch_bytes = 0;  // of the sketch
  uint32_t crc = 0;           // of all its bytes

  // The size of a sketch that takes all heat of the file: its own, or half of it again and again
  // while most blocks stay empty and `rows` rows have one for each kRowsOfBlock. A file that has
  // rows in place of blocks may be longer than its sketch.
  uint64_t SketchBytesFor(uint64_t rows) const {
    const uint64_t blocks_min =
        std::max(bytes / sizeof(HeatBlock) * 2, rows / HeatSketch::kRowsOfBlock);
    uint64_t for_bytes = std::max(bytes, sketch_bytes);
    while (for_bytes / 2 / sizeof(HeatBlock) >= blocks_min && HeatSketch::IsSize(for_bytes / 2)) {
      for_bytes /= 2;
    }
    return for_bytes;
  }
};

// A directory of segments, other than the store's own.
struct LogDirectory {
  std::string path;  // absolute; empty: there is none
  uint64_t id = 0;   // 0: none, or written before version 4
};

struct Manifest {
  uint64_t store_id = 0;
  uint32_t checkpoint = 0;  // 0: the store has no checkpoint yet
  uint32_t previous = 0;    // the checkpoint that is kept with it; itself: none
  uint64_t seed = 0;
  ByTier<uint64_t> next_segment_ids = kFirstSegmentIds;
  uint64_t next_sequence = 1;
  std::vector<RowClass> row_classes;  // a class's number is its place
  std::vector<ManifestTable> tables;
  std::vector<SegmentRows> segments;
  ByTier<LogDirectory> directories;  // of the segments that are not in the store's
  // Rows that the store has lost for good, because a repair or an evacuation of PMem could not read
  // them.
  uint64_t rows_lost = 0;
  int64_t unix_ns = 0;  // the time of the checkpoint's barrier; 0: unknown
  HeatFile heat;
  std::vector<std::byte> blob;  // the caller's
};

// The rows whose records a manifest's segments have.
uint64_t CountRows(const Manifest& manifest);

// The paths of the directories, other than the store's, that have segments of a manifest. Throws
// std::bad_alloc.
std::vector<std::string> OtherPathsOf(const Manifest& manifest);

// The most bytes of a manifest of such tables, without segments, when it has some later: in a log
// of `ssd_bytes`, whose segments have from `segment_bytes_min` to `segment_bytes`, with a blob of
// `blob_bytes`. Throws std::bad_alloc.
uint64_t ManifestBytesMax(const Manifest& tables, uint64_t ssd_bytes, uint64_t segment_bytes_min,
                          uint64_t segment_bytes, uint64_t blob_bytes);

// Encodes a manifest that a store made. Throws std::bad_alloc.
std::vector<std::byte> EncodeManifest(const Manifest& manifest);
// Decodes a manifest. The result is consistent: a store may have these sizes, tables and options,
// and segments name existing classes. Throws std::bad_alloc.
// kDataLoss: the bytes are damaged.
// kFailedPrecondition: they have a newer format; the message names its version.
StatusOr<Manifest> DecodeManifest(std::span<const std::byte> bytes);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_MANIFEST_H_
