// A column file: the text that says which columns of a CSV file are the label, dense features and
// ids. One statement per line; a line that begins with # is a remark:
//
//   separator comma              comma, tab, semicolon or space; a statement that may be missing
//   header yes                   yes or no; without a header columns are called 1, 2, ...
//   label rating at-least 4      1 from this number on; without at-least the column has 0 or 1
//   dense timestamp log          any number; with log it becomes log(max(x, 0) + 1)
//   id userId decimal below 611  decimal, hex or text, which is hashed; with below, ids of decimal
//   or
//                                hex are less than this number, and others break their line
//   bag genres text              ids of one of these formats, at most 4,095, with | between them
#ifndef EMBANK_TRAIN_DATA_COLUMN_FILE_H_
#define EMBANK_TRAIN_DATA_COLUMN_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status_or.h"

namespace embank {

// Stands between the ids of a bag.
inline constexpr char kBagSeparator = '|';

enum class IdFormat { kDecimal, kHex, kText };

struct DenseColumn {
  std::string name;
  bool is_log = false;
};

struct IdColumn {
  std::string name;
  IdFormat format = IdFormat::kDecimal;
  std::optional<uint64_t> vocabulary = {};  // ids are below it
  bool is_bag = false;
};

struct ColumnFile {
  char separator = ',';
  bool has_header = true;
  std::string label;
  std::optional<double> label_at_least;
  std::vector<DenseColumn> dense;
  std::vector<IdColumn> ids;
};

// INVALID_ARGUMENT names the line and the word that is wrong, or says that there is no label.
StatusOr<ColumnFile> ParseColumnFile(std::string_view text);

// Returns all statements of a column file, those that may be missing too.
std::string TextOf(const ColumnFile& columns);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_COLUMN_FILE_H_
