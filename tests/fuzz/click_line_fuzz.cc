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
#include "train/data/sparse_parser.h"

namespace embank::test {
namespace {

void ParseOne(const LineParser& parser, std::string_view line) {
  ClickRow row;
  BadField bad;
  if (parser.Parse(line, &row, &bad) != LineDefect::kNone) {
    EMBANK_CHECK(bad.text.size() <= BadField::kTextBytesMax);
    return;
  }
  EMBANK_CHECK(row.label == 0.0f || row.label == 1.0f || !row.label);
  EMBANK_CHECK(row.dense.size() == parser.columns().dense.size());
  EMBANK_CHECK(row.ids.size() == parser.columns().ids.size());
  for (const float value : row.dense) EMBANK_CHECK(std::isfinite(value));
  for (const RowBag& bag : row.bags) {
    EMBANK_CHECK(bag.feature < row.ids.size());
    EMBANK_CHECK(bag.weights.empty() || bag.weights.size() == bag.ids.size());
    for (const float weight : bag.weights) EMBANK_CHECK(std::isfinite(weight));
  }
}

// The same with each form of a bag, and by all rules.
void ParseBags(std::string_view line) {
  for (const LogRules rules : {LogRules::kFirst, LogRules::kSecond}) {
    ColumnFile columns = {.rules = rules, .has_header = false, .label = "1"};
    columns.dense = {{"2", false, true}};
    columns.ids = {{.name = "3", .is_bag = true, .weights = ':'},
                   {.name = "4", .format = IdFormat::kText, .is_bag = true, .is_list = true},
                   {.name = "5", .format = IdFormat::kText, .missing = {"NA"}}};
    ParseOne(**CsvParser::Create(columns, "1,2,3,4,5"), line);
  }
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
  ParseBags(line);
  for (const CriteoLabel label : {CriteoLabel::kIgnored, CriteoLabel::kNone}) {
    ParseOne(CriteoParser(2, 3, LogRules::kFirst, label), line);
  }
  ParseOne(SparseParser({.format = LogFormat::kLibsvm}, true), line);
  ParseOne(SparseParser({.format = LogFormat::kLibffm, .fields = {{1, "a"}, {2, "b"}}}, false),
           line);
  // Any bytes as a column file, and as a header.
  if (const StatusOr<ColumnFile> parsed = ParseColumnFile(text); parsed.ok()) {
    CsvParser::Create(*parsed, line).status().IgnoreError();
    // The text of the first rules names none.
    ColumnFile again = *ParseColumnFile(TextOf(*parsed));
    again.rules = parsed->rules;
    EMBANK_CHECK(TextOf(again) == TextOf(*parsed));
  }
}

}  // namespace embank::test
