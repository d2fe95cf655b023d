// A place in the data of a training, from which another run goes on.
#ifndef EMBANK_TRAIN_SAMPLES_DATA_POSITION_H_
#define EMBANK_TRAIN_SAMPLES_DATA_POSITION_H_

#include <cstdint>

namespace embank {

// The order of shuffled samples depends on the length of their window, and the last one grows with
// the data. So a place in a window has it, as it was. A last line without an end may be one that is
// still being written. So a place behind it has its length, as it was: if the line has grown, it is
// given again.
struct DataPosition {
  DataPosition() = default;
  // A place where a window begins, or one in data that have none.
  // NOLINTNEXTLINE(google-explicit-constructor)
  DataPosition(uint64_t behind) : place(behind) {}
  bool operator==(const DataPosition&) const = default;

  uint64_t place = 0;  // as the source counts
  uint64_t window_begin = 0;
  uint32_t window_samples = 0;   // 0: the place is inside of no window
  uint32_t open_line_bytes = 0;  // 0: the place is behind no line without an end
};

}  // namespace embank

#endif  // EMBANK_TRAIN_SAMPLES_DATA_POSITION_H_
