// Groups of keys on their way through index and rows: buckets and then rows are asked for ahead, so
// that the cache misses of a group overlap.
#ifndef EMBANK_STORE_ROW_GROUP_H_
#define EMBANK_STORE_ROW_GROUP_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/fence.h"
#include "store/batch.h"
#include "store/shard_plan.h"
#include "store/table.h"

namespace embank {

// Asks the cache for a row: its header to be written (heat) and up to eight lines more; what
// follows the processor fetches by itself.
// Always inlined: g++ 12 takes a function that only prefetches for one without effect, and drops
// calls of it.
[[gnu::always_inline]] inline void PrefetchRow(const std::byte* row, uint32_t row_bytes) {
  constexpr uint32_t kLineBytes = 64;
  constexpr uint32_t kLinesMax = 9;
  __builtin_prefetch(row, 1);
  const uint32_t end = std::min(row_bytes, kLinesMax * kLineBytes);
  for (uint32_t i = kLineBytes; i < end; i += kLineBytes) __builtin_prefetch(row + i);
  // Rows do not begin at lines: the last byte may be one line further.
  __builtin_prefetch(row + end - 1);
}

// Looks up to kGroupKeys hashes up in their home buckets and, where entries have passed those, in
// the next: first guesses, to be confirmed.
inline void GuessMatches(const Table& table, std::span<const KeyHash> hashes,
                         std::span<Match> matches) {
  const StoreParts& parts = table.parts();
  const uint32_t row_bytes = table.layout().row_bytes;
  std::array<Probe, kGroupKeys> probes;
  for (size_t i = 0; i < hashes.size(); ++i) probes[i] = parts.index->Begin(hashes[i]);
  parts.index->MatchTags(std::span(probes).first(hashes.size()), matches);

  std::array<uint8_t, kGroupKeys> behind_home;
  size_t behind_count = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (matches[i].any()) PrefetchRow(parts.tier->Row(matches[i].location()), row_bytes);
    if (matches[i].any() || Bucket::Passed(probes[i].bucket->Head()) == 0) continue;
    probes[behind_count] = {KeyIndex::Next(probes[i].bucket), probes[i].tag};
    __builtin_prefetch(probes[behind_count].bucket);
    behind_home[behind_count++] = static_cast<uint8_t>(i);
  }
  std::array<Match, kGroupKeys> behind;
  parts.index->MatchTags(std::span(probes).first(behind_count), behind);
  for (size_t j = 0; j < behind_count; ++j) {
    matches[behind_home[j]] = behind[j];
    if (behind[j].any()) PrefetchRow(parts.tier->Row(behind[j].location()), row_bytes);
  }
}

// What a reader saw in front of a row that it copied whole.
struct RowSeen {
  RowHeader* header = nullptr;  // nullptr: it was not the row, or was being changed
  uint32_t usage = 0;
};

// Calls copy(row) and makes sure that it copied the row of `key` while that stood still. Inside an
// EpochTable::Guard, or under the shard's lock.
template <typename Copy>
RowSeen ReadRow(const Table& table, const Match& match, Key key, Copy copy) {
  std::byte* const row = table.parts().tier->Row(match.location());
  RowHeader* const header = table.layout().Header(row);
  const uint32_t identity = LoadIdentity(header);
  if (TableOf(identity) != table.id() || IsBeingWritten(identity) || LoadKey(header) != key) {
    return {};
  }
  const uint32_t usage = LoadUsage(header);
  copy(row);
  AcquireFence();
  if (LoadIdentity(header) != identity || !match.Stands()) return {};
  return {header, usage};
}

// As ReadRow, with a first guess at the match. No header: the key has no row.
template <typename Copy>
RowSeen FindAndReadRow(const Table& table, Match match, Key key, KeyHash hash, Copy copy) {
  if (!match.any()) match = table.parts().index->Find(table.IdOf(key, hash));
  while (match.any()) {
    const RowSeen seen = ReadRow(table, match, key, copy);
    if (seen.header != nullptr) return seen;
    SpinPause();
    match = table.parts().index->Find(table.IdOf(key, hash));
  }
  return {};
}

// Reads the rows of positions [begin, end): calls copy(position, row) for those that exist, maybe
// more than once, and then seen(position, RowSeen). Takes no lock. Inside an EpochTable::Guard.
template <typename Copy, typename Seen>
void ReadRows(const Table& table, KeySpan keys, uint32_t begin, uint32_t end, Copy copy,
              Seen seen) {
  std::array<KeyHash, kGroupKeys> hashes;
  std::array<Match, kGroupKeys> matches;
  for (; begin < end; begin += kGroupKeys) {
    const size_t count = std::min<size_t>(kGroupKeys, end - begin);
    for (size_t i = 0; i < count; ++i) hashes[i] = table.HashOf(keys[begin + i]);
    GuessMatches(table, std::span(hashes).first(count), matches);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t position = begin + i;
      const auto copy_at = [&](const std::byte* row) { copy(position, row); };
      seen(position, FindAndReadRow(table, matches[i], keys[position], hashes[i], copy_at));
    }
  }
}

// Calls visit(position, id, match) for the positions of a shard group in order; match.any() is
// whether the row exists. Under the shard's lock, which the visitor may use to change index and
// rows.
template <typename Visit>
void ForEachMatch(const Table& table, const Batch& batch, const ShardGroup& group, Visit visit) {
  std::array<Match, kGroupKeys> guesses;
  for (size_t begin = 0; begin < group.size(); begin += kGroupKeys) {
    const size_t count = std::min(kGroupKeys, group.size() - begin);
    GuessMatches(table, group.hashes.subspan(begin, count), guesses);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t position = group.positions[begin + i];
      const RowId id = table.IdOf(batch.keys()[position], group.hashes[begin + i]);
      visit(position, id, table.parts().index->Confirm(guesses[i], id));
    }
  }
}

}  // namespace embank

#endif  // EMBANK_STORE_ROW_GROUP_H_
