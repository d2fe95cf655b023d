// The broken lines of a click log: how many there are, and the first one of each kind.
#ifndef EMBANK_TRAIN_DATA_BROKEN_LINES_H_
#define EMBANK_TRAIN_DATA_BROKEN_LINES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/line_parser.h"

namespace embank {

// Broken lines of one kind: they have the same defect in the same column.
struct BrokenKind {
  LineDefect defect = LineDefect::kNone;
  BadField bad;  // of the first one, and so are its file and number
  std::string file;
  uint64_t number = 0;  // in the file
  uint64_t count = 1;
};

// Returns the first characters of a text between marks; those that cannot be printed are escaped.
std::string ShownText(std::string_view text, char mark = '"');

struct BrokenLines {
  static constexpr uint32_t kNamedMax = 10;

  uint64_t count = 0;
  std::vector<BrokenKind> kinds;  // the first kNamedMax that came

  // Counts a line of `file`.
  void Add(LineDefect defect, const BadField& bad, const std::string& file, uint64_t number);
};

// Returns a phrase for the first line of each kind, with file, line, column, text and count:
//   log.csv, line 7: a dense feature is no number: "3O" in column 'age' (17 such lines)
// A last phrase has the count of the lines of all other kinds, if there are any.
std::vector<std::string> TextsOf(const BrokenLines& broken);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_BROKEN_LINES_H_
