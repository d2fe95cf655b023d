// Writes a store row by row, as one checkpoint, without a log and without an index.
//
//   rows ─▶ segment of each row class: | header | record | record | ... | footer |
//                                        last                         when it is full
//           manifest, when all segments are durable
//
// A row is its record, with the heat in it, so that the checkpoint has no heat file.
#ifndef EMBANK_STORE_INSPECT_STORE_WRITER_H_
#define EMBANK_STORE_INSPECT_STORE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/manifest.h"

namespace embank {

struct StoreWriterOptions {
  uint64_t store_id = 0;
  uint64_t seed = 0;
  std::vector<ManifestTable> tables = {};  // their ids are their places
  // Bytes of records that are written at once, whole blocks, at least kBufferBytesMin; and the most
  // rows of a segment, whose keys are in memory, 10 bytes each. Both count for each row class.
  uint64_t buffer_bytes = 0;
  uint32_t segment_rows_max = 0;
};

// One thread at a time. Until Finish has returned OK there is no store in the directory, and the
// caller removes what is there.
class StoreWriter {
 public:
  // A page: the rest of a block, and the largest record.
  static constexpr uint64_t kBufferBytesMin = uint64_t{64} << 10;

  // Makes the directory, which does not exist or is empty, in an existing one, and locks it.
  // `files` outlives the result. Throws std::bad_alloc. kAlreadyExists: it is not empty.
  // kUnavailable: it is locked. The statuses of files.
  static StatusOr<std::unique_ptr<StoreWriter>> Make(FileSystem* files, const std::string& path,
                                                     StoreWriterOptions options);
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  // Adds a row that was not added before. `payload` is vector and state as in a record of the
  // table's row class, and is copied. Writes a buffer when it is full. Throws std::bad_alloc.
  // kResourceExhausted, the statuses of files: nothing may be called any more.
  Status Add(size_t table, Key key, uint32_t heat, std::span<const std::byte> payload);

  // Writes the rest and the manifest: checkpoint 1 with this blob and this time, durable. Throws
  // std::bad_alloc. The statuses of files.
  Status Finish(std::span<const std::byte> blob, int64_t unix_ns, uint64_t rows_lost);

  // So far.
  uint64_t written_bytes() const { return written_bytes_; }

 private:
  class OpenSegment;

  StoreWriter(std::unique_ptr<CheckpointDirectory> directory, StoreWriterOptions options);
  Status BeginSegment(uint32_t row_class);
  Status EndSegment(uint32_t row_class);

  const std::unique_ptr<CheckpointDirectory> directory_;
  const StoreWriterOptions options_;
  MemoryBudget budget_{0};
  Manifest manifest_;
  std::vector<uint32_t> classes_;                       // of the tables
  std::vector<std::unique_ptr<OpenSegment>> segments_;  // by row class; nullptr: none is open
  uint64_t written_bytes_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_STORE_WRITER_H_
