// Lines of libsvm, "label index:value ...", and of libffm, "label field:index:value ...". A label
// is 1, or 0 or -1; text behind a # is a remark.
#ifndef EMBANK_TRAIN_DATA_SPARSE_PARSER_H_
#define EMBANK_TRAIN_DATA_SPARSE_PARSER_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "train/data/column_file.h"
#include "train/data/line_parser.h"

namespace embank {

// Each feature is a bag of indexes with their values as weights: the one of libsvm is called
// "features", and those of libffm as the column file says. There are no dense features.
class SparseParser final : public LineParser {
 public:
  // A column file of format libsvm or libffm. Without labels a line may have one or not.
  SparseParser(const ColumnFile& columns, bool has_labels);

  const ClickColumns& columns() const override { return columns_; }
  LineDefect Parse(std::string_view line, ClickRow* row, BadField* bad) const override;

 private:
  LineDefect TakeLabel(std::string_view word, ClickRow* row) const;
  LineDefect TakeItem(std::string_view word, ClickRow* row) const;

  const bool has_labels_;
  const bool has_fields_;
  ClickColumns columns_;
  std::unordered_map<uint64_t, size_t> features_;  // by the numbers of their fields
  std::vector<RowBag> bags_;                       // the empty bags of a row
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_SPARSE_PARSER_H_
