// The rows of groups of keys (store/batch/key_group.h): readers copy them, writers visit them.
#ifndef EMBANK_STORE_BATCH_ROW_GROUP_H_
#define EMBANK_STORE_BATCH_ROW_GROUP_H_

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "base/threads/spin_wait.h"
#include "store/batch/batch.h"
#include "store/batch/key_group.h"
#include "store/batch/shard_plan.h"
#include "store/table/table.h"
#include "tiers/row/row_copy.h"

namespace embank {

// Returns the row of `key` of `table` as it is now, if `match` leads there. No header: it does not,
// the row is in a log, or it is being changed. Inside an EpochTable::Guard, or under the shard's
// lock. The header of a row in device memory (Location::tier) has no payload behind it.
[[gnu::always_inline]] inline RowWatch SeeRow(RowAddresses rows, TableId table, const Match& match,
                                              Key key) {
  if (!match.any() || match.location().IsInLog()) return {};
  auto* const header = reinterpret_cast<RowHeader*>(rows.At(match.location()));
  const RowMark mark = LoadMark(header);
  if (!IsWholeRowOf(table, mark.identity) || LoadKey(header) != key) return {};
  return {header, mark, match};
}

// The header that a reader saw before it read a row. No header: the slot did not hold the row, or
// it changed.
struct RowSeen {
  RowHeader* header = nullptr;
  RowMark mark = {};
};

// Like SeeRow, but also calls copy(watch) for a row in DRAM, which returns whether the row was
// still current when it had read all that it needs.
template <typename Copy>
RowSeen ReadRow(const Table& table, const Match& match, Key key, const Copy& copy) {
  const RowWatch watch = SeeRow(table.store().tier->rows(), table.id(), match, key);
  if (watch.header == nullptr) return {};
  if (match.location().IsInDram() && !copy(watch)) return {};
  return {watch.header, watch.mark};
}

// The part of FindAndReadRow for a guess that was wrong.
template <typename Copy>
[[gnu::noinline]] RowSeen SearchAndReadRow(const Table& table, Key key, KeyHash hash,
                                           const Copy& copy, Match* match) {
  SpinWait wait;
  while (!match->any() || !match->location().IsInLog()) {
    if (match->any()) wait.Pause();
    *match = table.store().index->Find(table.IdOf(key, hash));
    if (!match->any()) return {};
    const RowSeen seen = ReadRow(table, *match, key, copy);
    if (seen.header != nullptr) return seen;
  }
  return {};
}

// Like ReadRow, with a first guess at the match, which it replaces by the right one. No header: the
// key has no row in memory, and no row at all unless the match is in a log.
template <typename Copy>
RowSeen FindAndReadRow(const Table& table, Key key, KeyHash hash, const Copy& copy, Match* match) {
  const RowSeen seen = ReadRow(table, *match, key, copy);
  return seen.header != nullptr ? seen : SearchAndReadRow(table, key, hash, copy, match);
}

// Reads the first `row_bytes` of the rows of positions [begin, end). Calls copy(position, watch),
// as ReadRow does, for rows in DRAM, maybe more than once, and then seen(position, RowSeen, Match),
// with the results of FindAndReadRow. Takes no lock. Inside an EpochTable::Guard.
template <typename Copy, typename Seen>
void ReadRows(const Table& table, uint32_t row_bytes, KeySpan keys, uint32_t begin, uint32_t end,
              Copy copy, Seen seen) {
  const auto use = [&](uint32_t first, const KeyGroup& group, NextRows next) {
    for (uint32_t i = 0; i < group.size(); ++i) {
      next.Prefetch(i);
      const uint32_t position = first + i;
      const auto copy_at = [&](const RowWatch& watch) { return copy(position, watch); };
      Match match = group.guess(i);
      const RowSeen row = FindAndReadRow(table, keys[position], group.hash(i), copy_at, &match);
      seen(position, row, match);
    }
  };
  ForEachKeyGroup(table, row_bytes, keys, begin, end, use);
}

// The rows of the keys of a group that are in DRAM, as they are now; others have no header.
class LocatedRows {
 public:
  // `keys` are those of the group, which outlives this. Prefetches the next rows meanwhile.
  [[gnu::noinline]] LocatedRows(TableId table, const KeyGroup& group, const Key* keys,
                                NextRows next)
      : entries_(group.guesses().data()), size_(group.size()) {
    const size_t size = group.size();
    for (size_t i = 0; i < size; ++i) {
      RowHeader* const header = group.headers()[i];
      const RowMark mark = LoadMark(header);
      const bool is_it = IsWholeRowOf(table, mark.identity) && LoadKey(header) == keys[i];
      headers_[i] = is_it ? header : nullptr;
      marks_[i] = mark;
      next.Prefetch(i);
    }
    next.PrefetchFrom(size);
    for (uint32_t left = group.has_payload(); left != 0; left &= left - 1) {
      headers_[static_cast<size_t>(std::countr_zero(left))] = nullptr;
    }
  }
  LocatedRows(const LocatedRows&) = delete;
  LocatedRows& operator=(const LocatedRows&) = delete;

  RowWatches all() const { return {headers_.data(), marks_.data(), entries_, size_}; }
  // The row of a key was found elsewhere. It can be noted; nobody asks if it is current.
  void Replace(size_t i, const RowSeen& row) {
    headers_[i] = row.header;
    marks_[i] = row.mark;
  }

 private:
  const Match* const entries_;
  const size_t size_;
  std::array<RowHeader*, kGroupKeys> headers_;
  std::array<RowMark, kGroupKeys> marks_;
};

static_assert(kGroupKeys < kVectorCopiesMax);

// Copies the vector of a row to `to`; returns whether the row was still current then. `image` is
// that of CopyVectors.
inline bool CopyOneVector(const RowWatch& row, uint32_t bytes, std::byte* to, std::byte* image) {
  return CopyVectors(RowWatches::OfOne(row), bytes, {to, 0}, image) != 0;
}

// Like ReadRows, for a caller that copies the vectors out: to out.Row(position), many at a time.
// `image` is that of CopyVectors. Calls found(position, rows) for rows in DRAM at that position
// and behind it, and other(position, RowSeen, Match) for keys that need more than a first look, and
// for rows in device memory, which are not copied.
template <typename Found, typename Other>
void CopyRows(const Table& table, KeySpan keys, uint32_t begin, uint32_t end, RowSpan out,
              std::byte* image, Found found, Other other) {
  const uint32_t bytes = table.layout().vector_bytes;
  const auto search = [&](uint32_t position, KeyHash hash, Match match) {
    const auto copy = [&](const RowWatch& row) {
      return CopyOneVector(row, bytes, out.Row(position), image);
    };
    const RowSeen row = FindAndReadRow(table, keys[position], hash, copy, &match);
    other(position, row, match);
  };
  const auto use = [&](uint32_t position, const KeyGroup& group, NextRows next) {
    const LocatedRows located(table.id(), group, keys.data() + position, next);
    const RowWatches rows = located.all();
    const uint32_t stood = CopyVectors(rows, bytes, {out.Row(position), out.stride_bytes}, image);
    if (stood == (1u << rows.size()) - 1) return found(position, rows);
    for (uint32_t i = 0; i < rows.size(); ++i) {
      if ((stood >> i & 1) != 0) {
        found(position + i, rows.Subspan(i, 1));
      } else {
        search(position + i, group.hash(i), group.guess(i));
      }
    }
  };
  ForEachKeyGroup(table, table.layout().vector_end_bytes(), keys, begin, end, use);
}

// Reads the rows of a group in order, as long as they are in DRAM, of a store without device
// memory. take(i, rows) reads rows of the group from the i-th on, at least one; it returns how many
// in front were still current when it had read them. Returns the number of rows that were read,
// which `located` has.
template <typename Take>
size_t ReadLeadingRows(const Table& table, const Key* keys, const KeyGroup& group,
                       LocatedRows* located, const Take& take) {
  const RowWatches rows = located->all();
  size_t read = 0;
  while (read < rows.size()) {
    read += take(read, rows.Subspan(read, rows.size() - read));
    if (read == rows.size()) break;
    // A guess was wrong, the row is being changed, or it is not in DRAM.
    Match match = group.guess(read);
    const auto take_one = [&](const RowWatch& row) {
      return take(read, RowWatches::OfOne(row)) == 1;
    };
    const RowSeen seen = FindAndReadRow(table, keys[read], group.hash(read), take_one, &match);
    if (seen.header == nullptr) break;
    located->Replace(read++, seen);
  }
  return read;
}

// Returns the match of a row by its guess: that of the i-th key of the group, or of those of it
// that were chosen, where i is greater than in the call before. Under the shard's lock.
[[gnu::always_inline]] inline Match MatchOf(const Table& table, const ShardGroup& group, size_t i,
                                            const RowId& id) {
  return table.store().index->Confirm(group.guesses->At(group.first_guess + i), id);
}

// Calls visit(position, id, match) for the positions of a shard group in order; match.any() is
// whether the row exists. Under the shard's lock; the visitor may change rows and the index.
template <typename Visit>
void ForEachMatch(const Table& table, const Batch& batch, const ShardGroup& group, Visit visit) {
  for (size_t i = 0; i < group.size(); ++i) {
    const uint32_t position = group.positions[i];
    const RowId id = table.IdOf(batch.keys()[position], group.hashes[i]);
    visit(position, id, MatchOf(table, group, i, id));
  }
}

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_ROW_GROUP_H_
