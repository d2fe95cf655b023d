// The hashes of many keys at a time.
#ifndef EMBANK_BASE_HASH_KEYS_H_
#define EMBANK_BASE_HASH_KEYS_H_

#include <cstdint>

#include "base/types.h"

namespace embank {

// HashKey of each key, to hashes[0], hashes[1], ...
void HashKeys(uint64_t table_hash, KeySpan keys, KeyHash* hashes);

}  // namespace embank

#endif  // EMBANK_BASE_HASH_KEYS_H_
