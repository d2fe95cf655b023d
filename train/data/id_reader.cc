#include "train/data/id_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "base/hash.h"
#include "train/data/field_value.h"

namespace embank {
namespace {

void SkipBlanks(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(" \t"), text->size()));
}

// Whether a text may be an item of a list without marks. A list with a blank inside is one of
// another form, as numpy writes it, and would be one id; the words stand for no text in Python and
// JSON.
bool IsBareItem(std::string_view text) {
  constexpr std::string_view kNone[] = {"None", "null", "nan", "NaN"};
  return !text.empty() && text.find_first_of(" \t") == std::string_view::npos &&
         std::ranges::find(kNone, text) == std::end(kNone);
}

// Takes an item of a list from the front of its text, without the comma behind it. A quoted one is
// copied to *item without marks. False: it is none.
bool TakeListItem(std::string_view* text, std::string* item) {
  item->clear();
  const char mark = text->front();
  if (mark != '\'' && mark != '"') {
    const size_t end = std::min(text->find(','), text->size());
    const std::string_view bare = text->substr(0, end);
    *item = bare.substr(0, bare.find_last_not_of(" \t") + 1);
    text->remove_prefix(end);
    return IsBareItem(*item);
  }
  constexpr std::string_view kEscaped = "\\'\"/";  // each stands for itself
  size_t i = 1;
  for (; i < text->size() && (*text)[i] != mark; ++i) {
    if ((*text)[i] == '\\') {
      ++i;
      if (i == text->size() || kEscaped.find((*text)[i]) == std::string_view::npos) return false;
    }
    item->push_back((*text)[i]);
  }
  if (i >= text->size()) return false;
  text->remove_prefix(i + 1);
  SkipBlanks(text);
  return text->empty() || text->front() == ',';
}

}  // namespace

bool IdReader::IsMissing(std::string_view field) const {
  if (field.empty()) return true;
  if (std::ranges::find(column_.missing, field) != column_.missing.end()) return true;
  return column_.format != IdFormat::kText && IsMissingNumber(field, rules_);
}

LineDefect IdReader::Convert(std::string_view text, uint64_t* id) const {
  if (text.empty()) return LineDefect::kBadId;
  if (column_.format == IdFormat::kText) {
    *id = TableHash(text);
    return LineDefect::kNone;
  }
  bool is_negative = false;
  if (column_.format == IdFormat::kHex) {
    const char* const end = text.data() + text.size();
    const std::from_chars_result result = std::from_chars(text.data(), end, *id, 16);
    if (result.ec != std::errc() || result.ptr != end) return LineDefect::kBadId;
  } else {
    const std::optional<WholeNumber> number = ReadWholeNumber(text, rules_);
    if (!number) return LineDefect::kBadId;
    *id = number->bits;
    is_negative = number->is_negative;
  }
  const bool is_unknown = column_.vocabulary && (is_negative || *id >= *column_.vocabulary);
  return is_unknown ? LineDefect::kUnknownId : LineDefect::kNone;
}

LineDefect IdReader::ReadId(std::string_view field, uint64_t* id) const {
  *id = kMissingId;
  return IsMissing(field) ? LineDefect::kNone : Convert(field, id);
}

LineDefect IdReader::AddItem(std::string_view item, RowBag* bag) const {
  if (bag->ids.size() == kBagIdsMax) return LineDefect::kTooManyIds;
  if (column_.weights) {
    const size_t end = item.rfind(*column_.weights);
    if (end == std::string_view::npos) return LineDefect::kBadBag;
    const std::optional<double> weight = ReadNumber(item.substr(end + 1), rules_);
    const float rounded = static_cast<float>(weight.value_or(NAN));
    if (!std::isfinite(rounded)) return LineDefect::kBadWeight;
    bag->weights.push_back(rounded);
    item = item.substr(0, end);
  }
  return Convert(item, &bag->ids.emplace_back());
}

LineDefect IdReader::ReadBag(std::string_view field, RowBag* bag, std::string_view* wrong) const {
  bag->ids.clear();
  bag->weights.clear();
  if (IsMissing(field)) return LineDefect::kNone;
  const bool has_brackets = field.starts_with('[') && field.ends_with(']');
  // A list that is not declared would be one id.
  if (column_.is_list || (has_brackets && rules_ != LogRules::kFirst)) {
    if (!column_.is_list || !has_brackets) return LineDefect::kBadBag;
    return ReadList(field.substr(1, field.size() - 2), bag, wrong);
  }
  for (bool is_last = false; !is_last;) {
    const size_t end = std::min(field.find(column_.separator), field.size());
    *wrong = field.substr(0, end);
    is_last = end == field.size();
    if (!is_last) field.remove_prefix(end + 1);
    const LineDefect defect = AddItem(*wrong, bag);
    if (defect != LineDefect::kNone) return defect;
  }
  return LineDefect::kNone;
}

LineDefect IdReader::ReadList(std::string_view field, RowBag* bag, std::string_view* wrong) const {
  std::string item;
  SkipBlanks(&field);
  while (!field.empty()) {
    *wrong = field;
    if (!TakeListItem(&field, &item)) return LineDefect::kBadBag;
    const LineDefect defect = AddItem(item, bag);
    if (defect != LineDefect::kNone) return defect;
    if (field.empty()) break;
    field.remove_prefix(1);  // the comma
    SkipBlanks(&field);
    if (field.empty()) return LineDefect::kBadBag;
  }
  return LineDefect::kNone;
}

}  // namespace embank
