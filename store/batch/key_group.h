// Groups of keys in a pipeline through index and rows: while one group uses its rows, the rows and
// buckets of the next groups are being fetched from memory. A thread inside a guard, or with the
// lock of the only shard, calls ForEachKeyGroup, ForEachGroupOf or ForEachGuess; a writer, which
// takes locks in between, asks GuessesAhead.
#ifndef EMBANK_STORE_BATCH_KEY_GROUP_H_
#define EMBANK_STORE_BATCH_KEY_GROUP_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "store/index/bucket_array.h"
#include "store/table/table.h"
#include "tiers/dram/rows_to_prefetch.h"

namespace embank {

// Whether the index may change while keys are in the pipeline.
enum class IndexUse {
  kRead,    // inside an EpochTable::Guard, or under the shard's lock while all entries stay in
            // their buckets
  kChange,  // inside a guard for each step alone, or under the lock of the shard, whose entries
            // the user changes meanwhile: an array may shrink in between
};

// Up to kGroupKeys keys, and guesses of their rows' places, to be confirmed.
class KeyGroup {
 public:
  KeyGroup() = default;
  KeyGroup(const KeyGroup&) = delete;
  KeyGroup& operator=(const KeyGroup&) = delete;

  size_t size() const { return size_; }
  KeyHash hash(size_t i) const { return hashes_[i]; }
  const Match& guess(size_t i) const { return guesses_[i]; }
  const std::array<Match, kGroupKeys>& guesses() const { return guesses_; }
  // The headers that the guesses lead to; a key without a row in memory has a header that is always
  // being written. has_payload has a bit for each row with a device payload.
  const std::array<RowHeader*, kGroupKeys>& headers() const { return headers_; }
  uint32_t has_payload() const { return has_payload_; }
  uint32_t row_end_bytes() const { return rows_of_table_->end_bytes(); }

  // Returns the place for the hashes of keys of one table, whose rows are prefetched as `rows`
  // says, before step 1. The group has no keys until set_size.
  KeyHash* Begin(const RowsToPrefetch& rows) {
    rows_of_table_ = &rows;
    size_ = 0;
    return hashes_.data();
  }
  void set_size(size_t size) { size_ = size; }

  // Step 1: prefetches their home buckets.
  void PrefetchHome(const KeyIndex& index) {
    index.FindHomes(std::span(hashes_).first(size_), probes_.data());
  }

  // Step 2: looks into the home buckets. Prefetches the next bucket if entries of the home are
  // displaced.
  template <IndexUse use>
  [[gnu::noinline]] void LookHome(const KeyIndex& index) {
    // Local copies: the compiler must assume that the writes below change the originals.
    const RowsToPrefetch rows = *rows_of_table_;
    const size_t size = size_;
    if (use == IndexUse::kChange) index.FindHomes(std::span(hashes_).first(size), probes_.data());
    std::array<uint8_t, kGroupKeys> masks;
    index.MatchTags(std::span(probes_).first(size), masks.data());
    behind_count_ = 0;
    has_payload_ = 0;
    for (size_t i = 0; i < size; ++i) {
      if (Guess(rows, i, KeyIndex::FirstMatch(probes_[i], masks[i]))) continue;
      if (Bucket::Passed(probes_[i].bucket->Head()) == 0) continue;
      __builtin_prefetch(BucketArray::Next(probes_[i].bucket));
      behind_[behind_count_++] = static_cast<uint8_t>(i);
    }
  }

  // Step 3: looks into those buckets.
  template <IndexUse use>
  [[gnu::noinline]] void LookBehind(const KeyIndex& index) {
    if (behind_count_ == 0) return;
    const RowsToPrefetch rows = *rows_of_table_;
    std::array<Probe, kGroupKeys> probes;
    std::array<uint8_t, kGroupKeys> masks;
    for (size_t j = 0; j < behind_count_; ++j) {
      const size_t i = behind_[j];
      const Probe home = use == IndexUse::kChange ? index.ProbeOf(hashes_[i]) : probes_[i];
      probes[j] = {BucketArray::Next(home.bucket), home.tag};
    }
    index.MatchTags(std::span(probes).first(behind_count_), masks.data());
    for (size_t j = 0; j < behind_count_; ++j) {
      Guess(rows, behind_[j], KeyIndex::FirstMatch(probes[j], masks[j]));
    }
  }

  // Prefetches the row of the key at this place, if it has one in memory. After step 3.
  [[gnu::always_inline]] void PrefetchRow(size_t i) const {
    RowsToPrefetch::Prefetch(headers_[i], row_end_bytes());
  }

 private:
  // Sets the guess for a key. Returns whether there is one.
  [[gnu::always_inline]] bool Guess(const RowsToPrefetch& rows, size_t i, Match match) {
    guesses_[i] = match;
    const Location location = match.location();
    if (match.any() && location.IsInDram()) [[likely]] {
      headers_[i] = rows.At(location);
      return true;
    }
    headers_[i] = &no_header_;
    if (match.any() && location.HasDevicePayload()) {
      headers_[i] = rows.At(location);
      has_payload_ |= 1u << i;
    }
    return match.any();
  }

  size_t size_ = 0;
  size_t behind_count_ = 0;
  const RowsToPrefetch* rows_of_table_ = nullptr;
  uint32_t has_payload_ = 0;
  // Memory of the group's own, so that readers need no branch.
  RowHeader no_header_ = {.key = 0, .identity = kVersionStep, .usage = 0};
  std::array<KeyHash, kGroupKeys> hashes_;
  std::array<Probe, kGroupKeys> probes_;
  std::array<Match, kGroupKeys> guesses_;
  std::array<RowHeader*, kGroupKeys> headers_;
  std::array<uint8_t, kGroupKeys> behind_;  // keys to look for behind their homes
};

// Step 4: prefetches the rows of the group that is used next, one between the looks at any two.
// Those of a whole group would fill the processor's queue of misses at once: it would wait for
// memory, and then memory for it (decision 0058).
class NextRows {
 public:
  // `group`: after step 3; nullptr: none is used next.
  explicit NextRows(const KeyGroup* group) {
    if (group == nullptr) return;
    headers_ = group->headers().data();
    size_ = static_cast<uint32_t>(group->size());
    row_end_bytes_ = group->row_end_bytes();
  }

  // The row at this place of its group.
  [[gnu::always_inline]] void Prefetch(size_t i) const {
    if (i < size_) RowsToPrefetch::Prefetch(headers_[i], row_end_bytes_);
  }
  // Those from this place on.
  void PrefetchFrom(size_t i) const {
    for (; i < size_; ++i) Prefetch(i);
  }

 private:
  RowHeader* const* headers_ = nullptr;
  uint32_t size_ = 0;
  uint32_t row_end_bytes_ = 0;
};

// Calls use(number, group, next) for `group_count` groups in order, some groups after
// begin(number, group), which hashes the keys of each. Inside an EpochTable::Guard, or under the
// shard's lock while all entries stay in their buckets. The user prefetches row i of `next` before
// it uses row i, and the rest of `next` after its last row.
template <typename Begin, typename Use>
void RunGroups(const KeyIndex& index, size_t group_count, Begin begin, Use use) {
  if (group_count == 1) {
    KeyGroup group;
    begin(0, &group);
    group.PrefetchHome(index);
    group.LookHome<IndexUse::kRead>(index);
    group.LookBehind<IndexUse::kRead>(index);
    NextRows(&group).PrefetchFrom(0);
    return use(0, group, NextRows(nullptr));
  }
  // There are as many groups in the pipeline as steps.
  std::array<KeyGroup, 4> groups;
  for (size_t step = 0; step < group_count + groups.size() - 1; ++step) {
    const auto group = [&](size_t done) -> KeyGroup* {
      const size_t number = step - done;  // wraps below zero
      return number < group_count ? &groups[number % groups.size()] : nullptr;
    };
    if (KeyGroup* const first = group(0); first != nullptr) {
      begin(step, first);
      first->PrefetchHome(index);
    }
    if (KeyGroup* const second = group(1); second != nullptr) {
      second->LookHome<IndexUse::kRead>(index);
    }
    KeyGroup* const third = group(2);
    if (third != nullptr) third->LookBehind<IndexUse::kRead>(index);
    const NextRows next(third);
    if (const KeyGroup* const last = group(3); last != nullptr) {
      use(step - 3, *last, next);
    } else {
      next.PrefetchFrom(0);
    }
  }
}

// Keys of one table of a batch, of whose rows the first `row_bytes` are needed.
class TableKeys {
 public:
  TableKeys(const Table& table, KeySpan keys, uint32_t row_bytes)
      : table_(table), keys_(keys), rows_(table.store().tier->rows(), row_bytes) {}

  const Table& table() const { return table_; }
  KeySpan keys() const { return keys_; }
  size_t group_count() const { return (keys_.size() + kGroupKeys - 1) / kGroupKeys; }
  // The first key of a group, and the number of them.
  size_t BeginOf(size_t group) const { return group * kGroupKeys; }
  size_t SizeOf(size_t group) const { return std::min(kGroupKeys, keys_.size() - BeginOf(group)); }
  void Begin(KeyGroup* group) const { group->Begin(rows_); }
  void Hash(size_t number, KeyGroup* group) const {
    table_.HashesOf(keys_.subspan(BeginOf(number), SizeOf(number)), group->Begin(rows_));
    group->set_size(SizeOf(number));
  }

 private:
  const Table& table_;
  const KeySpan keys_;
  const RowsToPrefetch rows_;
};

// Goes through the groups of several TableKeys, one after the other.
class GroupCursor {
 public:
  // The number of a TableKeys, and that of a group in it.
  struct Place {
    size_t of;
    size_t group;
  };
  // Returns the next group. There must be one.
  Place Next(std::span<const TableKeys> all) {
    for (; next_.group == all[next_.of].group_count(); next_.group = 0) ++next_.of;
    return {next_.of, next_.group++};
  }

 private:
  Place next_ = {0, 0};
};

// Calls use(number, begin, group, next) for the groups of keys of all[number], which begin at this
// key, in order: one pipeline for all tables, which are of one store. As RunGroups.
template <typename Use>
void ForEachGroupOf(std::span<const TableKeys> all, Use use) {
  size_t group_count = 0;
  for (const TableKeys& each : all) {
    if (each.group_count() > 0) each.table().counters().calls.AddIndexWalk();
    group_count += each.group_count();
  }
  if (group_count == 0) return;
  GroupCursor begun, used;
  const auto begin_group = [&](size_t, KeyGroup* group) {
    const GroupCursor::Place place = begun.Next(all);
    all[place.of].Hash(place.group, group);
  };
  const auto use_group = [&](size_t, const KeyGroup& group, NextRows next) {
    const GroupCursor::Place place = used.Next(all);
    use(place.of, all[place.of].BeginOf(place.group), group, next);
  };
  RunGroups(*all[0].table().store().index, group_count, begin_group, use_group);
}

// The same for keys [begin, end) of one table: calls use(position, group, next). No group has fewer
// rows than the next one.
template <typename Use>
void ForEachKeyGroup(const Table& table, uint32_t row_bytes, KeySpan keys, uint32_t begin,
                     uint32_t end, Use use) {
  const TableKeys all(table, keys.subspan(begin, end - begin), row_bytes);
  const auto use_group = [&](size_t, size_t at, const KeyGroup& group, NextRows next) {
    use(static_cast<uint32_t>(begin + at), group, next);
  };
  ForEachGroupOf({&all, 1}, use_group);
}

// The same for keys that are given by their hashes, key by key: calls hash_at(i) for each of
// [0, count), then use(i, hash, guess).
template <typename HashAt, typename Use>
void ForEachGuess(const Table& table, uint32_t row_bytes, size_t count, HashAt hash_at, Use use) {
  if (count == 0) return;
  table.counters().calls.AddIndexWalk();
  const RowsToPrefetch rows(table.store().tier->rows(), row_bytes);
  const auto begin_group = [&](size_t number, KeyGroup* group) {
    const size_t begin = number * kGroupKeys;
    const size_t size = std::min(kGroupKeys, count - begin);
    KeyHash* const hashes = group->Begin(rows);
    for (size_t i = 0; i < size; ++i) hashes[i] = hash_at(begin + i);
    group->set_size(size);
  };
  const auto use_group = [&](size_t number, const KeyGroup& group, NextRows next) {
    for (size_t i = 0; i < group.size(); ++i) {
      next.Prefetch(i);
      use(number * kGroupKeys + i, group.hash(i), group.guess(i));
    }
  };
  RunGroups(*table.store().index, (count + kGroupKeys - 1) / kGroupKeys, begin_group, use_group);
}

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_KEY_GROUP_H_
