#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace embank {

uint64_t TableHash(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

}  // namespace embank
