// The pace of compaction: the number of rows that it moves while others change.
//
//   ssd_bytes:  | segments in which rows live | emptied, but kept | open ones, for a checkpoint |
//   spare |
//               0 ......................... begin
//
// An emptied segment takes its space until two more checkpoints have been made. The earlier rows
// are moved, the more of the log is such segments, and the less is left for living rows (decision
// 0023). So compaction begins as late as the log's size allows, and does the more for each change
// the further it is behind. Arithmetic only; the caller guards it.
#ifndef EMBANK_TIERS_SPACE_COMPACTION_PACE_H_
#define EMBANK_TIERS_SPACE_COMPACTION_PACE_H_

#include <cstdint>
#include <limits>

namespace embank {

class CompactionPace {
 public:
  // ssd_bytes == 0: no limit. follows_rows: the log's size follows that of its living rows, besides
  // any limit.
  CompactionPace(uint64_t ssd_bytes, uint64_t segment_bytes, bool follows_rows);

  // A pace is the number of rows to move for so many rows that change.
  static constexpr uint32_t kChangedRows = 256;
  // Two rows for each: enough where 0.67 of every emptied segment lives.
  static constexpr uint32_t kPaceMax = 2 * kChangedRows;

  // Adds to the bytes of finished segments with living rows, and to the bytes of these rows; both
  // may be negative.
  void AddFinished(int64_t bytes, int64_t live_bytes);
  // Sets the number of row classes: segments that sessions left unfilled may take some space for
  // each.
  void SetClasses(uint64_t classes);
  // Sets the bytes of the records that dirty rows in memory need. These rows will live in the log
  // again, so the pace compares its size with them, too.
  void SetDirty(uint64_t bytes) { dirty_bytes_ = bytes; }
  // Sets the number of segments that are neither used nor reserved.
  void SetSpare(int64_t segments);
  // Notes that a segment was chosen to be emptied.
  void NoteWork() { has_worked_ = true; }
  // Notes the end of a checkpoint, which frees segments that only older ones have. If much was
  // spare all the time since the last checkpoint, compaction may begin later; if little was,
  // earlier.
  void EndInterval();

  // 0: no row is worth moving, or there is no space to move it to.
  uint32_t pace() const;
  // Whether the log takes more space than the living rows in it justify. Dirty rows do not count,
  // so that a checkpoint bounds the size, however many there are. is_begun: compaction has begun
  // for that reason, and goes on for a while.
  bool HasWaste(bool is_begun) const;
  // Compaction begins when this part of ssd_bytes is used.
  double begin() const { return begin_; }

 private:
  double RowsForSize() const;
  double RowsForLimit() const;

  const double segments_;  // of ssd_bytes; 0: no limit
  const double segment_bytes_;
  const bool follows_rows_;
  double slack_bytes_;
  int64_t finished_bytes_ = 0;
  int64_t live_bytes_ = 0;
  uint64_t dirty_bytes_ = 0;
  int64_t spare_ = std::numeric_limits<int64_t>::max();
  int64_t spare_min_ = std::numeric_limits<int64_t>::max();  // of this interval
  bool has_worked_ = false;                                  // in this interval
  uint32_t intervals_worked_ = 0;                            // one after the other
  double begin_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_SPACE_COMPACTION_PACE_H_
