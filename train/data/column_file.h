// A column file: the text that says which columns of a log are the label, dense features and ids.
// One statement per line; a line that begins with # is a remark:
//
//   rules 2                      of reading (log_rules.h); a statement that may be missing
//   format csv                   csv, libsvm or libffm; a statement that may be missing
//   separator comma              comma, tab, semicolon or space; a statement that may be missing
//   header yes                   yes or no; without a header columns are called 1, 2, ...
//   label rating at-least 4      1 from this number on; without at-least the column has 0 or 1
//   dense timestamp log          any number; with log it becomes log(max(x, 0) + 1)
//   dense "my age" log flag      with flag there is a second feature, 1 where the number is missing
//   id userId decimal below 611  decimal, hex or text, which is hashed; with below, decimal and hex
//                                ids are less than this number, and others break their line
//   id country text missing NA,? these texts stand for a missing id, as an empty field does; those
//                                of a bag are the whole field
//   bag genres text              ids of one of these formats, at most 4,095, with | between them
//   bag items decimal separator ; weights :   id:weight;id:weight
//   bag items decimal list       [1, 2, 3] or ['a', 'b'], as JSON and Python write lists
//   bag history decimal table itemId   ids of itemId: both features have the rows of one table
//   field 3 user                 of format libffm: its third field is a bag of this name
//
// A name in quotation marks may have blanks, and a doubled mark stands for one.
#ifndef EMBANK_TRAIN_DATA_COLUMN_FILE_H_
#define EMBANK_TRAIN_DATA_COLUMN_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status_or.h"
#include "train/data/log_rules.h"

namespace embank {

// Stands between the ids of a bag where nothing else is declared.
inline constexpr char kBagSeparator = '|';

enum class LogFormat { kCsv, kLibsvm, kLibffm };
enum class IdFormat { kDecimal, kHex, kText };

struct DenseColumn {
  std::string name;
  bool is_log = false;
  bool has_flag = false;

  bool operator==(const DenseColumn&) const = default;
};

struct IdColumn {
  std::string name;
  IdFormat format = IdFormat::kDecimal;
  std::optional<uint64_t> vocabulary = {};  // ids are below it
  bool is_bag = false;
  std::vector<std::string> missing = {};  // texts that are no id
  char separator = kBagSeparator;         // of the ids of a bag
  std::optional<char> weights = {};       // stands between an id of a bag and its weight
  bool is_list = false;                   // the bag is in brackets
  std::string table = {};                 // which features share; empty: one of its own

  bool operator==(const IdColumn&) const = default;
};

// A field of libffm.
struct FieldColumn {
  uint64_t number = 0;
  std::string name;
};

struct ColumnFile {
  LogRules rules = kNewestRules;
  LogFormat format = LogFormat::kCsv;
  char separator = ',';
  bool has_header = true;
  std::string label = {};
  std::optional<double> label_at_least = {};
  std::vector<DenseColumn> dense = {};
  std::vector<IdColumn> ids = {};
  std::vector<FieldColumn> fields = {};
};

// INVALID_ARGUMENT names the line and the word that is wrong, or says that there is no label, which
// a log without labels does not need.
StatusOr<ColumnFile> ParseColumnFile(std::string_view text, bool needs_label = true);

// Returns the statement of a column, without a line end.
std::string TextOf(const DenseColumn& dense);
std::string TextOf(const IdColumn& id);
// Returns all statements of a column file, those that may be missing too. The first rules are not
// written: they are older than the statement.
std::string TextOf(const ColumnFile& columns);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_COLUMN_FILE_H_
