// A walk over all rows of a table, in passes. A pass notes the rows of some logical ranges of the
// key hash and their places, and then returns them, rows in the log in the order of their places.
// The index may grow, and rows may be created, erased and moved meanwhile. The keys of a pass are
// fixed when it notes them; a row that is not found in its noted place is looked up by key.
#ifndef EMBANK_STORE_SCAN_SCAN_H_
#define EMBANK_STORE_SCAN_SCAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status_or.h"
#include "store/scan/scan_notes.h"
#include "store/scan/scanned_rows.h"
#include "store/table/table.h"

namespace embank {

// For one thread at a time. Holds no lock between calls, promotes no row and counts no heat.
class Scan {
 public:
  // Memory for the notes of a pass. A pass has at least one range, whose notes may take more.
  static constexpr uint64_t kNotesBytesMax = uint64_t{60} << 20;

  explicit Scan(Table* table, uint64_t notes_bytes = kNotesBytesMax);

  const Table& table() const { return *table_; }

  // Copies the next rows, at most `count` (> 0) of them, and returns how many; 0: the end. The
  // arrays have `count` places; `keys` has none if keys are not wanted. May write to the rest of
  // the arrays, too. Vector, state and heat are of one moment; the heat of a row in device memory
  // may be of another moment of the call. The next call may want other arrays.
  // kFailedPrecondition: the table was dropped.
  // kResourceExhausted: no memory for a pass's notes; the call may be repeated.
  // kDataLoss: rows cannot be read from the log, or their keys are unknown; the next call continues
  // behind them.
  // kUnavailable: rows cannot be read now; the next call tries them again.
  StatusOr<uint64_t> Next(const ScannedRows& rows, size_t count);
  StatusOr<uint64_t> Next(std::span<Key> keys, RowSpan rows) {
    return Next({keys, rows}, keys.size());
  }

 private:
  // Rows that were read for callers that want few at a time.
  struct Piece {
    std::vector<Key> keys;
    std::vector<std::byte> vectors;
    std::vector<std::byte> states;
    std::vector<uint32_t> heats;
    ScannedRows rows = {};  // the arrays above
    size_t count = 0;
    size_t done = 0;
  };

  StatusOr<uint64_t> NextWithKeys(const ScannedRows& rows);
  Status BeginPass();
  void NoteRange(uint32_t range);
  Status CopyPending(const ScannedRows& rows, uint64_t* copied);
  Status PutBack(KeySpan keys);
  Status CopyNoted(const ScannedRows& rows, uint64_t* copied);
  Status FillPiece(const ScannedRows& wanted);
  Status ReadNoted(const ScannedRows& rows, uint64_t* read);
  bool ReadHeat(Key key, Location from, std::span<const std::byte> record, uint32_t* heat) const;
  Status CopyFromPiece(const ScannedRows& rows, uint64_t* copied);
  bool LostAny() const { return lost_rows_ > 0 || unknown_rows_ > 0; }
  Status ReportLoss();

  Table* const table_;
  const uint64_t notes_bytes_;
  const size_t piece_rows_;
  uint32_t next_range_ = 0;   // the begin of the next pass
  ScanNotes notes_;           // keys of rows that were in the log
  std::vector<Key> pending_;  // to be looked up: rows that were in memory, or have moved since
  size_t pending_done_ = 0;
  Piece piece_;
  std::vector<Key> unwanted_keys_;  // of a caller that wants none
  // Not reported yet.
  uint64_t lost_rows_ = 0;
  Key first_lost_ = 0;
  uint64_t unknown_rows_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_SCAN_SCAN_H_
