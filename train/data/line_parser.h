// The format of a click log's lines: turns a line into a sample, or tells why it is none.
#ifndef EMBANK_TRAIN_DATA_LINE_PARSER_H_
#define EMBANK_TRAIN_DATA_LINE_PARSER_H_

#include <string>
#include <string_view>

#include "train/samples/click_batch.h"

namespace embank {

// Why a line is broken.
enum class LineDefect {
  kNone,
  kTooFewColumns,
  kTooManyColumns,
  kBadLabel,
  kBadNumber,
  kDecimalComma,
  kBadId,
  kUnknownId,
  kBadBag,
  kBadWeight,
  kUnknownField,
  kTooManyIds,
  kOpenQuote,
  kFileEnds,
  kTooLong,
  kBlank,
};

// Returns a phrase about a line: "it has too few columns".
const char* DefectText(LineDefect defect);

// The field of a broken line that was not understood.
struct BadField {
  // More of it is not kept.
  static constexpr size_t kTextBytesMax = 200;

  std::string column;  // its name or number; empty: the defect is that of the line
  std::string text;

  // Returns `defect`, for a parser's convenience.
  LineDefect Set(LineDefect defect, std::string_view of_column, std::string_view field) {
    column = of_column;
    text = field.substr(0, kTextBytesMax);
    return defect;
  }
};

class LineParser {
 public:
  virtual ~LineParser() = default;

  // Returns the features that each row has.
  virtual const ClickColumns& columns() const = 0;

  // Turns a line, any bytes without a newline, into a row. If the line is broken, the row is of no
  // use, and *bad is the field. Thread-safe.
  virtual LineDefect Parse(std::string_view line, ClickRow* row, BadField* bad) const = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_LINE_PARSER_H_
