// How much room a log has, and what of it is kept so that one checkpoint can always be made:
//
//   ssd_bytes:  | segments | manifests, heat | a record for each dirty row | compaction's | for
//   changes |
//
// A dirty row whose record is written turns what is kept for it into what segments take, one for
// one: in segments, so many as its class needs beyond the free slots of its open one. So evictions
// and the flush pass of a checkpoint need no leave; what makes rows dirty, or writes others'
// records, does. Arithmetic alone; whoever has it guards it.
#ifndef EMBANK_TIERS_SPACE_LOG_QUOTA_H_
#define EMBANK_TIERS_SPACE_LOG_QUOTA_H_

#include <cstdint>
#include <vector>

namespace embank {

class LogQuota {
 public:
  // ssd_bytes == 0: no limit.
  LogQuota(uint64_t ssd_bytes, uint64_t segment_bytes)
      : ssd_bytes_(ssd_bytes),
        segment_bytes_(segment_bytes),
        rows_bytes_max_(ssd_bytes / kRowsPart) {}

  // Of less no log can be made use of: a segment to write, one for compaction, and what is kept.
  static constexpr uint64_t kSegmentsMin = 3;

  // Rows of tables that forget take, with all others, no more than this part of ssd_bytes: what
  // else is emptied, but kept for two checkpoints, needs as much (decision 0023).
  static constexpr uint64_t kRowsPart = 2;

  // A row class whose rows are counted; the same one again changes nothing. std::bad_alloc leaves
  // it.
  void AddClass(uint32_t row_class, uint32_t record_bytes, bool forgets = false);

  // The open segment of a class to which dirty rows go has so many free slots. Of a class that is
  // not counted: nothing.
  void SetOpenSlots(uint32_t row_class, uint64_t slots);
  // So many rows more are dirty, or fewer.
  void AddDirty(uint32_t row_class, int64_t rows);
  // Records in which rows live have so many bytes more, or fewer.
  void AddLive(int64_t bytes) { live_bytes_ += static_cast<uint64_t>(bytes); }
  // Segments take so many bytes more, or fewer.
  void AddTaken(int64_t bytes) { taken_bytes_ += static_cast<uint64_t>(bytes); }
  // So many bytes are for manifests and heat.
  void ReserveMetadata(uint64_t bytes) { metadata_bytes_ = bytes; }

  // Rows of classes that forget are too many beyond so many bytes of rows.
  void LimitRows(uint64_t bytes) { rows_bytes_max_ = bytes; }

  // How many of `rows` more rows of a class may be dirty.
  uint64_t Admits(uint32_t row_class, uint64_t rows) const;
  // How many bytes of rows are too many; none, where no class forgets.
  uint64_t BytesToForget() const;
  bool Forgets(uint32_t row_class) const {
    return IsCounted(row_class) && classes_[row_class].forgets;
  }
  // Bytes of memory for the bits of the segments that dirty rows will need
  // (tiers/space/log_memory.h).
  uint64_t needed_bit_bytes() const { return needed_bit_bytes_; }
  // Whole segments that nobody has a claim to; negative: some of what is kept is missing.
  int64_t SpareSegments() const;
  // Slots that a segment has for rows of the class.
  uint64_t SlotsOf(uint32_t row_class) const { return classes_[row_class].slots; }
  // Whether there is a further segment for dirty rows; for compaction, which may use what is kept
  // for it if that brings space back.
  bool HasSegment() const { return FreeSegments() > 0; }
  bool HasSegmentForCompaction(bool brings_space) const {
    return FreeSegments() > needed_segments_ + (brings_space ? 0 : CompactionSegments());
  }

  uint64_t taken_bytes() const { return taken_bytes_; }
  uint64_t metadata_bytes() const { return metadata_bytes_; }
  uint64_t dirty_bytes() const { return dirty_bytes_; }
  // Of the budget, for a checkpoint; without a limit nothing.
  uint64_t reserved_bytes() const;

 private:
  struct Class {
    uint32_t record_bytes = 0;  // 0: it is not counted
    bool forgets = false;
    int64_t slots = 1;
    int64_t left_out_slots = 0;  // at most, until the flush pass behind the next has ended
    int64_t dirty_rows = 0;
    int64_t open_slots = 0;
    int64_t needed_segments = 0;
    int64_t bit_bytes = 0;  // of one of its segments
  };

  bool IsCounted(uint32_t row_class) const {
    return row_class < classes_.size() && classes_[row_class].record_bytes != 0;
  }
  int64_t FreeSegments() const;
  int64_t CompactionSegments() const;
  void Recount(Class* row_class);

  const uint64_t ssd_bytes_;
  const uint64_t segment_bytes_;
  uint64_t rows_bytes_max_;
  std::vector<Class> classes_;
  uint64_t taken_bytes_ = 0;
  uint64_t metadata_bytes_ = 0;
  uint64_t dirty_bytes_ = 0;
  uint64_t live_bytes_ = 0;
  bool any_forgets_ = false;
  int64_t needed_segments_ = 0;  // of all classes
  uint64_t needed_bit_bytes_ = 0;
};

}  // namespace embank

#endif  // EMBANK_TIERS_SPACE_LOG_QUOTA_H_
