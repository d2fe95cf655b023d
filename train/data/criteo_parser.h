// Criteo's format: tab-separated, no header. A label 0 or 1, then integers, which may be empty or
// negative, then ids of eight hexadecimal digits, which may be empty.
#ifndef EMBANK_TRAIN_DATA_CRITEO_PARSER_H_
#define EMBANK_TRAIN_DATA_CRITEO_PARSER_H_

#include <cstdint>
#include <string_view>

#include "train/data/line_parser.h"
#include "train/data/log_rules.h"

namespace embank {

// The label stands in front of the integers.
enum class CriteoLabel {
  kRead,
  kIgnored,
  kNone,  // the line begins with an integer
};

// Integers become log(max(x, 0) + 1), and 0 where they are missing. Missing ids are kMissingId. By
// the second rules missing ones have the words of field_value.h, too, and integers may be "12.0".
class CriteoParser final : public LineParser {
 public:
  // Both of Criteo's data sets have 13 integers and 26 ids; generated logs may have other numbers.
  explicit CriteoParser(uint32_t integers = 13, uint32_t ids = 26, LogRules rules = kNewestRules,
                        CriteoLabel label = CriteoLabel::kRead);

  // Returns what the lines of a log that needs no labels begin with, by its first line.
  static CriteoLabel LabelOf(std::string_view first_line, uint32_t integers = 13,
                             uint32_t ids = 26);

  const ClickColumns& columns() const override { return columns_; }
  LineDefect Parse(std::string_view line, ClickRow* row, BadField* bad) const override;

 private:
  const LogRules rules_;
  const CriteoLabel label_;
  ClickColumns columns_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CRITEO_PARSER_H_
