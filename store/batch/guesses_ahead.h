// Guesses at the places of the rows of a batch that is changed shard by shard. The groups of one
// shard are small: 1,024 keys are one of 16 for each of 64 shards. Their cache misses overlap only
// if the keys of the next shards are looked up before it is their turn.
#ifndef EMBANK_STORE_BATCH_GUESSES_AHEAD_H_
#define EMBANK_STORE_BATCH_GUESSES_AHEAD_H_

#include <array>
#include <cstddef>
#include <optional>

#include "base/check.h"
#include "base/function_ref.h"
#include "base/hash.h"
#include "base/threads/epoch.h"
#include "store/batch/key_group.h"
#include "store/index/key_index.h"
#include "store/table/table.h"

namespace embank {

// For a user that asks for the guesses of keys in order, under the locks of their shards. It looks
// up the keys of some groups ahead, whoever holds the locks of their shards, and none before the
// first question. KeyIndex::Confirm tells whether a guess for a row in memory still holds; entries
// of the log are told apart by their records. For one thread.
class GuessesAhead {
 public:
  // Writes the hashes of the next keys, kGroupKeys of them, or the last ones; returns how many. It
  // is called inside an EpochTable::Guard, or under the lock of the only shard: it takes no lock,
  // and waits for nothing.
  using NextHashes = FunctionRef<size_t(KeyHash*)>;

  // `is_of_one_shard`: all keys are of one shard, whose lock the user holds when it asks. The table
  // and what is referred to outlive it.
  GuessesAhead(const Table& table, NextHashes next_hashes, bool is_of_one_shard)
      : table_(table),
        rows_(table.store().tier->rows(), table.layout().row_bytes),
        next_hashes_(next_hashes),
        needs_guard_(!is_of_one_shard) {}
  GuessesAhead(const GuessesAhead&) = delete;
  GuessesAhead& operator=(const GuessesAhead&) = delete;

  // Returns the guess for the i-th of the keys, where i is greater than in the call before. Inside
  // no EpochTable::Guard.
  [[gnu::always_inline]] const Match& At(size_t i) {
    const size_t group = i / kGroupKeys;
    if (group >= looked_groups_) LookUntil(group);
    // The rows of the next group, one with each question: see NextRows.
    const size_t at = i % kGroupKeys;
    while (prefetched_ <= at) PrefetchRow(*next_);
    // An index past the last key would return a guess that was never made. One below the last
    // question's is not noticed.
    EMBANK_CHECK(at < used_->size());
    return used_->guess(at);
  }

 private:
  // One is used; of the others the rows, the next buckets and the home buckets are on their way.
  static constexpr size_t kGroups = 4;

  KeyGroup& GroupAt(size_t group) { return groups_[group % kGroups]; }
  [[gnu::always_inline]] void PrefetchRow(const KeyGroup& group) {
    if (prefetched_ < group.size()) group.PrefetchRow(prefetched_);
    ++prefetched_;
  }
  // Looks up what a question for a key of this group needs.
  void LookUntil(size_t group);
  // The steps of a group: see KeyGroup. A group behind the last one has no keys.
  void PrefetchHome(size_t group);
  void LookHome(size_t group);
  void LookBehind(size_t group);

  const Table& table_;
  const RowsToPrefetch rows_;
  const NextHashes next_hashes_;
  const bool needs_guard_;
  size_t looked_groups_ = 0;  // those that were used, and the one that is
  size_t prefetched_ = 0;     // rows of the group after these
  const KeyGroup* used_ = nullptr;
  const KeyGroup* next_ = nullptr;
  std::array<KeyGroup, kGroups> groups_;
};

[[gnu::noinline]] inline void GuessesAhead::LookUntil(size_t group) {
  // Others may change the shards whose lock the user does not hold, and give back their buckets.
  std::optional<EpochTable::Guard> guard;
  if (needs_guard_) guard.emplace(table_.store().epochs);
  if (looked_groups_ == 0) {
    table_.counters().calls.AddIndexWalk();
    PrefetchHome(0);
    PrefetchHome(1);
    LookHome(0);
    PrefetchHome(2);
    LookHome(1);
    LookBehind(0);
  }
  for (; looked_groups_ <= group; ++looked_groups_) {
    used_ = &GroupAt(looked_groups_);
    while (prefetched_ < used_->size()) PrefetchRow(*used_);
    prefetched_ = 0;
    PrefetchHome(looked_groups_ + 3);
    LookHome(looked_groups_ + 2);
    LookBehind(looked_groups_ + 1);
    next_ = &GroupAt(looked_groups_ + 1);
  }
}

inline void GuessesAhead::PrefetchHome(size_t group) {
  KeyGroup& keys = GroupAt(group);
  keys.set_size(next_hashes_(keys.Begin(rows_)));
  keys.PrefetchHome(*table_.store().index);
}

inline void GuessesAhead::LookHome(size_t group) {
  GroupAt(group).LookHome<IndexUse::kChange>(*table_.store().index);
}

inline void GuessesAhead::LookBehind(size_t group) {
  GroupAt(group).LookBehind<IndexUse::kChange>(*table_.store().index);
}

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_GUESSES_AHEAD_H_
