// Any bytes as a line of a click log: a parser takes it or tells its defect, and what it takes is
// finite, with as many values as there are columns.
#include <cmath>
#include <memory>
#include <string>

#include "base/check.h"
#include "tests/fuzz/fuzz_input.h"
#include "train/data/column_file.h"
#include "train/data/criteo_parser.h"
#include "train/data/csv_parser.h"

namespace embank::test {
namespace {

void ParseOne(const LineParser& parser, std::string_view line) {
  ClickRow row;
  if (parser.Parse(line, &row) != LineDefect::kNone) return;
  EMBANK_CHECK(row.label == 0.0f || row.label == 1.0f);
  EMBANK_CHECK(row.dense.size() == parser.columns().dense.size());
  EMBANK_CHECK(row.ids.size() == parser.columns().ids.size());
  for (const float value : row.dense) EMBANK_CHECK(std::isfinite(value));
  for (const RowBag& bag : row.bags) EMBANK_CHECK(bag.feature < row.ids.size());
}

}  // namespace

void FuzzOne(std::span<const std::byte> bytes) {
  // A copy of exact size, so that a sanitizer sees a read behind its end.
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string line = text.substr(0, text.find('\n'));
  ParseOne(CriteoParser(2, 3), line);
  ColumnFile columns;
  columns.label = "1";
  columns.has_header = false;
  columns.dense = {{"2", false}, {"3", true}};
  columns.ids = {{.name = "4"},
                 {.name = "5", .format = IdFormat::kHex},
                 {.name = "6", .format = IdFormat::kText, .is_bag = true}};
  for (const char separator : {',', '\t'}) {
    columns.separator = separator;
    std::string first = "1,2,3,4,5,6";
    for (char& c : first) c = c == ',' ? separator : c;
    ParseOne(**CsvParser::Create(columns, first), line);
  }
  // Any bytes as a column file, and as a header.
  if (const StatusOr<ColumnFile> parsed = ParseColumnFile(text); parsed.ok()) {
    CsvParser::Create(*parsed, line).status().IgnoreError();
  }
}

}  // namespace embank::test
