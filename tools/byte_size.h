// Sizes in bytes, as a person types them.
#ifndef EMBANK_TOOLS_BYTE_SIZE_H_
#define EMBANK_TOOLS_BYTE_SIZE_H_

#include <cstdint>
#include <string_view>

#include "base/status_or.h"

namespace embank {

// Returns the bytes that "512MiB" means: a whole number of B, KiB, MiB or GiB, and of B without a
// unit. INVALID_ARGUMENT: the text is another one, 0, or above 2^60; the message begins with `of`.
StatusOr<uint64_t> ParseByteSize(std::string_view of, std::string_view text);

}  // namespace embank

#endif  // EMBANK_TOOLS_BYTE_SIZE_H_
