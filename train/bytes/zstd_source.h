// The bytes that were packed as .zst.
#ifndef EMBANK_TRAIN_BYTES_ZSTD_SOURCE_H_
#define EMBANK_TRAIN_BYTES_ZSTD_SOURCE_H_

#include <memory>
#include <string>
#include <string_view>

#include "train/bytes/byte_source.h"

namespace embank {

// The first bytes of a frame, and the last three of those of a skippable one.
inline constexpr std::string_view kZstdMagic = "\x28\xB5\x2F\xFD";
inline constexpr std::string_view kZstdSkippableMagic = "\x2A\x4D\x18";

// Unpacks the frames of a source, which messages call `name`. Read returns DATA_LOSS where a frame
// is damaged or cut off. RESOURCE_EXHAUSTED: there is no memory for it.
StatusOr<std::unique_ptr<ByteSource>> UnpackZstd(const std::string& name,
                                                 std::unique_ptr<ByteSource> source);

}  // namespace embank

#endif  // EMBANK_TRAIN_BYTES_ZSTD_SOURCE_H_
