#include "train/data/sparse_parser.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "train/data/field_value.h"
#include "train/data/id_reader.h"

namespace embank {
namespace {

// Takes a word from the front of a line; empty: there is none.
std::string_view TakeWord(std::string_view* line) {
  constexpr std::string_view kBlanks = " \t";
  line->remove_prefix(std::min(line->find_first_not_of(kBlanks), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlanks));
  line->remove_prefix(word.size());
  return word;
}

// Takes what is in front of a colon.
std::optional<std::string_view> TakePart(std::string_view* word) {
  const size_t end = word->find(':');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view part = word->substr(0, end);
  word->remove_prefix(end + 1);
  return part;
}

}  // namespace

SparseParser::SparseParser(const ColumnFile& columns, bool has_labels)
    : has_labels_(has_labels), has_fields_(columns.format == LogFormat::kLibffm) {
  if (!has_fields_) columns_.ids.push_back("features");
  for (const FieldColumn& field : columns.fields) {
    features_.emplace(field.number, columns_.ids.size());
    columns_.ids.push_back(field.name);
  }
  for (uint32_t i = 0; i < columns_.ids.size(); ++i) bags_.push_back({.feature = i});
}

LineDefect SparseParser::Parse(std::string_view line, ClickRow* row, BadField* bad) const {
  row->label.reset();
  row->ids.resize(columns_.ids.size());
  if (row->bags.size() != bags_.size()) row->bags = bags_;
  for (RowBag& bag : row->bags) {
    bag.ids.clear();
    bag.weights.clear();
  }
  line = line.substr(0, line.find('#'));
  std::string_view word = TakeWord(&line);
  const bool begins_with_item = word.find(':') != std::string_view::npos;
  if (has_labels_ || !begins_with_item) {
    const LineDefect defect = has_labels_ ? TakeLabel(word, row) : LineDefect::kNone;
    if (defect != LineDefect::kNone) return bad->Set(defect, "1", word);
    word = TakeWord(&line);
  }
  for (; !word.empty(); word = TakeWord(&line)) {
    const LineDefect defect = TakeItem(word, row);
    if (defect != LineDefect::kNone) return bad->Set(defect, "", word);
  }
  return LineDefect::kNone;
}

LineDefect SparseParser::TakeLabel(std::string_view word, ClickRow* row) const {
  const std::optional<double> label = ReadNumber(word, kNewestRules);
  if (label != 1.0 && label != 0.0 && label != -1.0) return LineDefect::kBadLabel;
  row->label = *label == 1.0 ? 1.0f : 0.0f;
  return LineDefect::kNone;
}

LineDefect SparseParser::TakeItem(std::string_view word, ClickRow* row) const {
  size_t feature = 0;
  if (has_fields_) {
    const std::optional<std::string_view> part = TakePart(&word);
    if (!part) return LineDefect::kBadBag;
    const std::optional<WholeNumber> field = ReadWholeNumber(*part, LogRules::kFirst);
    const auto declared = field ? features_.find(field->bits) : features_.end();
    if (declared == features_.end()) return LineDefect::kUnknownField;
    feature = declared->second;
  }
  const std::optional<std::string_view> part = TakePart(&word);
  if (!part) return LineDefect::kBadBag;
  const std::optional<WholeNumber> index = ReadWholeNumber(*part, LogRules::kFirst);
  if (!index) return LineDefect::kBadId;
  const std::optional<double> weight = ReadNumber(word, kNewestRules);
  const float rounded = static_cast<float>(weight.value_or(NAN));
  if (!std::isfinite(rounded)) return LineDefect::kBadWeight;
  RowBag& bag = row->bags[feature];
  if (bag.ids.size() == kBagIdsMax) return LineDefect::kTooManyIds;
  bag.ids.push_back(index->bits);
  bag.weights.push_back(rounded);
  return LineDefect::kNone;
}

}  // namespace embank
