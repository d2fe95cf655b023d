#include "train/data/csv_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/hash.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
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
    unquoted_.clear();
    size_t i = 1;
    for (; i < rest_.size(); ++i) {
      if (rest_[i] == '"' && !rest_.substr(i + 1).starts_with('"')) break;
      if (rest_[i] == '"') ++i;
      unquoted_.push_back(rest_[i]);
    }
    ++i;  // behind the second quotation mark
    is_broken_ = i > rest_.size() || (i < rest_.size() && rest_[i] != separator_);
    if (is_broken_) return false;
    *field = unquoted_;
    SkipTo(i);
    return true;
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

std::optional<double> ParseNumber(std::string_view field) {
  double number = 0.0;
  const char* const end = field.data() + field.size();
  const std::from_chars_result result = std::from_chars(field.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

LineDefect ParseId(const IdColumn& column, std::string_view text, uint64_t* id) {
  if (column.format == IdFormat::kText) {
    *id = TableHash(text);
    return LineDefect::kNone;
  }
  const int base = column.format == IdFormat::kHex ? 16 : 10;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *id, base);
  if (result.ec != std::errc() || result.ptr != end) return LineDefect::kBadId;
  const bool is_unknown = column.vocabulary && *id >= *column.vocabulary;
  return is_unknown ? LineDefect::kUnknownId : LineDefect::kNone;
}

}  // namespace

StatusOr<std::unique_ptr<CsvParser>> CsvParser::Create(const ColumnFile& columns,
                                                       std::string_view first_line) {
  std::vector<std::string> names;
  Fields fields(first_line, columns.separator);
  for (std::string_view field; fields.Next(&field);) {
    names.push_back(columns.has_header ? std::string(field) : StrCat(names.size() + 1));
  }
  if (fields.is_broken()) return InvalidArgumentError("the first line has an open quotation mark");
  std::unique_ptr<CsvParser> parser(new CsvParser(columns, names.size()));
  EMBANK_RETURN_IF_ERROR(parser->Place(columns, names));
  return parser;
}

CsvParser::CsvParser(const ColumnFile& columns, size_t count) : file_(columns), uses_(count) {}

Status CsvParser::Place(const ColumnFile& columns, const std::vector<std::string>& names) {
  auto PlaceOne = [&](const std::string& name, Use use, size_t feature) {
    const auto place = std::ranges::find(names, name);
    if (place == names.end()) {
      return NotFoundError(StrCat("the file has no column '", name, "'"));
    }
    Column& column = uses_[static_cast<size_t>(place - names.begin())];
    if (column.use != Use::kIgnored || std::find(place + 1, names.end(), name) != names.end()) {
      return InvalidArgumentError(StrCat("column '", name, "' is there or named twice"));
    }
    column = {use, static_cast<uint32_t>(feature), static_cast<uint32_t>(bags_.size())};
    return OkStatus();
  };
  EMBANK_RETURN_IF_ERROR(PlaceOne(columns.label, Use::kLabel, 0));
  for (const DenseColumn& dense : columns.dense) {
    EMBANK_RETURN_IF_ERROR(
        PlaceOne(dense.name, dense.is_log ? Use::kLogDense : Use::kDense, columns_.dense.size()));
    columns_.dense.push_back(dense.name);
  }
  for (const IdColumn& id : columns.ids) {
    const size_t feature = columns_.ids.size();
    EMBANK_RETURN_IF_ERROR(PlaceOne(id.name, id.is_bag ? Use::kBag : Use::kId, feature));
    if (id.is_bag) bags_.push_back({.feature = static_cast<uint32_t>(feature)});
    columns_.ids.push_back(id.name);
  }
  return OkStatus();
}

LineDefect CsvParser::Parse(std::string_view line, ClickRow* row) const {
  row->dense.resize(columns_.dense.size());
  row->ids.resize(columns_.ids.size());
  if (row->bags.size() != bags_.size()) row->bags = bags_;
  Fields fields(line, file_.separator);
  std::string_view field;
  for (const Column& column : uses_) {
    if (!fields.Next(&field)) {
      return fields.is_broken() ? LineDefect::kOpenQuote : LineDefect::kTooFewColumns;
    }
    const LineDefect defect = Take(column, field, row);
    if (defect != LineDefect::kNone) return defect;
  }
  if (fields.Next(&field)) return LineDefect::kTooManyColumns;
  return fields.is_broken() ? LineDefect::kOpenQuote : LineDefect::kNone;
}

LineDefect CsvParser::Take(const Column& column, std::string_view field, ClickRow* row) const {
  switch (column.use) {
    case Use::kIgnored:
      return LineDefect::kNone;
    case Use::kLabel:
      return TakeLabel(field, row);
    case Use::kDense:
    case Use::kLogDense: {
      const std::optional<double> number = field.empty() ? 0.0 : ParseNumber(field);
      if (!number.has_value()) return LineDefect::kBadNumber;
      row->dense[column.feature] =
          column.use == Use::kLogDense ? LogOfNumber(*number) : static_cast<float>(*number);
      return std::isfinite(row->dense[column.feature]) ? LineDefect::kNone : LineDefect::kBadNumber;
    }
    case Use::kBag:
      return TakeBag(field, &row->bags[column.bag]);
    case Use::kId:
      row->ids[column.feature] = kMissingId;
      if (field.empty()) return LineDefect::kNone;
      return ParseId(file_.ids[column.feature], field, &row->ids[column.feature]);
  }
  return LineDefect::kNone;
}

LineDefect CsvParser::TakeBag(std::string_view field, RowBag* bag) const {
  bag->ids.clear();
  for (bool is_last = field.empty(); !is_last;) {
    const size_t end = std::min(field.find(kBagSeparator), field.size());
    const std::string_view text = field.substr(0, end);
    is_last = end == field.size();
    if (!is_last) field.remove_prefix(end + 1);
    if (text.empty()) return LineDefect::kBadId;
    if (bag->ids.size() == kBagIdsMax) return LineDefect::kTooManyIds;
    const LineDefect defect = ParseId(file_.ids[bag->feature], text, &bag->ids.emplace_back());
    if (defect != LineDefect::kNone) return defect;
  }
  return LineDefect::kNone;
}

LineDefect CsvParser::TakeLabel(std::string_view field, ClickRow* row) const {
  const std::optional<double> number = ParseNumber(field);
  if (!number.has_value()) return LineDefect::kBadLabel;
  if (!file_.label_at_least.has_value() && *number != 0.0 && *number != 1.0) {
    return LineDefect::kBadLabel;
  }
  row->label = *number >= file_.label_at_least.value_or(1.0) ? 1.0f : 0.0f;
  return LineDefect::kNone;
}

}  // namespace embank
