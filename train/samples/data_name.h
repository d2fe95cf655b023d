// The name of the data of a training: a position in them must not be taken for one in others.
#ifndef EMBANK_TRAIN_SAMPLES_DATA_NAME_H_
#define EMBANK_TRAIN_SAMPLES_DATA_NAME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace embank {

// The beginning of a file, and its size.
struct FileHead {
  uint64_t bytes = 0;  // 0: a pipe that was not looked at
  uint32_t crc32c = 0;
  uint64_t file_bytes = 0;  // of the whole file, as it is stored; 0: not known

  bool operator==(const FileHead&) const = default;
};

// Returns the head that a file of unknown size with these first bytes has.
FileHead HeadOf(std::span<const std::byte> bytes);

struct DataName {
  std::string words = {};            // one line; empty: nothing tells them from others
  uint32_t shuffle = 0;              // samples of a window in random order; 0: all in theirs
  std::vector<FileHead> files = {};  // of a log, without empty ones

  bool operator==(const DataName&) const = default;
};

// Returns whether `data` begin with the files of `part`, in the same order of samples: a position
// in `part` is one in `data`, too. The last file of `part` may have another size, because lines are
// appended to it; in any other file they would shift the position.
bool BeginWith(const DataName& data, const DataName& part);

// Returns a phrase for a person, which differs where the names do.
std::string TextOf(const DataName& data);

}  // namespace embank

#endif  // EMBANK_TRAIN_SAMPLES_DATA_NAME_H_
