// The space of a log, and the part that is reserved so that one checkpoint can always be made:
//
//   ssd_bytes:  | segments | manifests, heat | a record for each dirty row | compaction's | for
//   changes |
//
// Writing a dirty row turns its reservation into used space. Reservations are whole segments: as
// many as a class needs beyond the free slots of its open segment. So evictions and flush passes
// never need new space. Calls that make rows dirty, or write other records, do. Arithmetic only;
// the caller guards it.
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

  // The least size of a log: a segment to write, one for compaction, and one for reserved space.
  static constexpr uint64_t kSegmentsMin = 3;

  // Rows of tables that forget, together with all others, take at most this part of ssd_bytes.
  // Emptied segments that are kept for two checkpoints need as much (decision 0023).
  static constexpr uint64_t kRowsPart = 2;

  // Counts the rows of a class; a repeated call changes nothing. Throws std::bad_alloc.
  void AddClass(uint32_t row_class, uint32_t record_bytes, bool forgets = false);

  // Sets the number of free slots in the open segment for dirty rows of a class. Does nothing for a
  // class that is not counted.
  void SetOpenSlots(uint32_t row_class, uint64_t slots);
  // Adds to the number of dirty rows; may be negative.
  void AddDirty(uint32_t row_class, int64_t rows);
  // Adds to the bytes of a class's living records; may be negative.
  void AddLive(uint32_t row_class, int64_t bytes);
  // Adds to the bytes of segments; may be negative.
  void AddTaken(int64_t bytes) { taken_bytes_ += static_cast<uint64_t>(bytes); }
  // Reserves so many bytes for manifests and heat.
  void ReserveMetadata(uint64_t bytes) { metadata_bytes_ = bytes; }

  // Rows of classes that forget are too many beyond so many bytes of rows.
  void LimitRows(uint64_t bytes) { rows_bytes_max_ = bytes; }
  // Rows of all classes are too many beyond that.
  void LimitRowsOfAllClasses() { any_forgets_ = true; }

  // How many of `rows` more rows of a class may be dirty.
  uint64_t Admits(uint32_t row_class, uint64_t rows) const;
  // The bytes of rows to forget; 0 if no class forgets.
  uint64_t BytesToForget() const;
  bool Forgets(uint32_t row_class) const {
    return IsCounted(row_class) && classes_[row_class].forgets;
  }
  // Bytes of memory for the bits of the segments that dirty rows will need
  // (tiers/space/log_memory.h).
  uint64_t needed_bit_bytes() const { return needed_bit_bytes_; }
  // Whole segments that are neither used nor reserved; negative: a part of the reservation is
  // missing.
  int64_t SpareSegments() const;
  // The bytes of a class's records, living or still to be written; 0 if it is not counted.
  uint64_t ClassBytes(uint32_t row_class) const;
  // The number of classes that are counted.
  uint64_t classes() const { return counted_classes_; }
  // The number of slots in a segment for rows of the class.
  uint64_t SlotsOf(uint32_t row_class) const { return classes_[row_class].slots; }
  // Whether there is a further segment for dirty rows; or for compaction, which may use the space
  // that is reserved for it if it frees space with it.
  bool HasSegment() const { return FreeSegments() > 0; }
  bool HasSegmentForCompaction(bool brings_space) const {
    return FreeSegments() > needed_segments_ + (brings_space ? 0 : CompactionSegments());
  }

  uint64_t taken_bytes() const { return taken_bytes_; }
  uint64_t metadata_bytes() const { return metadata_bytes_; }
  uint64_t dirty_bytes() const { return dirty_bytes_; }
  // The part of the budget that is reserved for a checkpoint; 0 without a limit.
  uint64_t reserved_bytes() const;

 private:
  struct Class {
    uint32_t record_bytes = 0;  // 0: it is not counted
    bool forgets = false;
    int64_t slots = 1;
    int64_t left_out_slots = 0;  // at most, until the flush pass after the next one has ended
    int64_t dirty_rows = 0;
    int64_t live_bytes = 0;
    int64_t open_slots = 0;
    int64_t needed_segments = 0;
    int64_t needed_bit_bytes = 0;
    int64_t bit_bytes = 0;        // of one of its segments
    int64_t first_bit_bytes = 0;  // once more where segments may be smaller
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
  uint64_t counted_classes_ = 0;
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
