// How many rows compaction moves while others change.
//
//   ssd_bytes:  | segments in which rows live | emptied, but kept | open ones, for a checkpoint |
//   spare |
//               0 ......................... begin
//
// An emptied segment takes its space until two checkpoints more have been made: the earlier rows
// are moved, the more of the log is such segments, and the less is left to those in which rows live
// (decision 0023). So compaction begins as late as the log's size allows, and does the more for
// each change the further it is behind. Arithmetic alone; whoever has it guards it.
#ifndef EMBANK_TIERS_SPACE_COMPACTION_PACE_H_
#define EMBANK_TIERS_SPACE_COMPACTION_PACE_H_

#include <cstdint>
#include <limits>

namespace embank {

class CompactionPace {
 public:
  // ssd_bytes == 0: no limit; then space is cheaper than writes, and only how much lives counts.
  CompactionPace(uint64_t ssd_bytes, uint64_t segment_bytes);

  // Paces are in rows to be moved for so many rows that change.
  static constexpr uint32_t kChangedRows = 256;
  // Two for each: what has to be moved where 0.67 of every emptied segment lives.
  static constexpr uint32_t kPaceMax = 2 * kChangedRows;

  // Finished segments in which rows live have so many bytes more, or fewer; their rows.
  void AddFinished(int64_t bytes, int64_t live_bytes);
  // Segments that nobody has a claim to.
  void SetSpare(int64_t segments);
  // A segment was chosen to be emptied.
  void NoteWork() { has_worked_ = true; }
  // A checkpoint has ended; what only older ones have is free now. Where much was spare all the
  // time since the last one, compaction may begin later; where little was, earlier.
  void EndInterval();

  // 0: nothing is worth moving, or there is no space to move it to.
  uint32_t pace() const;
  // The part of ssd_bytes from which on there is something to do.
  double begin() const { return begin_; }

 private:
  const double segments_;  // of ssd_bytes; 0: no limit
  const double segment_bytes_;
  int64_t finished_bytes_ = 0;
  int64_t live_bytes_ = 0;
  int64_t spare_ = std::numeric_limits<int64_t>::max();
  int64_t spare_min_ = std::numeric_limits<int64_t>::max();  // of this interval
  bool has_worked_ = false;                                  // in this interval
  uint32_t intervals_worked_ = 0;                            // one after the other
  double begin_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_SPACE_COMPACTION_PACE_H_
