// The first value of a row: a function of (store seed, table's name, key), the same on every shard,
// rank, tier and run (docs/arithmetic.md).
#ifndef EMBANK_STORE_TABLE_INITIALIZER_H_
#define EMBANK_STORE_TABLE_INITIALIZER_H_

#include <cstddef>
#include <cstdint>

#include "base/hash.h"
#include "base/types.h"

namespace embank {

struct Initializer {
  InitializerKind kind = InitializerKind::kZero;
  float a = 0.0f;
  float b = 0.0f;
};

// The part of every row's seed that comes from the store's seed and the table.
uint64_t TableSeed(uint64_t store_seed, uint64_t table_hash);
// The seed of a row.
inline uint64_t RowSeed(uint64_t table_seed, Key key) { return Mix(table_seed ^ key); }

// Writes the first `dim` values of `key`'s row to `vector`, which needs no alignment. Allocates
// nothing. Thread-safe.
void InitializeVector(const Initializer& initializer, uint64_t table_seed, Key key,
                      ValueType value_type, uint32_t dim, std::byte* vector);

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_INITIALIZER_H_
