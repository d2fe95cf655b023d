#include "store/batch/batch.h"

#include <algorithm>

#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/placement/page_mover.h"

namespace embank {

void OutcomeTally::Add(const OutcomeTally& other, uint64_t begin) {
  for (size_t i = 0; i < counts.size(); ++i) {
    counts[i] += other.counts[i];
    if (other.firsts[i] != kNoPosition) firsts[i] = std::min(firsts[i], begin + other.firsts[i]);
  }
  for (size_t i = 0; i < found_in.size(); ++i) found_in[i] += other.found_in[i];
  without_place += other.without_place;
}

void Batch::CountVerb(TableVerb verb, uint64_t nanoseconds) const {
  table_->counters().calls.Add(verb, nanoseconds,
                               {.keys_by_outcome = tally_.counts, .found_in = tally_.found_in});
}

// The code of a status, and its words: in front of the number of keys, between it and the name of
// the table, and after the name.
struct Batch::Words {
  StatusCode code;
  const char* front;
  const char* keys;
  const char* end = "";
};

// OK if no key has the outcome, or if the caller took outcomes. The message ends with hint().
template <typename Hint>
Status Batch::StatusOf(Outcome outcome, const Words& words, Hint hint) const {
  if (!outcomes_.empty() || count(outcome) == 0) return OkStatus();
  return NoThrowStatus(words.code, [&] {
    const uint64_t first = tally_.first(outcome);
    EMBANK_CHECK(first < keys_.size());
    return StrCat(words.front, count(outcome), " of ", keys_.size(), words.keys, "table \"",
                  table_->name(), "\"", words.end, ", the first is key ", keys_[first],
                  " at position ", first, "; ", hint());
  });
}

Status Batch::UnreadStatus() const {
  EMBANK_RETURN_IF_ERROR(StatusOf(
      Outcome::kUnavailable, {StatusCode::kUnavailable, "", " rows cannot be read now, of "}, [] {
        return "they are not damaged: the process has no descriptor left for their files "
               "(RLIMIT_NOFILE): close some, or raise the limit; the others were done";
      }));
  return StatusOf(Outcome::kDataLoss,
                  {StatusCode::kDataLoss, "", " rows could not be read from the log, of "},
                  [] { return "the others were done"; });
}

std::string Batch::RefusalReason() const {
  const StoreContext& store = table_->store();
  const bool is_index = tally_.without_place > 0;
  if (is_index && !store.index->memory()->IsStarved()) {
    return "the index has no place for so many keys with nearly the same hash";
  }
  if (!is_index || store.pages == nullptr) {
    std::string reason =
        "dram_bytes or the machine's memory is used up: erase rows or open the store with more "
        "(a table that forgets has to have rows for it)";
    // The lowest log reserves space, and comes last.
    for (const RowLog* const log : table_->mover()->logs().all()) {
      reason = log->space().RefusalReason();
    }
    return reason;
  }
  return StrCat("dram_bytes is ", store.pages->budget_bytes(), ", of which the index takes ",
                store.index->memory()->bytes(),
                " and finds no more to grow into: erase rows, or open the store with more, as "
                "embank_estimate says");
}

Status Batch::RefusedStatus() const {
  // Most calls find all their rows, and a small call is short.
  if (count(Outcome::kFound) == keys_.size()) return OkStatus();
  EMBANK_RETURN_IF_ERROR(UnreadStatus());
  return StatusOf(Outcome::kRefused,
                  {StatusCode::kResourceExhausted, "no space: ", " keys were refused in "},
                  [&] { return RefusalReason(); });
}

Status Batch::AbsentStatus() const {
  EMBANK_RETURN_IF_ERROR(RefusedStatus());
  EMBANK_RETURN_IF_ERROR(StatusOf(Outcome::kNotFinite,
                                  {StatusCode::kOutOfRange, "the steps of ", " keys of ",
                                   " would leave a value or a state that is NaN or infinite"},
                                  [] {
                                    return "these rows are as they were, the others were done; see "
                                           "max_gradient_norm and max_gradient_value";
                                  }));
  return StatusOf(Outcome::kAbsent, {StatusCode::kNotFound, "", " keys have no row in "},
                  [] { return "the others were done; ask for outcomes to learn which"; });
}

void Batch::Add(const OutcomeTally& tally) {
  if (keys_.size() < kSharedKeys) return tally_.Add(tally);
  MutexLock lock(&tally_mutex_);
  tally_.Add(tally);
}

bool Batch::IsShared(size_t keys) const {
  return keys >= kSharedKeys && table_->store().executor->concurrency() > 1;
}

void Batch::Share(size_t keys, uint32_t tasks, FunctionRef<void(uint32_t)> body) const {
  if (keys >= kSharedKeys) return table_->store().executor->ParallelFor(tasks, body);
  for (uint32_t task = 0; task < tasks; ++task) body(task);
}

void Batch::ForEachPart(FunctionRef<void(uint32_t, uint32_t)> body) const {
  const size_t parts = (keys_.size() - answered_ + kPartKeys - 1) / kPartKeys;
  Share(keys_.size(), static_cast<uint32_t>(parts), [&](uint32_t part) {
    const size_t begin = answered_ + part * kPartKeys;
    body(static_cast<uint32_t>(begin),
         static_cast<uint32_t>(std::min(begin + kPartKeys, keys_.size())));
  });
}

}  // namespace embank
