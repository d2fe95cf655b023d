// Criteo's format: tab-separated, no header. A label 0 or 1, then integers, which may be empty or
// negative, then ids of eight hexadecimal digits, which may be empty.
#ifndef EMBANK_TRAIN_DATA_CRITEO_PARSER_H_
#define EMBANK_TRAIN_DATA_CRITEO_PARSER_H_

#include <cstdint>
#include <string_view>

#include "train/data/line_parser.h"

namespace embank {

// Integers become log(max(x, 0) + 1), and 0 where they are empty. Empty ids are kMissingId.
class CriteoParser final : public LineParser {
 public:
  // Both of Criteo's data sets have 13 integers and 26 ids; generated logs may have other numbers.
  explicit CriteoParser(uint32_t integers = 13, uint32_t ids = 26);

  const ClickColumns& columns() const override { return columns_; }
  LineDefect Parse(std::string_view line, ClickRow* row) const override;

 private:
  ClickColumns columns_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CRITEO_PARSER_H_
