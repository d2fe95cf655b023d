#include "store/batch/batch.h"

#include <algorithm>

#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/placement/page_mover.h"

namespace embank {
namespace {

// The first position of a tally (none: the greatest number) whose positions are from `begin` on.
void AddFirst(uint64_t first, uint64_t begin, uint64_t* sum) {
  if (first != ~uint64_t{0}) *sum = std::min(*sum, begin + first);
}

}  // namespace

void OutcomeTally::Add(const OutcomeTally& other, uint64_t begin) {
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  for (size_t i = 0; i < found_in.size(); ++i) found_in[i] += other.found_in[i];
  AddFirst(other.first_refused, begin, &first_refused);
  AddFirst(other.first_absent, begin, &first_absent);
  AddFirst(other.first_lost, begin, &first_lost);
  AddFirst(other.first_unavailable, begin, &first_unavailable);
  AddFirst(other.first_not_finite, begin, &first_not_finite);
  without_place += other.without_place;
}

void Batch::CountVerb(TableVerb verb, uint64_t nanoseconds) const {
  table_->counters().calls.Add(verb, nanoseconds,
                               {.keys_by_outcome = tally_.counts, .found_in = tally_.found_in});
}

Status Batch::UnreadStatus() const {
  if (!outcomes_.empty()) return OkStatus();
  if (count(Outcome::kUnavailable) > 0) {
    return NoThrowStatus(StatusCode::kUnavailable, [&] {
      return StrCat(count(Outcome::kUnavailable), " of ", keys_.size(),
                    " rows cannot be read now, of table \"", table_->name(),
                    "\", the first is key ", keys_[tally_.first_unavailable], " at position ",
                    tally_.first_unavailable,
                    "; they are not damaged: the process has no descriptor ",
                    "left for their files (RLIMIT_NOFILE): close some, or raise the limit; the ",
                    "others were done");
    });
  }
  if (count(Outcome::kDataLoss) == 0) return OkStatus();
  return NoThrowStatus(StatusCode::kDataLoss, [&] {
    return StrCat(count(Outcome::kDataLoss), " of ", keys_.size(),
                  " rows could not be read from the log, of table \"", table_->name(),
                  "\", the first is key ", keys_[tally_.first_lost], " at position ",
                  tally_.first_lost, "; the others were done");
  });
}

std::string Batch::RefusalReason() const {
  const StoreParts& parts = table_->parts();
  const bool is_index = tally_.without_place > 0;
  if (is_index && !parts.index->memory()->IsStarved()) {
    return "the index has no place for so many keys with nearly the same hash";
  }
  if (!is_index || parts.pages == nullptr) {
    std::string reason =
        "dram_bytes or the machine's memory is used up: erase rows or open the store with more "
        "(a table that forgets has to have rows for it)";
    // The lowest log reserves space, and comes last.
    for (const RowLog* const log : table_->mover()->logs().all()) {
      reason = log->space().RefusalReason();
    }
    return reason;
  }
  return StrCat("dram_bytes is ", parts.pages->budget_bytes(), ", of which the index takes ",
                parts.index->memory()->bytes(),
                " and finds no more to grow into: erase rows, or open the store with more, as "
                "embank_estimate says");
}

Status Batch::RefusedStatus() const {
  EMBANK_RETURN_IF_ERROR(UnreadStatus());
  if (!outcomes_.empty() || count(Outcome::kRefused) == 0) return OkStatus();
  return NoThrowStatus(StatusCode::kResourceExhausted, [&] {
    return StrCat("no space: ", count(Outcome::kRefused), " of ", keys_.size(),
                  " keys were refused in table \"", table_->name(), "\", the first is key ",
                  keys_[tally_.first_refused], " at position ", tally_.first_refused, "; ",
                  RefusalReason());
  });
}

Status Batch::NotFiniteStatus() const {
  if (!outcomes_.empty() || count(Outcome::kNotFinite) == 0) return OkStatus();
  return NoThrowStatus(StatusCode::kOutOfRange, [&] {
    return StrCat("the steps of ", count(Outcome::kNotFinite), " of ", keys_.size(),
                  " keys of table \"", table_->name(),
                  "\" would leave a value or a state that is NaN or infinite, the first is key ",
                  keys_[tally_.first_not_finite], " at position ", tally_.first_not_finite,
                  "; these rows are as they were, the others were done; see max_gradient_norm and "
                  "max_gradient_value");
  });
}

Status Batch::AbsentStatus() const {
  EMBANK_RETURN_IF_ERROR(RefusedStatus());
  EMBANK_RETURN_IF_ERROR(NotFiniteStatus());
  if (!outcomes_.empty() || count(Outcome::kAbsent) == 0) return OkStatus();
  return NoThrowStatus(StatusCode::kNotFound, [&] {
    return StrCat(count(Outcome::kAbsent), " of ", keys_.size(), " keys have no row in table \"",
                  table_->name(), "\", the first is key ", keys_[tally_.first_absent],
                  " at position ", tally_.first_absent,
                  "; the others were done; ask for outcomes to learn which");
  });
}

void Batch::Add(const OutcomeTally& tally) {
  if (keys_.size() < kSharedKeys) return tally_.Add(tally);
  MutexLock lock(&tally_mutex_);
  tally_.Add(tally);
}

bool Batch::IsShared(size_t keys) const {
  return keys >= kSharedKeys && table_->parts().executor->concurrency() > 1;
}

void Batch::Share(size_t keys, uint32_t tasks, FunctionRef<void(uint32_t)> body) const {
  if (keys >= kSharedKeys) return table_->parts().executor->ParallelFor(tasks, body);
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
