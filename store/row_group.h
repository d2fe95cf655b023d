// Groups of keys on their way through index and rows: while one group is at its rows, the next
// ones' rows and buckets are on their way from memory.
#ifndef EMBANK_STORE_ROW_GROUP_H_
#define EMBANK_STORE_ROW_GROUP_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/fence.h"
#include "base/spin_wait.h"
#include "store/batch.h"
#include "store/shard_plan.h"
#include "store/table.h"

namespace embank {

// Asks the cache for the first `row_bytes` of rows: the header to be written (heat) and up to eight
// lines more; what follows the processor fetches by itself.
class RowPrefetcher {
 public:
  RowPrefetcher(const Table& table, uint32_t row_bytes)
      : tier_(table.parts().tier), end_bytes_(std::min(row_bytes, kLinesMax * kLineBytes)) {}

  // Always inlined: g++ 12 takes a function that only prefetches for one without effect, and drops
  // calls of it.
  [[gnu::always_inline]] void Ask(Location location) const {
    if (location.tier() != Tier::kDram) return;
    const std::byte* const row = tier_->Row(location);
    __builtin_prefetch(row, 1);
    for (uint32_t i = kLineBytes; i < end_bytes_; i += kLineBytes) __builtin_prefetch(row + i);
    // Rows do not begin at lines: the last byte may be one line further.
    __builtin_prefetch(row + end_bytes_ - 1);
  }

 private:
  static constexpr uint32_t kLineBytes = 64;
  static constexpr uint32_t kLinesMax = 9;
  const DramTier* const tier_;
  const uint32_t end_bytes_;
};

// Whether the index stays as it is while keys are on their way.
enum class IndexUse {
  kRead,    // inside an EpochTable::Guard, or under the shard's lock by one who leaves all
            // entries in their buckets
  kChange,  // under the shard's lock, by whoever changes it: an array may shrink meanwhile
};

// Up to kGroupKeys keys, and where their rows seem to be: guesses, to be confirmed.
class KeyGroup {
 public:
  size_t size() const { return size_; }
  KeyHash hash(size_t i) const { return hashes_[i]; }
  const Match& guess(size_t i) const { return guesses_[i]; }

  // Step 1: takes hash_at(i) for i in [begin, end), and asks for their home buckets.
  template <typename HashAt>
  void Begin(const KeyIndex& index, size_t begin, size_t end, HashAt hash_at) {
    size_ = end - begin;
    for (size_t i = 0; i < size_; ++i) {
      hashes_[i] = hash_at(begin + i);
      probes_[i] = index.ProbeOf(hashes_[i]);
      __builtin_prefetch(probes_[i].bucket);
    }
  }

  // Step 2: looks into the home buckets; asks for the rows, or for the bucket behind a home that
  // entries have passed.
  template <IndexUse use>
  void LookHome(const KeyIndex& index, const RowPrefetcher& rows) {
    if (use == IndexUse::kChange) {
      for (size_t i = 0; i < size_; ++i) probes_[i] = index.ProbeOf(hashes_[i]);
    }
    std::array<uint8_t, kGroupKeys> masks;
    index.MatchTags(std::span(probes_).first(size_), masks.data());
    behind_count_ = 0;
    for (size_t i = 0; i < size_; ++i) {
      guesses_[i] = KeyIndex::FirstMatch(probes_[i], masks[i]);
      if (guesses_[i].any()) {
        rows.Ask(guesses_[i].location());
      } else if (Bucket::Passed(probes_[i].bucket->Head()) > 0) {
        __builtin_prefetch(KeyIndex::Next(probes_[i].bucket));
        behind_[behind_count_++] = static_cast<uint8_t>(i);
      }
    }
  }

  // Step 3: looks into those buckets, and asks for the rows.
  template <IndexUse use>
  void LookBehind(const KeyIndex& index, const RowPrefetcher& rows) {
    if (behind_count_ == 0) return;
    std::array<Probe, kGroupKeys> probes;
    std::array<uint8_t, kGroupKeys> masks;
    for (size_t j = 0; j < behind_count_; ++j) {
      const size_t i = behind_[j];
      const Probe home = use == IndexUse::kChange ? index.ProbeOf(hashes_[i]) : probes_[i];
      probes[j] = {KeyIndex::Next(home.bucket), home.tag};
    }
    index.MatchTags(std::span(probes).first(behind_count_), masks.data());
    for (size_t j = 0; j < behind_count_; ++j) {
      const Match match = KeyIndex::FirstMatch(probes[j], masks[j]);
      guesses_[behind_[j]] = match;
      if (match.any()) rows.Ask(match.location());
    }
  }

 private:
  size_t size_ = 0;
  size_t behind_count_ = 0;
  std::array<KeyHash, kGroupKeys> hashes_;
  std::array<Probe, kGroupKeys> probes_;
  std::array<Match, kGroupKeys> guesses_;
  std::array<uint8_t, kGroupKeys> behind_;  // which to look for behind their homes
};

// Calls use(i, hash, guess) for i in [0, count) in order, hash_at(i) being asked for some groups
// ahead. The user needs the first `row_bytes` of the rows.
template <IndexUse index_use, typename HashAt, typename Use>
void ForEachGuess(const Table& table, uint32_t row_bytes, size_t count, HashAt hash_at, Use use) {
  const KeyIndex& index = *table.parts().index;
  const RowPrefetcher rows(table, row_bytes);
  // As many groups are on their way as there are steps.
  std::array<KeyGroup, 4> groups;
  const size_t group_count = (count + kGroupKeys - 1) / kGroupKeys;
  for (size_t step = 0; step < group_count + groups.size() - 1; ++step) {
    const auto group = [&](size_t done) -> KeyGroup* {
      const size_t number = step - done;  // wraps below zero
      return number < group_count ? &groups[number % groups.size()] : nullptr;
    };
    if (KeyGroup* const first = group(0); first != nullptr) {
      const size_t begin = step * kGroupKeys;
      first->Begin(index, begin, std::min(begin + kGroupKeys, count), hash_at);
    }
    if (KeyGroup* const second = group(1); second != nullptr) {
      second->LookHome<index_use>(index, rows);
    }
    if (KeyGroup* const third = group(2); third != nullptr) {
      third->LookBehind<index_use>(index, rows);
    }
    if (const KeyGroup* const last = group(3); last != nullptr) {
      const size_t begin = (step - 3) * kGroupKeys;
      for (size_t i = 0; i < last->size(); ++i) use(begin + i, last->hash(i), last->guess(i));
    }
  }
}

// What a reader saw in front of a row that it copied whole.
struct RowSeen {
  RowHeader* header = nullptr;  // nullptr: it was not the row, or was being changed
  RowMark mark = {};
};

// Calls copy(row) and makes sure that it copied the row of `key` while that stood still. Inside an
// EpochTable::Guard, or under the shard's lock.
template <typename Copy>
RowSeen ReadRow(const Table& table, const Match& match, Key key, Copy copy) {
  std::byte* const row = table.parts().tier->Row(match.location());
  RowHeader* const header = table.layout().Header(row);
  const RowMark mark = LoadMark(header);
  if (TableOf(mark.identity) != table.id() || IsBeingWritten(mark.identity) ||
      LoadKey(header) != key) {
    return {};
  }
  copy(row);
  AcquireFence();
  if (LoadIdentity(header) != mark.identity || !match.Stands()) return {};
  return {header, mark};
}

// As ReadRow, with a first guess at the match, which becomes the one that holds. No header: the key
// has no row in memory; and none at all, unless the match is of another tier.
template <typename Copy>
RowSeen FindAndReadRow(const Table& table, Key key, KeyHash hash, Copy copy, Match* match) {
  if (!match->any()) *match = table.parts().index->Find(table.IdOf(key, hash));
  SpinWait wait;
  while (match->any() && match->location().tier() == Tier::kDram) {
    const RowSeen seen = ReadRow(table, *match, key, copy);
    if (seen.header != nullptr) return seen;
    wait.Pause();
    *match = table.parts().index->Find(table.IdOf(key, hash));
  }
  return {};
}

// Reads the first `row_bytes` of the rows of positions [begin, end): calls copy(position, row) for
// those in memory, maybe more than once, and then seen(position, RowSeen, Match), as
// FindAndReadRow has them. Takes no lock. Inside an EpochTable::Guard.
template <typename Copy, typename Seen>
void ReadRows(const Table& table, uint32_t row_bytes, KeySpan keys, uint32_t begin, uint32_t end,
              Copy copy, Seen seen) {
  const auto hash_at = [&](size_t i) { return table.HashOf(keys[begin + i]); };
  const auto use = [&](size_t i, KeyHash hash, const Match& guess) {
    const auto position = static_cast<uint32_t>(begin + i);
    const auto copy_at = [&](const std::byte* row) { copy(position, row); };
    Match match = guess;
    const RowSeen row = FindAndReadRow(table, keys[position], hash, copy_at, &match);
    seen(position, row, match);
  };
  ForEachGuess<IndexUse::kRead>(table, row_bytes, end - begin, hash_at, use);
}

// Calls visit(position, id, match) for the positions of a shard group in order; match.any() is
// whether the row exists. Under the shard's lock; the visitor may change rows, and the index if
// index_use is kChange.
template <IndexUse index_use, typename Visit>
void ForEachMatch(const Table& table, const Batch& batch, const ShardGroup& group, Visit visit) {
  const auto hash_at = [&](size_t i) { return group.hashes[i]; };
  const auto use = [&](size_t i, KeyHash hash, const Match& guess) {
    const uint32_t position = group.positions[i];
    const RowId id = table.IdOf(batch.keys()[position], hash);
    visit(position, id, table.parts().index->Confirm(guess, id));
  };
  ForEachGuess<index_use>(table, table.layout().row_bytes, group.size(), hash_at, use);
}

}  // namespace embank

#endif  // EMBANK_STORE_ROW_GROUP_H_
