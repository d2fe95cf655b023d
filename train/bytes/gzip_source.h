// The bytes that were packed as .gz.
#ifndef EMBANK_TRAIN_BYTES_GZIP_SOURCE_H_
#define EMBANK_TRAIN_BYTES_GZIP_SOURCE_H_

#include <memory>
#include <string>
#include <string_view>

#include "train/bytes/byte_source.h"

namespace embank {

// The first bytes of a member: its magic number, and its only method.
inline constexpr std::string_view kGzipMagic = "\x1F\x8B\x08";

// Unpacks the members of a source, which messages call `name`. Zeros behind the last one are left
// out. Read returns DATA_LOSS where a member is damaged or cut off. RESOURCE_EXHAUSTED: there is no
// memory for it.
StatusOr<std::unique_ptr<ByteSource>> UnpackGzip(const std::string& name,
                                                 std::unique_ptr<ByteSource> source);

}  // namespace embank

#endif  // EMBANK_TRAIN_BYTES_GZIP_SOURCE_H_
