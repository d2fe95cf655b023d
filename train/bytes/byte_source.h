// The bytes of a file in order, unpacked when it begins as .zst and .gz files do.
#ifndef EMBANK_TRAIN_BYTES_BYTE_SOURCE_H_
#define EMBANK_TRAIN_BYTES_BYTE_SOURCE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status_or.h"

namespace embank {

// The path of standard input.
inline constexpr std::string_view kStandardInput = "-";

// Returns whether a path is there, and can be read once alone: standard input, a pipe, a device.
bool IsReadOnce(const std::string& path);

// From now on, reads that have waited for a pipe for a second return CANCELLED; false: they wait
// again for as long as it takes. Signal handlers may call it.
void EndWaits(bool end);

// Memory is constant, whatever the file's size. One thread.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills `out` from its front and returns the number of bytes; less than out.size() only at the
  // end, 0 after it. DATA_LOSS: the message names the file and the damage. CANCELLED: see EndWaits.
  virtual StatusOr<size_t> Read(std::span<std::byte> out) = 0;

  // The part of the file that was read, 0..1, for progress; 0 for a pipe, whose size is not known.
  virtual double FractionRead() const = 0;
};

// Opens a file, a pipe or standard input. Its first bytes tell whether it is packed, and its name
// only where it ends inside of them. NOT_FOUND, PERMISSION_DENIED and the like name it.
StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path);

}  // namespace embank

#endif  // EMBANK_TRAIN_BYTES_BYTE_SOURCE_H_
