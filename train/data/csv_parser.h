// CSV with the columns that a column file names. A field in quotation marks may have separators and
// doubled quotation marks inside; a newline ends it, and the line is then broken.
#ifndef EMBANK_TRAIN_DATA_CSV_PARSER_H_
#define EMBANK_TRAIN_DATA_CSV_PARSER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status_or.h"
#include "train/data/column_file.h"
#include "train/data/line_parser.h"

namespace embank {

// Missing dense numbers are 0, missing ids are kMissingId, and missing bags have no id.
class CsvParser final : public LineParser {
 public:
  // Makes a parser for a file whose first line is `first_line`: its header, or a sample.
  // NOT_FOUND: a column of the column file is not in the file; the message names those that are.
  // INVALID_ARGUMENT: the header is broken, or has a column twice that is needed.
  static StatusOr<std::unique_ptr<CsvParser>> Create(const ColumnFile& columns,
                                                     std::string_view first_line,
                                                     bool has_labels = true);

  const ClickColumns& columns() const override { return columns_; }
  LineDefect Parse(std::string_view line, ClickRow* row, BadField* bad) const override;

 private:
  // A column of the file: what it is, and its number in the column file.
  enum class Use { kIgnored, kLabel, kDense, kId, kBag };
  struct Column {
    Use use = Use::kIgnored;
    uint32_t number = 0;
    uint32_t feature = 0;  // among the dense features, or the bags
  };

  CsvParser(const ColumnFile& columns, std::vector<std::string> names, bool has_labels);
  // A column that is not there is told with a remedy, which may be empty.
  Status Place(const std::string& remedy);
  Status PlaceOne(const std::string& name, Column column, const std::string& remedy);
  LineDefect Take(const Column& column, std::string_view field, ClickRow* row,
                  std::string_view* wrong) const;
  LineDefect TakeLabel(std::string_view field, ClickRow* row) const;
  LineDefect TakeDense(const Column& column, std::string_view field, ClickRow* row) const;
  LineDefect BadNumber(std::string_view field, LineDefect otherwise) const;

  const ColumnFile file_;
  const std::vector<std::string> names_;  // of the columns of the file
  const bool has_labels_;
  ClickColumns columns_;
  std::vector<Column> uses_;
  std::vector<RowBag> bags_;  // the empty bags of a row
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CSV_PARSER_H_
