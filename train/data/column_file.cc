#include "train/data/column_file.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/exact_text.h"
#include "base/status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

using Words = std::vector<std::string_view>;

Words SplitWords(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  Words words;
  size_t begin = 0;
  while ((begin = line.find_first_not_of(kBlanks, begin)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

Status NotUnderstood(std::string_view word, std::string_view expected) {
  return InvalidArgumentError(StrCat("'", word, "' is not understood: ", expected));
}

const char* NameOfSeparator(char separator) {
  switch (separator) {
    case ',':
      return "comma";
    case '\t':
      return "tab";
    case ';':
      return "semicolon";
    default:
      return "space";
  }
}

const char* NameOfFormat(IdFormat format) {
  if (format == IdFormat::kDecimal) return "decimal";
  return format == IdFormat::kHex ? "hex" : "text";
}

Status ReadSeparator(const Words& words, ColumnFile* columns) {
  constexpr std::string_view kExpected = "separator comma, tab, semicolon or space";
  if (words.size() != 2) return NotUnderstood(words[0], kExpected);
  if (words[1] == "comma") {
    columns->separator = ',';
  } else if (words[1] == "tab") {
    columns->separator = '\t';
  } else if (words[1] == "semicolon") {
    columns->separator = ';';
  } else if (words[1] == "space") {
    columns->separator = ' ';
  } else {
    return NotUnderstood(words[1], kExpected);
  }
  return OkStatus();
}

Status ReadHeader(const Words& words, ColumnFile* columns) {
  if (words.size() != 2 || (words[1] != "yes" && words[1] != "no")) {
    return NotUnderstood(words.back(), "header yes, or header no");
  }
  columns->has_header = words[1] == "yes";
  return OkStatus();
}

Status ReadLabel(const Words& words, ColumnFile* columns) {
  if (!columns->label.empty()) return InvalidArgumentError("there are two labels");
  if (words.size() != 2 && (words.size() != 4 || words[2] != "at-least")) {
    return NotUnderstood(words.back(), "label COLUMN, or label COLUMN at-least NUMBER");
  }
  columns->label = words[1];
  if (words.size() == 2) return OkStatus();
  double bound = 0.0;
  const char* const end = words[3].data() + words[3].size();
  const std::from_chars_result result = std::from_chars(words[3].data(), end, bound);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(bound)) {
    return NotUnderstood(words[3], "a number");
  }
  columns->label_at_least = bound;
  return OkStatus();
}

Status ReadDense(const Words& words, ColumnFile* columns) {
  if (words.size() != 2 && (words.size() != 3 || words[2] != "log")) {
    return NotUnderstood(words.back(), "dense COLUMN, or dense COLUMN log");
  }
  columns->dense.push_back({std::string(words[1]), words.size() == 3});
  return OkStatus();
}

Status ReadId(const Words& words, ColumnFile* columns) {
  constexpr std::string_view kExpected =
      "id or bag COLUMN decimal, hex or text, or with below NUMBER";
  const bool is_bounded = words.size() == 5 && words[3] == "below";
  if (words.size() != 3 && !is_bounded) return NotUnderstood(words.back(), kExpected);
  IdFormat format = IdFormat::kDecimal;
  if (words[2] == "hex") {
    format = IdFormat::kHex;
  } else if (words[2] == "text") {
    format = IdFormat::kText;
  } else if (words[2] != "decimal") {
    return NotUnderstood(words[2], kExpected);
  }
  IdColumn& column = columns->ids.emplace_back(
      IdColumn{.name = std::string(words[1]), .format = format, .is_bag = words[0] == "bag"});
  if (!is_bounded) return OkStatus();
  if (format == IdFormat::kText) return NotUnderstood(words[3], "text has no vocabulary");
  uint64_t bound = 0;
  const char* const end = words[4].data() + words[4].size();
  const std::from_chars_result result = std::from_chars(words[4].data(), end, bound);
  if (result.ec != std::errc() || result.ptr != end || bound == 0) {
    return NotUnderstood(words[4], "a whole number above 0, in decimal digits");
  }
  column.vocabulary = bound;
  return OkStatus();
}

Status ReadStatement(const Words& words, ColumnFile* columns) {
  if (words[0] == "separator") return ReadSeparator(words, columns);
  if (words[0] == "header") return ReadHeader(words, columns);
  if (words[0] == "label") return ReadLabel(words, columns);
  if (words[0] == "dense") return ReadDense(words, columns);
  if (words[0] == "id" || words[0] == "bag") return ReadId(words, columns);
  return NotUnderstood(words[0], "separator, header, label, dense, id or bag");
}

}  // namespace

StatusOr<ColumnFile> ParseColumnFile(std::string_view text) {
  ColumnFile columns;
  uint64_t number = 1;
  for (; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const Words words = SplitWords(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty() || words[0].starts_with('#')) continue;
    const Status status = ReadStatement(words, &columns);
    if (!status.ok()) {
      return InvalidArgumentError(StrCat("column file, line ", number, ": ", status.message()));
    }
  }
  if (columns.label.empty()) return InvalidArgumentError("column file: there is no label");
  return columns;
}

std::string TextOf(const ColumnFile& columns) {
  std::string text = StrCat("separator ", NameOfSeparator(columns.separator), "\nheader ",
                            columns.has_header ? "yes" : "no", "\nlabel ", columns.label);
  if (columns.label_at_least) {
    StrAppend(&text, " at-least ", ExactText(*columns.label_at_least));
  }
  text += '\n';
  for (const DenseColumn& dense : columns.dense) {
    StrAppend(&text, "dense ", dense.name, dense.is_log ? " log\n" : "\n");
  }
  for (const IdColumn& id : columns.ids) {
    StrAppend(&text, id.is_bag ? "bag " : "id ", id.name, " ", NameOfFormat(id.format));
    if (id.vocabulary) StrAppend(&text, " below ", *id.vocabulary);
    text += '\n';
  }
  return text;
}

}  // namespace embank
