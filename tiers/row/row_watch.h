// Rows as readers saw them, who take no lock: by the entry of the index that led to a row, and by
// the row's header. Both tell afterwards whether that which was read is a row's.
#ifndef EMBANK_TIERS_ROW_ROW_WATCH_H_
#define EMBANK_TIERS_ROW_ROW_WATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/threads/fence.h"
#include "tiers/row/location.h"
#include "tiers/row/row_header.h"

namespace embank {

// An entry of the index (store/index/bucket.h) that may be the wanted one, and its word when it was
// read. Match{}: none.
struct Match {
  const std::atomic<uint64_t>* word;  // nullptr: none
  uint64_t seen;                      // inverted, as in the index
  bool any() const { return word != nullptr; }
  Location location() const { return {~seen & kTierAndUnitsMask}; }
  // Whether the entry is still there, unchanged.
  bool IsCurrent() const { return word->load(std::memory_order_relaxed) == seen; }
};

// A row as it was when a reader came to it by way of an index entry.
struct RowWatch {
  RowHeader* header;  // nullptr: none
  RowMark mark;
  Match entry;

  // Whether everything that was read of the row so far belongs to the row.
  bool IsCurrent() const;
};

// Several of them, in columns that others own.
struct RowWatches {
  RowHeader* const* headers;
  const RowMark* marks;
  const Match* entries;
  size_t count;

  static RowWatches OfOne(const RowWatch& row) { return {&row.header, &row.mark, &row.entry, 1}; }
  size_t size() const { return count; }
  // As RowWatch::IsCurrent.
  bool IsCurrent(size_t i) const {
    AcquireFence();
    return LoadIdentity(headers[i]) == marks[i].identity && entries[i].IsCurrent();
  }
  RowWatches Subspan(size_t begin, size_t size) const {
    return {headers + begin, marks + begin, entries + begin, size};
  }
};

inline bool RowWatch::IsCurrent() const { return RowWatches::OfOne(*this).IsCurrent(0); }

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_ROW_WATCH_H_
