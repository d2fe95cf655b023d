// Writes a file of hot and cold batches.
#ifndef EMBANK_TRAIN_FAE_FAE_WRITER_H_
#define EMBANK_TRAIN_FAE_FAE_WRITER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "train/bytes/file_pointer.h"
#include "train/fae/fae_format.h"
#include "train/popularity/id_places.h"
#include "train/samples/click_batch.h"

namespace embank {

// Samples of a class keep the order in which they are added. The file has its name when it is whole
// and durable; before, that name has ".unfinished" at its end. Two blocks are in memory. One
// thread.
class FaeWriter {
 public:
  // Begins a file, in place of an unfinished one. RESOURCE_EXHAUSTED: the disk is full. UNAVAILABLE
  // and the like name the path and the system's error.
  static StatusOr<std::unique_ptr<FaeWriter>> Create(const std::string& path,
                                                     const ClickColumns& columns);
  // Returns the path that a file has before it is whole.
  static std::string UnfinishedPath(const std::string& path);
  // Removes the file if it is unfinished.
  ~FaeWriter();
  FaeWriter(const FaeWriter&) = delete;
  FaeWriter& operator=(const FaeWriter&) = delete;

  // Appends a sample of a batch, which has the columns. Blocks on writes.
  // INVALID_ARGUMENT: samples before it have labels, bags or weights, and it has none, or the other
  // way round. The statuses of Create; after one of them all calls return it.
  Status Add(const ClickBatch& samples, uint32_t sample, bool is_hot);

  // Writes the rest and names the file, in place of one that has its name. The features and tables
  // of the header are those of the columns, its dims and row_bytes have one for each id feature,
  // and its samples are counted here. Called once. The statuses of Add.
  Status Finish(FaeHeader header, const HotIds& hot_ids);

 private:
  struct Pending {
    ClickBatch samples;
    uint64_t bytes = 0;  // of its payload
  };

  FaeWriter(std::string path, const ClickColumns& columns, std::FILE* file);
  Status Write(std::string_view bytes);
  Status WriteBlock(bool is_hot);
  Status WritePart(const std::string& bytes, fae::Part* part);
  Status WriteEnd(const FaeHeader& header, const HotIds& hot_ids);
  Status Rename();
  Status Keep(const Status& status);

  const std::string path_;
  const std::string unfinished_path_;
  const ClickColumns columns_;
  FilePointer file_;  // nullptr: it is finished
  uint64_t offset_ = 0;
  uint64_t samples_ = 0;
  std::array<Pending, 2> pending_;  // cold, hot
  std::vector<fae::Block> blocks_;
  Status failure_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_FAE_FAE_WRITER_H_
