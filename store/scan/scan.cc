#include "store/scan/scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/memory/scratch.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/logged_rows.h"
#include "store/batch/row_group.h"
#include "store/hot/hot_list.h"
#include "store/placement/row_mover.h"
#include "tiers/row/row_copy.h"

namespace embank {
namespace {

// The rows that are read at a time for callers that want fewer.
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
// The most places of one reading; and the places that are worth a thread.
constexpr size_t kPlacesMax = size_t{1} << 16;
constexpr size_t kPlacesOfThreadMin = 512;
constexpr uint32_t kReadersMax = 8;
// So many keys are looked up as one batch: others may wait until its reader is done.
constexpr size_t kLookedUpAtOnce = 2048;
// A device transfers this many bytes in order in the time of one more read.
constexpr uint64_t kBridgedBytes = uint64_t{32} << 10;

// A part of the places of a reading, which one thread reads. It puts rows from the begin on, and
// the keys of rows that have moved from the end.
struct Reader {
  size_t begin = 0;
  size_t end = 0;
  size_t found = 0;
  Status status;
};

}  // namespace

Scan::Scan(Table* table, uint64_t notes_bytes)
    : table_(table),
      notes_bytes_(notes_bytes),
      piece_rows_(std::max<uint64_t>(1, kPieceBytes / table->layout().vector_bytes)),
      notes_(&table->mover()->logs(), table->id(), table->slot_class()) {}

StatusOr<uint64_t> Scan::Next(std::span<Key> keys, RowSpan rows) {
  EMBANK_RETURN_IF_ERROR(table_->CheckAlive());
  uint64_t copied = 0;
  Status status;
  while (copied < keys.size() && status.ok() && !LostAny()) {
    if (piece_done_ < piece_count_) {
      CopyFromPiece(keys, rows, &copied);
    } else if (pending_done_ < pending_.size()) {
      status = CopyPending(keys, rows, &copied);
    } else if (!notes_.keys().empty()) {
      status = CopyNoted(keys, rows, &copied);
    } else if (next_range_ < kRangeCount) {
      status = BeginPass();
    } else {
      break;
    }
  }
  // Rows that were copied already must not be lost with a status: the next call returns it.
  if (copied > 0) return copied;
  if (LostAny()) return ReportLoss();
  EMBANK_RETURN_IF_ERROR(status);
  return copied;
}

// A pass is one range if no row in the log can be the table's: there is no order to read in, and no
// segment's footer.
Status Scan::BeginPass() {
  uint32_t end = next_range_;
  uint64_t unknown = 0;
  Status status;
  pending_done_ = 0;
  try {
    pending_.clear();
    notes_.Clear();
    const bool in_log = table_->rows_in_log() > 0;
    if (in_log) {
      const uint64_t in_memory = table_->rows() - std::min(table_->rows_in_log(), table_->rows());
      pending_.reserve(std::min(in_memory, notes_bytes_ / sizeof(Key)));
    }
    do {
      NoteRange(end++);
    } while ((in_log || notes_.bytes() > 0) && end < kRangeCount &&
             notes_.bytes() + pending_.size() * sizeof(Key) < notes_bytes_);
    status = notes_.Resolve(&unknown);
  } catch (const std::bad_alloc&) {
    // Without a message, which would need memory too.
    status = NoMemory();
  }
  if (!status.ok()) {
    pending_.clear();
    notes_.Clear();
    return status;
  }
  next_range_ = end;
  unknown_rows_ += unknown;
  return OkStatus();
}

void Scan::NoteRange(uint32_t range) {
  const KeyHash first = KeyHash{range} << (64 - kRangeBits);
  const KeyHash last = first | (~KeyHash{0} >> kRangeBits);
  const StoreParts& parts = table_->parts();
  KeyIndex::Shard* const shard = parts.index->shard(KeyIndex::ShardOf(first));
  ReaderMutexLock lock(&shard->mutex);
  parts.index->VisitHashes(shard, first, last, [&](Location location) {
    if (location.IsInLog()) return notes_.Add(location);
    const RowHeader* const header = table_->layout().Header(parts.tier->Row(location));
    if (TableOf(LoadIdentity(header)) == table_->id()) pending_.push_back(LoadKey(header));
  });
}

// Copies pending rows that still exist behind the *copied that are there.
Status Scan::CopyPending(std::span<Key> keys, RowSpan rows, uint64_t* copied) {
  const RowLayout& layout = table_->layout();
  const size_t count =
      std::min<size_t>({keys.size() - *copied, pending_.size() - pending_done_, kLookedUpAtOnce});
  const KeySpan pending = KeySpan(pending_).subspan(pending_done_, count);
  const Batch batch(table_, pending, {});
  LoggedRows logged_rows;
  HotList hot;
  Scratch<Key, 64> unread;
  size_t unread_count = 0;
  EMBANK_RETURN_IF_ERROR(logged_rows.Allocate(batch));
  EMBANK_RETURN_IF_ERROR(unread.Allocate(table_->mover()->InLogMax(count)));
  EMBANK_RETURN_IF_ERROR(hot.Allocate(table_->parts().hot, batch.keys().size()));
  LoggedRows::Part logged(&logged_rows, batch, 0);
  const HotGuard hot_guard(table_->parts().hot);
  const auto copy = [&](uint32_t, const RowWatch& watch) {
    const VectorCopy one = {watch, rows.Row(*copied)};
    return CopyVectors({&one, 1}, layout.vector_bytes, nullptr) != 0;
  };
  {
    HotList::Part hot_part(&hot, 0);
    const EpochTable::Guard guard(table_->parts().epochs);
    ReadRows(*table_, layout.vector_end_bytes(), pending, 0, static_cast<uint32_t>(count), copy,
             [&](uint32_t i, const RowSeen& seen, const Match& match) {
               if (seen.header == nullptr && match.any()) logged.Add(i, match.location());
               // An absent key was erased since the pass began.
               if (seen.header == nullptr) return;
               if (match.location().IsHot()) return hot_part.Add(i, match.location());
               keys[(*copied)++] = pending[i];
             });
  }
  EMBANK_RETURN_IF_ERROR(hot.Read(kVectorInPayload, layout.vector_bytes,
                                  [&](const HotPosition& at, const std::byte* vector) {
                                    std::memcpy(rows.Row(*copied), vector, layout.vector_bytes);
                                    keys[(*copied)++] = pending[at.number];
                                  }));
  logged.Read({.touches = 0, .promoted = PromotedRows::kNone},
              [&](uint32_t i, const LoggedRow& row) {
                if (row.outcome == Outcome::kFound) {
                  CopyFromRow(layout.Vector(row.row), layout.vector_bytes, rows.Row(*copied));
                  keys[(*copied)++] = pending[i];
                }
                if (row.outcome == Outcome::kDataLoss && lost_rows_++ == 0)
                  first_lost_ = pending[i];
                if (row.outcome == Outcome::kUnavailable)
                  unread.values()[unread_count++] = pending[i];
              });
  pending_done_ += count;
  return PutBack(unread.values().first(unread_count));
}

// Rows that cannot be read now are pending again.
Status Scan::PutBack(KeySpan keys) {
  if (keys.empty()) return OkStatus();
  EMBANK_CHECK(keys.size() <= pending_done_);
  pending_done_ -= keys.size();
  std::ranges::copy(keys, pending_.begin() + static_cast<ptrdiff_t>(pending_done_));
  return NoThrowStatus(StatusCode::kUnavailable, [&] {
    return StrCat(keys.size(), " rows of table \"", table_->name(), "\", the first of them of key ",
                  keys[0], ", cannot be read now: the process has no descriptor left for their ",
                  "files (RLIMIT_NOFILE); the next call tries them again");
  });
}

Status Scan::CopyNoted(std::span<Key> keys, RowSpan rows, uint64_t* copied) {
  const size_t space = keys.size() - *copied;
  if (space < std::min(piece_rows_, notes_.keys().size())) return FillPiece();
  uint64_t read = 0;
  EMBANK_RETURN_IF_ERROR(
      ReadNoted(keys.subspan(*copied), {rows.Row(*copied), rows.stride_bytes}, &read));
  *copied += read;
  return OkStatus();
}

Status Scan::FillPiece() {
  const uint64_t vector_bytes = table_->layout().vector_bytes;
  try {
    piece_keys_.resize(piece_rows_);
    piece_vectors_.resize(piece_rows_ * vector_bytes);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
  piece_done_ = 0;
  piece_count_ = 0;
  return ReadNoted(piece_keys_, {piece_vectors_.data(), vector_bytes}, &piece_count_);
}

void Scan::CopyFromPiece(std::span<Key> keys, RowSpan rows, uint64_t* copied) {
  const uint64_t vector_bytes = table_->layout().vector_bytes;
  for (; piece_done_ < piece_count_ && *copied < keys.size(); ++piece_done_) {
    std::memcpy(rows.Row(*copied), piece_vectors_.data() + piece_done_ * vector_bytes,
                vector_bytes);
    keys[(*copied)++] = piece_keys_[piece_done_];
  }
}

// Reads the next noted rows, as many as fit. A record of the row in its noted place is the row as
// it was when it was noted, or later. Keys of rows that are elsewhere now become pending. Nothing
// has changed if it fails.
Status Scan::ReadNoted(std::span<Key> keys, RowSpan rows, uint64_t* read) {
  const size_t count = std::min({keys.size(), notes_.keys().size(), kPlacesMax});
  const std::span<const Key> noted = notes_.keys().first(count);
  Scratch<Location, 256> memory;
  EMBANK_RETURN_IF_ERROR(memory.Allocate(count));
  const std::span<Location> places = memory.values();
  notes_.Places(places);
  try {
    pending_.clear();
    pending_done_ = 0;
    pending_.reserve(count);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
  std::array<Reader, kReadersMax> readers;
  const auto reader_count = static_cast<uint32_t>(
      std::clamp<size_t>(count / kPlacesOfThreadMin, 1,
                         std::min(kReadersMax, table_->parts().executor->concurrency())));
  const uint64_t vector_bytes = table_->layout().vector_bytes;
  table_->parts().executor->ParallelFor(reader_count, [&](uint32_t number) {
    Reader& reader = readers[number];
    reader.begin = count * number / reader_count;
    reader.end = count * (number + 1) / reader_count;
    size_t next = reader.begin;
    size_t moved = reader.end;
    const auto visit = [&](size_t i, const Status& status, std::span<const std::byte> record) {
      const Key key = noted[reader.begin + i];
      if (!status.ok() || !IsRecordOf({table_->id(), key, 0}, record)) {
        keys[--moved] = key;
        return;
      }
      std::memcpy(rows.Row(next), table_->layout().Vector(RowIn(record)), vector_bytes);
      keys[next++] = key;
    };
    reader.status = table_->mover()->logs().Read(
        places.subspan(reader.begin, reader.end - reader.begin), visit, kBridgedBytes);
    reader.found = next - reader.begin;
  });
  for (uint32_t number = 0; number < reader_count; ++number) {
    EMBANK_RETURN_IF_ERROR(readers[number].status);
  }
  size_t found = 0;
  for (const Reader& reader : std::span(readers).first(reader_count)) {
    pending_.insert(pending_.end(), &keys[reader.begin] + reader.found,
                    &keys[reader.begin] + (reader.end - reader.begin));
    for (size_t i = reader.begin; i < reader.begin + reader.found; ++i, ++found) {
      if (i == found) continue;
      std::memcpy(rows.Row(found), rows.Row(i), vector_bytes);
      keys[found] = keys[i];
    }
  }
  notes_.Skip(count);
  *read = found;
  return OkStatus();
}

Status Scan::ReportLoss() {
  const uint64_t lost = std::exchange(lost_rows_, 0);
  const uint64_t unknown = std::exchange(unknown_rows_, 0);
  return NoThrowStatus(StatusCode::kDataLoss, [&] {
    std::string text;
    if (lost > 0) {
      StrAppend(&text, "the row of key ", first_lost_);
      if (lost > 1) StrAppend(&text, " and ", lost - 1, " others");
      StrAppend(&text, " of table \"", table_->name(), "\" cannot be read; ");
    }
    if (unknown > 0) {
      StrAppend(&text, unknown, " records of the log cannot be read; their rows are of table \"",
                table_->name(), "\" or of another; ");
    }
    return text + "the scan may go on without";
  });
}

}  // namespace embank
