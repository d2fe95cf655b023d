// A batch under way: its keys, their outcomes, and how it is shared among threads.
#ifndef EMBANK_STORE_BATCH_BATCH_H_
#define EMBANK_STORE_BATCH_BATCH_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/check.h"
#include "base/function_ref.h"
#include "base/status.h"
#include "base/threads/mutex.h"
#include "store/table/table.h"

namespace embank {

// Counts the outcomes of keys, and keeps the first position of each outcome.
struct OutcomeTally {
  static constexpr uint64_t kNoPosition = ~uint64_t{0};

  std::array<uint64_t, kOutcomes> counts{};  // index: Outcome - 1
  // The index is that of counts. The first of the found rows may be missing.
  std::array<uint64_t, kOutcomes> firsts = NoPositions();
  std::array<uint64_t, kTiers> found_in{};  // lookups: the tier of each row that was found
  uint64_t without_place = 0;               // refusals by the index

  uint64_t count(Outcome outcome) const { return counts[static_cast<size_t>(outcome) - 1]; }
  uint64_t first(Outcome outcome) const { return firsts[static_cast<size_t>(outcome) - 1]; }
  // The number of rows that could not be read.
  uint64_t unread() const { return count(Outcome::kDataLoss) + count(Outcome::kUnavailable); }
  // Adds one position.
  void Add(Outcome outcome, uint64_t position) {
    const size_t i = static_cast<size_t>(outcome) - 1;
    ++counts[i];
    firsts[i] = std::min(firsts[i], position);
  }
  // Notes that `rows` of a lookup were found in a tier.
  void NoteFound(Tier tier, uint64_t rows = 1) { found_in[static_cast<size_t>(tier)] += rows; }
  // Adds all of another tally, whose positions are from `begin` on.
  void Add(const OutcomeTally& other, uint64_t begin = 0);

 private:
  static constexpr std::array<uint64_t, kOutcomes> NoPositions() {
    std::array<uint64_t, kOutcomes> positions{};
    positions.fill(kNoPosition);
    return positions;
  }
};

class Batch {
 public:
  // Borrows the keys and the outcomes (empty or one per key). At most kBatchKeysMax keys.
  Batch(Table* table, KeySpan keys, OutcomeSpan outcomes)
      : table_(table), keys_(keys), outcomes_(outcomes) {}

  Table& table() const { return *table_; }
  KeySpan keys() const { return keys_; }
  // How often each key of a lookup counts as looked up. Empty: once.
  void set_touches(std::span<const uint16_t> touches) {
    EMBANK_CHECK(touches.empty() || touches.size() == keys_.size());
    touches_ = touches;
  }
  bool has_touches() const { return !touches_.empty(); }
  uint32_t TouchesOf(uint32_t position) const { return touches_.empty() ? 1 : touches_[position]; }

  // Positions that one thread takes at once: a quarter of the smallest batch that is shared.
  static constexpr size_t kPartKeys = 2048;
  // A batch of at least this many keys is shared. One thread finishes a smaller one sooner than
  // another one wakes up: 8,192 rows take half a millisecond, waking a thread up to 50 us.
  static constexpr size_t kSharedKeys = 4 * kPartKeys;

  // Whether threads share `keys` positions of this batch, or of a part of it.
  bool IsShared(size_t keys) const;
  // Runs body(task) for 0 .. tasks - 1; on several threads when `keys` (of this batch or of a part
  // of it) are many.
  void Share(size_t keys, uint32_t tasks, FunctionRef<void(uint32_t)> body) const;

  // Calls body(begin, end) for parts of the positions after the leading ones, of at most kPartKeys
  // each, as Share does.
  void ForEachPart(FunctionRef<void(uint32_t, uint32_t)> body) const;

  // Sets the outcome of a position, in the caller's own tally.
  void Answer(uint32_t position, Outcome outcome, OutcomeTally* tally) const {
    if (!outcomes_.empty()) outcomes_[position] = static_cast<uint8_t>(outcome);
    tally->Add(outcome, position);
  }
  // Sets the outcome of `count` positions to found.
  void AnswerFound(uint32_t position, size_t count, OutcomeTally* tally) const {
    constexpr Outcome kOutcome = Outcome::kFound;
    if (!outcomes_.empty()) std::memset(&outcomes_[position], static_cast<int>(kOutcome), count);
    tally->counts[static_cast<size_t>(kOutcome) - 1] += count;
  }
  // Sets the outcomes of the next `count` positions of a lookup to found in DRAM, before it has any
  // other answers. For one thread.
  void AnswerLeading(size_t count) {
    AnswerFound(answered_, count, &tally_);
    tally_.NoteFound(Tier::kDram, count);
    answered_ += static_cast<uint32_t>(count);
  }
  // The number of positions that AnswerLeading has answered.
  uint32_t answered() const { return answered_; }
  // Adds a tally to the batch's. Thread-safe in a batch that may be shared.
  void Add(const OutcomeTally& tally);

  // The time since `begin_ns`.
  uint64_t NsSince(uint64_t begin_ns) const { return table_->store().clock->NowNs() - begin_ns; }
  // Adds the tally and the batch's duration to the table's counters. After all answers.
  void CountVerb(TableVerb verb, uint64_t nanoseconds) const;
  uint64_t count(Outcome outcome) const { return tally_.count(outcome); }
  const OutcomeTally& tally() const { return tally_; }  // after all answers

  // The statuses of a call whose caller took no outcomes. UnreadStatus reports keys that are
  // unavailable or lost, RefusedStatus also refused keys, AbsentStatus also keys whose step was
  // not finite, and then absent ones; else OK.
  Status UnreadStatus() const;
  Status RefusedStatus() const;
  Status AbsentStatus() const;

 private:
  struct Words;
  template <typename Hint>
  Status StatusOf(Outcome outcome, const Words& words, Hint hint) const;
  std::string RefusalReason() const;

  Table* const table_;
  const KeySpan keys_;
  const OutcomeSpan outcomes_;
  std::span<const uint16_t> touches_;
  uint32_t answered_ = 0;
  Mutex tally_mutex_;
  // In a batch that may be shared, guarded by tally_mutex_ while parts are under way.
  OutcomeTally tally_;
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_BATCH_H_
