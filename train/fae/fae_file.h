// Reads a file of hot and cold batches.
#ifndef EMBANK_TRAIN_FAE_FAE_FILE_H_
#define EMBANK_TRAIN_FAE_FAE_FILE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "train/bytes/file_pointer.h"
#include "train/fae/fae_format.h"
#include "train/popularity/id_places.h"
#include "train/samples/click_batch.h"

namespace embank {

// Thread-safe.
class FaeFile {
 public:
  // Reads all but the blocks. DATA_LOSS: not a file of hot and cold batches, or truncated or
  // damaged; the message has the path, and the byte at which the damaged part begins.
  // INVALID_ARGUMENT: no regular file. FAILED_PRECONDITION: a newer version. NOT_FOUND and the
  // like: the system's error.
  static StatusOr<std::shared_ptr<const FaeFile>> Open(const std::string& path);
  // Returns whether a path is a regular file that begins as one of these.
  static bool Is(const std::string& path);

  const FaeHeader& header() const { return header_; }
  std::shared_ptr<const HotIds> hot_ids() const { return hot_ids_; }
  // The samples of a class.
  uint64_t samples(bool is_hot) const { return begins_[is_hot].back(); }
  // The batches of a class, the last of which may be short.
  uint64_t Batches(bool is_hot, uint32_t batch_samples) const {
    return (samples(is_hot) + batch_samples - 1) / batch_samples;
  }

  // The blocks of a class, by their place in the order of its samples.
  size_t blocks(bool is_hot) const { return blocks_[is_hot].size(); }
  // Returns the number of samples of the class before a block; of all, where it is blocks().
  uint64_t BlockBegin(bool is_hot, size_t block) const { return begins_[is_hot][block]; }
  // Returns the block with a sample, which is below samples().
  size_t BlockOf(bool is_hot, uint64_t sample) const;
  // Replaces the contents of `samples` by those of a block. Blocks on reads. DATA_LOSS: it is
  // damaged; UNAVAILABLE and the like: the system's error.
  Status ReadBlock(bool is_hot, size_t block, ClickBatch* samples) const;

 private:
  FaeFile(std::string path, std::FILE* file);
  Status Read(uint64_t offset, uint64_t bytes, std::string* out) const;
  Status ReadPart(const fae::Part& part, const char* name, std::string* out) const;
  Status ReadAll();
  Status ReadHead();
  StatusOr<fae::Footer> ReadFooter() const;
  Status ReadText(const fae::Part& part);
  Status ReadIndex(const fae::Part& part, uint64_t blocks_end);
  Status ReadHotIds(const fae::Part& part);
  Status Damaged(uint64_t offset, const char* part) const;

  const std::string path_;
  const FilePointer file_;
  uint64_t file_bytes_ = 0;
  FaeHeader header_;
  std::shared_ptr<const HotIds> hot_ids_;
  std::array<std::vector<fae::Block>, 2> blocks_;  // cold, hot
  std::array<std::vector<uint64_t>, 2> begins_ = {{{0}, {0}}};
};

}  // namespace embank

#endif  // EMBANK_TRAIN_FAE_FAE_FILE_H_
