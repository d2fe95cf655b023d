#include "base/hash_keys.h"

#include "base/hash.h"
#include "base/simd_clones.h"

namespace embank {

EMBANK_SIMD_CLONES void HashKeys(uint64_t table_hash, KeySpan keys, KeyHash* hashes) {
  for (size_t i = 0; i < keys.size(); ++i) hashes[i] = HashKey(table_hash, keys[i]);
}

}  // namespace embank
