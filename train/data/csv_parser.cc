#include "train/data/csv_parser.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/nearest_word.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/data/broken_lines.h"
#include "train/data/field_value.h"
#include "train/data/id_reader.h"
#include "train/data/log_value.h"

namespace embank {
namespace {

// The fields of a line, one after the other.
class Fields {
 public:
  Fields(std::string_view line, char separator) : rest_(line), separator_(separator) {}

  // Gets the next field, which is valid until the next call; false: there is none.
  bool Next(std::string_view* field) {
    if (is_done_) return false;
    if (rest_.starts_with('"')) return NextQuoted(field);
    const size_t end = std::min(rest_.find(separator_), rest_.size());
    *field = rest_.substr(0, end);
    SkipTo(end);
    return true;
  }

  // Whether a field had no second quotation mark, or something behind it.
  bool is_broken() const { return is_broken_; }

 private:
  bool NextQuoted(std::string_view* field) {
    bool has_marks = false;
    size_t i = 1;
    for (; i < rest_.size(); ++i) {
      if (rest_[i] != '"') continue;
      if (!rest_.substr(i + 1).starts_with('"')) break;
      has_marks = true;
      ++i;
    }
    *field = rest_.substr(1, i - 1);
    ++i;  // behind the second quotation mark
    is_broken_ = i > rest_.size() || (i < rest_.size() && rest_[i] != separator_);
    if (is_broken_) return false;
    if (has_marks) *field = WithoutDoubles(*field);
    SkipTo(i);
    return true;
  }

  // Returns the text with one of each two quotation marks.
  std::string_view WithoutDoubles(std::string_view text) {
    unquoted_.clear();
    for (size_t i = 0; i < text.size(); ++i) {
      unquoted_.push_back(text[i]);
      if (text[i] == '"') ++i;
    }
    return unquoted_;
  }

  // Goes on behind the separator at `end`.
  void SkipTo(size_t end) {
    is_done_ = end >= rest_.size();
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
  }

  std::string_view rest_;
  const char separator_;
  std::string unquoted_;
  bool is_done_ = false;
  bool is_broken_ = false;
};

constexpr size_t kShownNames = 20;

constexpr std::string_view kJson =
    "; lines of JSON are not read: write them as CSV (in Python: "
    "pandas.read_json(path, lines=True).to_csv('log.csv', index=False))";

// A remedy for a first line that is not of CSV, or seems to have another separator; empty: there is
// none.
std::string RemedyOf(std::string_view first_line, size_t columns) {
  struct Separator {
    std::string_view text, remedy;
  };
  constexpr Separator kPossible[] = {
      {"\t", "the column file may lack 'separator tab'"},
      {";", "the column file may lack 'separator semicolon'"},
      {"::", "the separator '::' is not read: write tabs in its place (sed 's/::/\\t/g')"},
      {"\x01", "Hive's separator is not read: write tabs in its place (tr '\\001' '\\t')"},
      {",", "the column file may lack 'separator comma'"},
      {"|", "the separator '|' is not read: write tabs in its place (tr '|' '\\t')"},
      {" ", "the column file may lack 'separator space'"}};
  if (first_line.starts_with('{') || first_line.starts_with("[{")) return std::string(kJson);
  if (first_line.empty()) return "; the first line is blank: remove it";
  if (first_line.find('\0') != std::string_view::npos) {
    return "; the file is no text: write it as CSV in UTF-8";
  }
  if (columns != 1) return "";
  for (const auto& [separator, remedy] : kPossible) {
    if (first_line.find(separator) != std::string_view::npos) return StrCat("; ", remedy);
  }
  return "";
}

bool HasDigitsAlone(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// `remedy` is one of RemedyOf, `otherwise` one that is told where there is no better one.
Status NoColumn(const std::string& name, const std::vector<std::string>& names, bool has_header,
                const std::string& remedy, const char* otherwise) {
  std::string text = StrCat("the file has no column '", name, "'");
  if (!has_header) {
    StrAppend(&text, ": its first line has columns 1 to ", names.size());
    if (!remedy.empty()) return NotFoundError(text + remedy);
    if (HasDigitsAlone(name)) return NotFoundError(text + otherwise);
    return NotFoundError(text + "; with 'header no' columns are named by their numbers");
  }
  const std::string nearest = NearestWord(name, names);
  if (!nearest.empty()) StrAppend(&text, ", but '", nearest, "'");
  text += ": it has ";
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ", ShownText(names[i], '\''));
  }
  if (names.size() > kShownNames) StrAppend(&text, " and ", names.size() - kShownNames, " more");
  if (!remedy.empty()) return NotFoundError(text + remedy);
  if (HasDigitsAlone(name)) return NotFoundError(text + "; the column file may lack 'header no'");
  return NotFoundError(nearest.empty() ? text + otherwise : text);
}

// A label as data frames and SQL engines write it.
std::optional<double> TruthOf(std::string_view field) {
  if (field == "true" || field == "True" || field == "TRUE") return 1.0;
  if (field == "false" || field == "False" || field == "FALSE") return 0.0;
  return std::nullopt;
}

}  // namespace

StatusOr<std::unique_ptr<CsvParser>> CsvParser::Create(const ColumnFile& columns,
                                                       std::string_view first_line,
                                                       bool has_labels) {
  std::vector<std::string> names;
  Fields fields(first_line, columns.separator);
  for (std::string_view field; fields.Next(&field);) {
    names.push_back(columns.has_header ? std::string(field) : StrCat(names.size() + 1));
  }
  const std::string remedy = RemedyOf(first_line, names.size());
  if (fields.is_broken()) {
    return InvalidArgumentError(
        StrCat("the first line has an open quotation mark: ", ShownText(first_line), remedy));
  }
  if (has_labels && columns.label.empty()) {
    return InvalidArgumentError("column file: there is no label; add a statement label COLUMN");
  }
  std::unique_ptr<CsvParser> parser(new CsvParser(columns, std::move(names), has_labels));
  EMBANK_RETURN_IF_ERROR(parser->Place(remedy));
  return parser;
}

CsvParser::CsvParser(const ColumnFile& columns, std::vector<std::string> names, bool has_labels)
    : file_(columns), names_(std::move(names)), has_labels_(has_labels), uses_(names_.size()) {}

Status CsvParser::PlaceOne(const std::string& name, Column column, const std::string& remedy) {
  const auto place = std::ranges::find(names_, name);
  if (place == names_.end()) {
    return NoColumn(name, names_, file_.has_header, remedy,
                    column.use == Use::kLabel ? "; a prediction alone needs no labels" : "");
  }
  Column& placed = uses_[static_cast<size_t>(place - names_.begin())];
  if (placed.use != Use::kIgnored) {
    return InvalidArgumentError(
        StrCat("the column file names column '", name, "' twice; remove one of its statements"));
  }
  if (std::find(place + 1, names_.end(), name) != names_.end()) {
    return InvalidArgumentError(
        StrCat("the header has column '", name, "' twice; give one of them another name"));
  }
  placed = column;
  return OkStatus();
}

Status CsvParser::Place(const std::string& remedy) {
  if (has_labels_) EMBANK_RETURN_IF_ERROR(PlaceOne(file_.label, {.use = Use::kLabel}, remedy));
  for (uint32_t i = 0; i < file_.dense.size(); ++i) {
    const DenseColumn& dense = file_.dense[i];
    const auto feature = static_cast<uint32_t>(columns_.dense.size());
    EMBANK_RETURN_IF_ERROR(
        PlaceOne(dense.name, {.use = Use::kDense, .number = i, .feature = feature}, remedy));
    columns_.dense.push_back(dense.name);
    if (dense.has_flag) columns_.dense.push_back(dense.name + ".missing");
  }
  for (uint32_t i = 0; i < file_.ids.size(); ++i) {
    const IdColumn& id = file_.ids[i];
    const auto bag = static_cast<uint32_t>(bags_.size());
    EMBANK_RETURN_IF_ERROR(PlaceOne(
        id.name, {.use = id.is_bag ? Use::kBag : Use::kId, .number = i, .feature = bag}, remedy));
    if (id.is_bag) bags_.push_back({.feature = i});
    columns_.tables.push_back(id.table.empty() ? id.name : id.table);
    columns_.ids.push_back(id.name);
  }
  return OkStatus();
}

LineDefect CsvParser::Parse(std::string_view line, ClickRow* row, BadField* bad) const {
  row->dense.resize(columns_.dense.size());
  row->ids.resize(columns_.ids.size());
  if (row->bags.size() != bags_.size()) row->bags = bags_;
  if (!has_labels_) row->label.reset();
  Fields fields(line, file_.separator);
  std::string_view field;
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (!fields.Next(&field)) {
      return bad->Set(fields.is_broken() ? LineDefect::kOpenQuote : LineDefect::kTooFewColumns, "",
                      line);
    }
    std::string_view wrong = field;
    const LineDefect defect = Take(uses_[i], field, row, &wrong);
    if (defect != LineDefect::kNone) return bad->Set(defect, names_[i], wrong);
  }
  if (fields.Next(&field)) return bad->Set(LineDefect::kTooManyColumns, "", line);
  return fields.is_broken() ? bad->Set(LineDefect::kOpenQuote, "", line) : LineDefect::kNone;
}

LineDefect CsvParser::Take(const Column& column, std::string_view field, ClickRow* row,
                           std::string_view* wrong) const {
  switch (column.use) {
    case Use::kIgnored:
      return LineDefect::kNone;
    case Use::kLabel:
      return TakeLabel(field, row);
    case Use::kDense:
      return TakeDense(column, field, row);
    case Use::kBag:
      return IdReader(file_.ids[column.number], file_.rules)
          .ReadBag(field, &row->bags[column.feature], wrong);
    case Use::kId:
      return IdReader(file_.ids[column.number], file_.rules)
          .ReadId(field, &row->ids[column.number]);
  }
  return LineDefect::kNone;
}

// A field that is no number. A comma is that of a decimal where it does not separate fields.
LineDefect CsvParser::BadNumber(std::string_view field, LineDefect otherwise) const {
  return file_.separator != ',' && HasDecimalComma(field) ? LineDefect::kDecimalComma : otherwise;
}

LineDefect CsvParser::TakeDense(const Column& column, std::string_view field, ClickRow* row) const {
  const DenseColumn& dense = file_.dense[column.number];
  std::optional<double> number = ReadNumber(field, file_.rules);
  const bool is_missing = !number && IsMissingNumber(field, file_.rules);
  if (is_missing) number = 0.0;
  if (!number) return BadNumber(field, LineDefect::kBadNumber);
  float& value = row->dense[column.feature];
  value = dense.is_log ? LogOfNumber(*number) : static_cast<float>(*number);
  if (dense.has_flag) row->dense[column.feature + 1] = is_missing ? 1.0f : 0.0f;
  return std::isfinite(value) ? LineDefect::kNone : LineDefect::kBadNumber;
}

LineDefect CsvParser::TakeLabel(std::string_view field, ClickRow* row) const {
  std::optional<double> number = ReadNumber(field, file_.rules);
  if (!number && file_.rules != LogRules::kFirst && !file_.label_at_least) number = TruthOf(field);
  if (!number) return BadNumber(field, LineDefect::kBadLabel);
  if (!file_.label_at_least.has_value() && *number != 0.0 && *number != 1.0) {
    return LineDefect::kBadLabel;
  }
  row->label = *number >= file_.label_at_least.value_or(1.0) ? 1.0f : 0.0f;
  return LineDefect::kNone;
}

}  // namespace embank
