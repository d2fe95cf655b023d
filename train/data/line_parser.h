// The format of a click log's lines: turns a line into a sample, or tells why it is none.
#ifndef EMBANK_TRAIN_DATA_LINE_PARSER_H_
#define EMBANK_TRAIN_DATA_LINE_PARSER_H_

#include <string_view>

#include "train/data/click_batch.h"

namespace embank {

// Why a line is broken.
enum class LineDefect {
  kNone,
  kTooFewColumns,
  kTooManyColumns,
  kBadLabel,
  kBadNumber,
  kBadId,
  kUnknownId,
  kTooManyIds,
  kOpenQuote,
  kFileEnds,
  kTooLong,
};

// Returns a phrase about a line: "it has too few columns".
const char* DefectText(LineDefect defect);

class LineParser {
 public:
  virtual ~LineParser() = default;

  // Returns the features that each row has.
  virtual const ClickColumns& columns() const = 0;

  // Turns a line, any bytes without a newline, into a row. If the line is broken, the row is of no
  // use. Thread-safe.
  virtual LineDefect Parse(std::string_view line, ClickRow* row) const = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_LINE_PARSER_H_
