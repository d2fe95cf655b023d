// A place in the data of a training, from which another run goes on.
#ifndef EMBANK_TRAIN_SAMPLES_DATA_POSITION_H_
#define EMBANK_TRAIN_SAMPLES_DATA_POSITION_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"

namespace embank {

// A short text, in positions that are sent and compared as bytes.
class OrderText {
 public:
  static constexpr size_t kCharactersMax = 200;

  OrderText() = default;
  // NOLINTNEXTLINE(google-explicit-constructor)
  OrderText(std::string_view text) {
    EMBANK_CHECK(text.size() <= kCharactersMax);
    std::ranges::copy(text, characters_.begin());
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::string_view() const {
    const auto end = std::ranges::find(characters_, '\0');
    return {characters_.data(), static_cast<size_t>(end - characters_.begin())};
  }
  bool empty() const { return characters_[0] == '\0'; }
  bool operator==(const OrderText&) const = default;

 private:
  std::array<char, kCharactersMax> characters_ = {};  // zeros follow the text
};

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
  // How the source goes on, in one line, where the order of samples depends on losses. `place` then
  // counts samples. Empty: the order follows from the place.
  OrderText order = {};
};

}  // namespace embank

#endif  // EMBANK_TRAIN_SAMPLES_DATA_POSITION_H_
