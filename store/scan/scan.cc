#include "store/scan/scan.h"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include "base/memory/scratch.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/logged_rows.h"
#include "store/batch/row_group.h"
#include "store/payload/payload_list.h"
#include "store/placement/heat_clock.h"
#include "store/placement/row_mover.h"
#include "store/table/row_memory.h"
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

StatusOr<uint64_t> Scan::Next(const ScannedRows& rows, size_t count) {
  EMBANK_RETURN_IF_ERROR(table_->CheckAlive());
  if (!rows.keys.empty()) return NextWithKeys(rows);
  try {
    unwanted_keys_.resize(std::min(count, kPlacesMax));
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
  ScannedRows with_keys = rows;
  with_keys.keys = unwanted_keys_;
  return NextWithKeys(with_keys);
}

StatusOr<uint64_t> Scan::NextWithKeys(const ScannedRows& rows) {
  uint64_t copied = 0;
  Status status;
  while (copied < rows.keys.size() && status.ok() && !LostAny()) {
    if (piece_.done < piece_.count) {
      status = CopyFromPiece(rows, &copied);
    } else if (pending_done_ < pending_.size()) {
      status = CopyPending(rows, &copied);
    } else if (!notes_.keys().empty()) {
      status = CopyNoted(rows, &copied);
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
  const StoreContext& store = table_->store();
  KeyIndex::Shard* const shard = store.index->shard(KeyIndex::ShardOf(first));
  ReaderMutexLock lock(&shard->mutex);
  store.index->VisitHashes(shard, first, last, [&](Location location) {
    if (location.IsInLog()) return notes_.Add(location);
    const RowHeader* const header = table_->layout().Header(store.tier->Row(location));
    if (TableOf(LoadIdentity(header)) == table_->id()) pending_.push_back(LoadKey(header));
  });
}

// Copies pending rows that still exist behind the *copied that are there. Vectors alone go straight
// to their places; whole rows go by way of an image, since a copy may turn out to be torn.
Status Scan::CopyPending(const ScannedRows& rows, uint64_t* copied) {
  const RowLayout& layout = table_->layout();
  const StoreContext& store = table_->store();
  const size_t count = std::min<size_t>(
      {rows.keys.size() - *copied, pending_.size() - pending_done_, kLookedUpAtOnce});
  const KeySpan pending = KeySpan(pending_).subspan(pending_done_, count);
  const Batch batch(table_, pending, {});
  LoggedRows logged_rows;
  PayloadList payloads;
  Scratch<uint32_t, kInlineKeys> payload_heats;  // by position
  Scratch<Key, kInlineKeys> unread;
  size_t unread_count = 0;
  EMBANK_RETURN_IF_ERROR(logged_rows.Allocate(batch));
  EMBANK_RETURN_IF_ERROR(unread.Allocate(table_->mover()->InLogMax(count)));
  EMBANK_RETURN_IF_ERROR(payloads.Allocate(store.payloads, count));
  EMBANK_RETURN_IF_ERROR(payload_heats.Allocate(store.payloads == nullptr ? 0 : count));
  LoggedRows::Part logged(&logged_rows, batch, 0);
  const PayloadGuard payload_guard(store.payloads);
  const bool is_whole = !rows.has_vectors_only();
  const HeatEpoch now = store.heat_clock->now();
  {
    std::optional<RowCopyBuffer> image;
    if (is_whole) image.emplace(store.row_memory, layout);
    const auto copy = [&](uint32_t, const RowWatch& watch) {
      if (!is_whole) {
        return CopyOneVector(watch, layout.vector_bytes, rows.vectors.Row(*copied), nullptr);
      }
      const auto* const row = reinterpret_cast<const std::byte*>(watch.header);
      CopyFromRow(layout.Vector(row), layout.payload_bytes(), layout.Vector(image->bytes()));
      return watch.IsCurrent();
    };
    PayloadList::Part payload_part(&payloads, 0);
    const EpochTable::Guard guard(store.epochs);
    const uint32_t read_bytes = is_whole ? layout.row_bytes : layout.vector_end_bytes();
    ReadRows(*table_, read_bytes, pending, 0, static_cast<uint32_t>(count), copy,
             [&](uint32_t i, const RowSeen& seen, const Match& match) {
               if (seen.header == nullptr && match.any()) logged.Add(i, match.location());
               // An absent key was erased since the pass began.
               if (seen.header == nullptr) return;
               const uint32_t heat = HeatOf(seen.mark.usage, now);
               if (match.location().HasDevicePayload()) {
                 payload_heats.values()[i] = heat;
                 return payload_part.Add(i, match.location());
               }
               if (is_whole) rows.Put(layout, *copied, pending[i], image->bytes(), heat);
               rows.keys[(*copied)++] = pending[i];
             });
  }
  const auto put = [&](uint32_t i, const std::byte* row, uint32_t heat) {
    rows.Put(layout, (*copied)++, pending[i], row, heat);
  };
  EMBANK_RETURN_IF_ERROR(payloads.Read(
      kVectorInPayload, is_whole ? layout.payload_bytes() : layout.vector_bytes,
      [&](const PayloadPosition& at, const std::byte* payload) {
        put(at.number, payload - RowLayout::kVectorOffsetBytes, payload_heats.values()[at.number]);
      }));
  logged.Read({.touches = 0, .promoted = PromotedRows::kNone, .tells_heat = rows.heats != nullptr},
              [&](uint32_t i, const LoggedRow& row) {
                if (row.outcome == Outcome::kFound) put(i, row.row, row.heat);
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

Status Scan::CopyNoted(const ScannedRows& rows, uint64_t* copied) {
  const size_t space = rows.keys.size() - *copied;
  if (space < std::min(piece_rows_, notes_.keys().size())) return FillPiece(rows);
  uint64_t read = 0;
  EMBANK_RETURN_IF_ERROR(ReadNoted(rows.From(*copied), &read));
  *copied += read;
  return OkStatus();
}

Status Scan::FillPiece(const ScannedRows& wanted) {
  const RowLayout& layout = table_->layout();
  const bool has_states = wanted.states.data != nullptr;
  const bool has_heats = wanted.heats != nullptr;
  try {
    piece_.keys.resize(piece_rows_);
    piece_.vectors.resize(piece_rows_ * layout.vector_bytes);
    piece_.states.resize(has_states ? piece_rows_ * layout.state_bytes() : 0);
    piece_.heats.resize(has_heats ? piece_rows_ : 0);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
  piece_.rows = {piece_.keys,
                 {piece_.vectors.data(), layout.vector_bytes},
                 {has_states ? piece_.states.data() : nullptr, layout.state_bytes()},
                 has_heats ? piece_.heats.data() : nullptr};
  piece_.done = 0;
  piece_.count = 0;
  return ReadNoted(piece_.rows, &piece_.count);
}

// A piece may lack what this caller wants: then its rows are looked up by key.
Status Scan::CopyFromPiece(const ScannedRows& rows, uint64_t* copied) {
  if (!piece_.rows.Cover(rows)) {
    const std::span<const Key> left =
        std::span(piece_.keys).first(piece_.count).subspan(piece_.done);
    try {
      pending_.insert(pending_.end(), left.begin(), left.end());
    } catch (const std::bad_alloc&) {
      return NoMemory();
    }
    piece_.done = piece_.count;
    return OkStatus();
  }
  for (; piece_.done < piece_.count && *copied < rows.keys.size(); ++piece_.done) {
    rows.Copy(table_->layout(), (*copied)++, piece_.rows, piece_.done);
  }
  return OkStatus();
}

// Reads the heat of a row whose record is this one. False: the row has moved since, and its heat
// may have moved with it.
bool Scan::ReadHeat(Key key, Location from, std::span<const std::byte> record,
                    uint32_t* heat) const {
  const RowId id = table_->IdOf(key, table_->HashOf(key));
  KeyIndex* const index = table_->store().index;
  KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(id.hash));
  ReaderMutexLock lock(&shard->mutex);
  const Match match = index->Find(id);
  if (!match.any() || match.location() != from) return false;
  *heat = table_->mover()->log_rows().HeatOfRecord(id.hash, record);
  return true;
}

// Reads the next noted rows, as many as fit. A record of the row in its noted place is the row as
// it was when it was noted, or later. Keys of rows that are elsewhere now become pending. Nothing
// has changed if it fails.
Status Scan::ReadNoted(const ScannedRows& rows, uint64_t* read) {
  const std::span<Key> keys = rows.keys;
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
                         std::min(kReadersMax, table_->store().executor->concurrency())));
  const RowLayout& layout = table_->layout();
  table_->store().executor->ParallelFor(reader_count, [&](uint32_t number) {
    Reader& reader = readers[number];
    reader.begin = count * number / reader_count;
    reader.end = count * (number + 1) / reader_count;
    size_t next = reader.begin;
    size_t moved = reader.end;
    const auto visit = [&](size_t i, const Status& status, std::span<const std::byte> record) {
      const Key key = noted[reader.begin + i];
      uint32_t heat = 0;
      bool is_there = status.ok() && IsRecordOf({table_->id(), key, 0}, record);
      if (is_there && rows.heats != nullptr) {
        is_there = ReadHeat(key, places[reader.begin + i], record, &heat);
      }
      if (!is_there) {
        keys[--moved] = key;
        return;
      }
      rows.Put(layout, next++, key, RowIn(record), heat);
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
      if (i != found) rows.Copy(layout, found, rows, i);
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
