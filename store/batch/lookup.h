// Lookups: reading rows.
#ifndef EMBANK_STORE_BATCH_LOOKUP_H_
#define EMBANK_STORE_BATCH_LOOKUP_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Copies the rows of `keys` to `rows`; absent keys follow `rule`. Each row is copied whole. Counts
// heat. Takes no lock, except for rows that are created, to renew stamps of heat, and, in batches
// of 1,024 keys and more, to create while the table fills (Table::fills). Thread-safe.
// kFailedPrecondition: the table was dropped.
// kResourceExhausted: no memory for scratch; or keys are refused and `outcomes` is empty, and the
// rest was done.
Status Lookup(Table* table, KeySpan keys, MissingRule rule, RowSpan rows, OutcomeSpan outcomes);

// Says which keys have rows. Takes no lock. Statuses like Lookup, but no key is refused.
Status Contains(Table* table, KeySpan keys, OutcomeSpan outcomes);

// Copies the heat of each key's row to `heat`, 0 for absent keys. Like Contains, but takes shared
// locks of shards for rows in the log.
Status GetHeat(Table* table, KeySpan keys, std::span<uint32_t> heat, OutcomeSpan outcomes);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_LOOKUP_H_
