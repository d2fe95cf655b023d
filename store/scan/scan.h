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
#include "store/table/table.h"

namespace embank {

// For one thread at a time. Holds no lock between calls, promotes no row and counts no heat.
class Scan {
 public:
  // Memory for the notes of a pass. A pass has at least one range, whose notes may take more.
  static constexpr uint64_t kNotesBytesMax = uint64_t{60} << 20;

  explicit Scan(Table* table, uint64_t notes_bytes = kNotesBytesMax);

  const Table& table() const { return *table_; }

  // Copies the next rows, at most keys.size() (> 0) of them, and returns how many; 0: the end. May
  // write to the rest of `keys` and `rows`, too.
  // kFailedPrecondition: the table was dropped.
  // kResourceExhausted: no memory for a pass's notes; the call may be repeated.
  // kDataLoss: rows cannot be read from the log, or their keys are unknown; the next call continues
  // behind them.
  // kUnavailable: rows cannot be read now; the next call tries them again.
  StatusOr<uint64_t> Next(std::span<Key> keys, RowSpan rows);

 private:
  Status BeginPass();
  void NoteRange(uint32_t range);
  Status CopyPending(std::span<Key> keys, RowSpan rows, uint64_t* copied);
  Status PutBack(KeySpan keys);
  Status CopyNoted(std::span<Key> keys, RowSpan rows, uint64_t* copied);
  Status FillPiece();
  Status ReadNoted(std::span<Key> keys, RowSpan rows, uint64_t* read);
  void CopyFromPiece(std::span<Key> keys, RowSpan rows, uint64_t* copied);
  bool LostAny() const { return lost_rows_ > 0 || unknown_rows_ > 0; }
  Status ReportLoss();

  Table* const table_;
  const uint64_t notes_bytes_;
  const size_t piece_rows_;
  uint32_t next_range_ = 0;   // the begin of the next pass
  ScanNotes notes_;           // keys of rows that were in the log
  std::vector<Key> pending_;  // to be looked up: rows that were in memory, or have moved since
  size_t pending_done_ = 0;
  // Rows that were read for callers that want few at a time.
  std::vector<Key> piece_keys_;
  std::vector<std::byte> piece_vectors_;
  size_t piece_count_ = 0;
  size_t piece_done_ = 0;
  // Not reported yet.
  uint64_t lost_rows_ = 0;
  Key first_lost_ = 0;
  uint64_t unknown_rows_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_SCAN_SCAN_H_
