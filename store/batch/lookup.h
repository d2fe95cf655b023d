// Reading rows.
#ifndef EMBANK_STORE_BATCH_LOOKUP_H_
#define EMBANK_STORE_BATCH_LOOKUP_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Copies the rows of `keys` to `rows`; absent keys follow `rule`. Each row is copied whole. Counts
// heat. Takes no lock, but for rows that are created, to renew stamps of heat, and, for batches of
// 1,024 keys and more, to create while the table fills (Table::fills). Thread-safe.
// kFailedPrecondition (dropped), kResourceExhausted (scratch; or refused keys when `outcomes` is
// empty, the rest being done).
Status Lookup(Table* table, KeySpan keys, MissingRule rule, RowSpan rows, OutcomeSpan outcomes);

// Says which keys have rows. Takes no lock. Statuses as Lookup, but nothing is ever refused.
Status Contains(Table* table, KeySpan keys, OutcomeSpan outcomes);

// Copies to `heat` how often each key's row was looked up, 0 for absent keys. As Contains, but that
// it takes locks of shards, shared, for rows in the log.
Status GetHeat(Table* table, KeySpan keys, std::span<uint32_t> heat, OutcomeSpan outcomes);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_LOOKUP_H_
