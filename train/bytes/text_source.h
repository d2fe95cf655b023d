// The text of a file: its bytes without a byte order mark, in UTF-8.
#ifndef EMBANK_TRAIN_BYTES_TEXT_SOURCE_H_
#define EMBANK_TRAIN_BYTES_TEXT_SOURCE_H_

#include <memory>
#include <string>

#include "train/bytes/byte_source.h"

namespace embank {

// Opens a file as OpenByteSource does. UTF-16 with a byte order mark becomes UTF-8, and what is no
// character of it U+FFFD; other bytes stay as they are. Blocks on the first bytes.
// INVALID_ARGUMENT: the file is Parquet, a zip, tar, Excel or xz file or another one that is known
// to be no text; the message says what to do. The statuses of OpenByteSource.
StatusOr<std::unique_ptr<ByteSource>> OpenTextSource(const std::string& path);

}  // namespace embank

#endif  // EMBANK_TRAIN_BYTES_TEXT_SOURCE_H_
