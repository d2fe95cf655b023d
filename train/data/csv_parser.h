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

// Empty dense fields are 0, empty ids are kMissingId, and empty bags have no id.
class CsvParser final : public LineParser {
 public:
  // More ids in a bag break its line. 2^20 samples * 4,095 ids < 2^32, the range of an offset.
  static constexpr size_t kBagIdsMax = 4095;

  // Makes a parser for a file whose first line is `first_line`: its header, or a sample.
  // NOT_FOUND: a column of the column file is not in the file.
  // INVALID_ARGUMENT: the header is broken, or has a column twice that is needed.
  static StatusOr<std::unique_ptr<CsvParser>> Create(const ColumnFile& columns,
                                                     std::string_view first_line);

  const ClickColumns& columns() const override { return columns_; }
  LineDefect Parse(std::string_view line, ClickRow* row) const override;

 private:
  // A column of the file: what it is, and its number among the dense features or ids.
  enum class Use { kIgnored, kLabel, kDense, kLogDense, kId, kBag };
  struct Column {
    Use use = Use::kIgnored;
    uint32_t feature = 0;
    uint32_t bag = 0;  // its number among the bags
  };

  CsvParser(const ColumnFile& columns, size_t count);
  Status Place(const ColumnFile& columns, const std::vector<std::string>& names);
  LineDefect Take(const Column& column, std::string_view field, ClickRow* row) const;
  LineDefect TakeLabel(std::string_view field, ClickRow* row) const;
  LineDefect TakeBag(std::string_view field, RowBag* bag) const;

  const ColumnFile file_;
  ClickColumns columns_;
  std::vector<Column> uses_;
  std::vector<RowBag> bags_;  // the empty bags of a row
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CSV_PARSER_H_
