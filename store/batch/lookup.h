// Lookups: reading rows.
#ifndef EMBANK_STORE_BATCH_LOOKUP_H_
#define EMBANK_STORE_BATCH_LOOKUP_H_

#include <span>

#include "base/function_ref.h"
#include "base/status.h"
#include "store/batch/batch.h"
#include "store/batch/key_group.h"
#include "store/table/table.h"

namespace embank {

class BatchKeys;
class PayloadList;
class LoggedRows;
class WriteScope;
struct ShardGroup;

// Copies the rows of `keys` to `rows`; absent keys follow `rule`. Each row is copied whole. Counts
// heat. Takes no lock, except for rows that are created or promoted, for the order of LRU, to renew
// stamps of heat, and, in batches of 1,024 keys and more, to create while the table fills
// (Table::fills). Thread-safe.
// kFailedPrecondition: the table was dropped.
// kResourceExhausted: no memory for scratch; or keys are refused and `outcomes` is empty, and the
// rest was done.
Status Lookup(Table* table, KeySpan keys, MissingRule rule, RowSpan rows, OutcomeSpan outcomes);

// Says which keys have rows. Takes no lock. Statuses like Lookup, but no key is refused.
Status Contains(Table* table, KeySpan keys, OutcomeSpan outcomes);

// Copies the heat of each key's row to `heat`, 0 for absent keys. Like Contains, but takes shared
// locks of shards for rows in the log.
Status GetHeat(Table* table, KeySpan keys, std::span<uint32_t> heat, OutcomeSpan outcomes);

// ---- the steps of a lookup, for callers that look several batches up or whose rows are in device
// memory (store/packed, store/device) ----

// A batch of few keys, whose rows are read together with those of others.
struct LeadingBatch {
  Batch* batch;
  RowSpan rows;
};
// Answers the leading positions of batches of one store, which have no answers yet, as long as
// their rows are in DRAM: mostly all of a batch. Batch::answered tells how many. The keys of all
// batches, which `keys` has too, go through one pipeline. Takes no lock; one thread, inside no
// EpochTable::Guard.
void ReadLeading(std::span<const LeadingBatch> batches, std::span<const TableKeys> keys);
// Whether batches of the table may be read so. ReadLeading may write the rows of positions that it
// does not answer; a lookup that may have to keep such rows cannot use it.
bool MayReadLeading(const Table& table, MissingRule rule);
// The most keys of such a batch. Larger ones overlap their own misses.
inline constexpr size_t kLeadingKeysMax = 512;

// Copies the rows of a batch that exist and are not in device memory, counts heat for all that
// exist (Batch::TouchesOf), and sets their outcomes. Notes rows in device memory in `payloads`.
// Calls missing(position, tally) for the others, whose answers may be overwritten before; kept
// under kSkip. Inside the payload gate. `logged` and `payloads` have space for the batch.
using Missing = FunctionRef<void(uint32_t, OutcomeTally*)>;
void ReadExisting(Batch* batch, LoggedRows* logged, PayloadList* payloads, MissingRule rule,
                  RowSpan rows, Missing missing);
// Writes the answer for an absent key to `out`.
void AnswerMissing(const Table& table, Key key, MissingRule rule, std::byte* out);
// Answers the positions of a shard group, and creates the rows that are absent. Notes rows in
// device memory in `payloads`.
void CreateGroup(Batch* batch, const ShardGroup& group, const UpdateRule& rule, RowSpan rows,
                 const BatchKeys& batch_keys, PayloadList* payloads);
// Counts the positions of a lookup whose rows are in device memory; and of `keys`, if they are in
// the sample, the distinct ones that are there (store/payload/unique_hits.h).
void CountPayloads(Table* table, KeySpan keys, PayloadList* payloads);
// Does the work of Lookup on the positions of a batch after the leading ones; it is neither counted
// nor settled then.
Status AnswerLookup(Batch* batch, WriteScope* scope, MissingRule rule, RowSpan rows);
// Counts a lookup whose answers are all given, as one batch of its table that took so long. `keys`
// are in parts, and count `more_touches` more than once each.
void CountLookup(Batch* batch, std::span<const KeySpan> keys, uint64_t more_touches,
                 uint64_t nanoseconds);
// Counts a lookup whose answers are all given, pays its debts, and returns its status.
Status FinishLookup(Batch* batch, WriteScope* scope, uint64_t begin_ns);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_LOOKUP_H_
