#include "train/data/column_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/exact_text.h"
#include "base/status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kBlanks = " \t\r";
constexpr std::pair<std::string_view, char> kSeparators[] = {
    {"comma", ','}, {"tab", '\t'}, {"semicolon", ';'}, {"space", ' '}};
constexpr std::pair<std::string_view, LogFormat> kFormats[] = {
    {"csv", LogFormat::kCsv}, {"libsvm", LogFormat::kLibsvm}, {"libffm", LogFormat::kLibffm}};
constexpr std::pair<std::string_view, IdFormat> kIdFormats[] = {
    {"decimal", IdFormat::kDecimal}, {"hex", IdFormat::kHex}, {"text", IdFormat::kText}};

// The value that a word stands for.
template <typename Value, size_t n>
std::optional<Value> ValueOf(const std::pair<std::string_view, Value> (&words)[n],
                             std::string_view word) {
  for (const auto& [name, value] : words) {
    if (name == word) return value;
  }
  return std::nullopt;
}

template <typename Value, size_t n>
std::string WordOf(const std::pair<std::string_view, Value> (&words)[n], Value value,
                   std::string_view otherwise = "") {
  for (const auto& [name, of_name] : words) {
    if (of_name == value) return std::string(name);
  }
  return std::string(otherwise);
}

// Takes a word in quotation marks from the front of a line. False: a mark is missing.
bool TakeQuoted(std::string_view* line, std::string* word) {
  line->remove_prefix(1);
  while (!line->empty()) {
    const bool is_doubled = line->starts_with("\"\"");
    if (line->front() == '"' && !is_doubled) {
      line->remove_prefix(1);
      return line->empty() || kBlanks.find(line->front()) != std::string_view::npos;
    }
    word->push_back(line->front());
    line->remove_prefix(is_doubled ? 2 : 1);
  }
  return false;
}

StatusOr<Words> SplitWords(std::string_view line) {
  Words words;
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return words;
    std::string& word = words.emplace_back();
    if (line.front() == '"') {
      const std::string_view from = line;
      if (!TakeQuoted(&line, &word)) {
        return InvalidArgumentError(
            StrCat("a quotation mark is missing, or a blank behind one, in ", from));
      }
      continue;
    }
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    word = line.substr(0, end);
    line.remove_prefix(end);
  }
}

// A word that SplitWords takes as it is.
std::string QuotedName(std::string_view name) {
  if (!name.empty() && name.find_first_of(" \t\r\"") == std::string_view::npos) {
    return std::string(name);
  }
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

Status NotUnderstood(std::string_view word, std::string_view expected) {
  return InvalidArgumentError(StrCat("'", word, "' is not understood: ", expected));
}

template <typename Number>
std::optional<Number> NumberOf(std::string_view word) {
  Number number{};
  const char* const end = word.data() + word.size();
  const std::from_chars_result result = std::from_chars(word.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

Status ReadRules(const Words& words, ColumnFile* columns) {
  if (words.size() != 2 || (words[1] != "1" && words[1] != "2")) {
    return NotUnderstood(words.back(), "rules 1, or rules 2");
  }
  columns->rules = words[1] == "1" ? LogRules::kFirst : LogRules::kSecond;
  return OkStatus();
}

Status ReadFormat(const Words& words, ColumnFile* columns) {
  const std::optional<LogFormat> format = ValueOf(kFormats, words.back());
  if (words.size() != 2 || !format) {
    return NotUnderstood(words.back(), "format csv, libsvm or libffm");
  }
  columns->format = *format;
  return OkStatus();
}

Status ReadSeparator(const Words& words, ColumnFile* columns) {
  const std::optional<char> separator = ValueOf(kSeparators, words.back());
  if (words.size() != 2 || !separator) {
    return NotUnderstood(words.back(), "separator comma, tab, semicolon or space");
  }
  columns->separator = *separator;
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
  if (words.size() != 2 && (words.size() != 4 || words[2] != "at-least")) {
    return NotUnderstood(words.back(), "label COLUMN, or label COLUMN at-least NUMBER");
  }
  if (!columns->label.empty()) {
    return InvalidArgumentError(StrCat("there are two labels, '", columns->label, "' and '",
                                       words[1], "'; remove one of the statements"));
  }
  columns->label = words[1];
  if (words.size() == 2) return OkStatus();
  const std::optional<double> bound = NumberOf<double>(words[3]);
  if (!bound || !std::isfinite(*bound)) return NotUnderstood(words[3], "a number");
  columns->label_at_least = *bound;
  return OkStatus();
}

Status ReadDense(const Words& words, ColumnFile* columns) {
  constexpr std::string_view kExpected = "dense COLUMN, or with log, flag or both";
  if (words.size() < 2) return NotUnderstood(words.back(), kExpected);
  DenseColumn& dense = columns->dense.emplace_back(DenseColumn{.name = words[1]});
  for (size_t i = 2; i < words.size(); ++i) {
    bool* const option = words[i] == "log"    ? &dense.is_log
                         : words[i] == "flag" ? &dense.has_flag
                                              : nullptr;
    if (option == nullptr || *option) return NotUnderstood(words[i], kExpected);
    *option = true;
  }
  return OkStatus();
}

// A separator inside of a field: no letter, digit or quotation mark.
std::optional<char> CharacterOf(const std::string& word) {
  if (const std::optional<char> separator = ValueOf(kSeparators, word)) return separator;
  const bool is_one = word.size() == 1 && word[0] > ' ' && word[0] < 0x7F && word[0] != '"' &&
                      word[0] != '.' && word[0] != '-' && word[0] != '+';
  const bool is_letter = is_one && ((word[0] >= '0' && word[0] <= '9') ||
                                    ((word[0] | 0x20) >= 'a' && (word[0] | 0x20) <= 'z'));
  if (!is_one || is_letter) return std::nullopt;
  return word[0];
}

Status ReadVocabulary(const std::string& word, IdColumn* column) {
  if (column->format == IdFormat::kText) return NotUnderstood("below", "text has no vocabulary");
  const std::optional<uint64_t> bound = NumberOf<uint64_t>(word);
  if (!bound || *bound == 0) {
    return NotUnderstood(word, "a whole number above 0, in decimal digits");
  }
  column->vocabulary = *bound;
  return OkStatus();
}

void ReadMissing(std::string_view word, IdColumn* column) {
  for (bool is_last = false; !is_last;) {
    const size_t end = std::min(word.find(','), word.size());
    column->missing.emplace_back(word.substr(0, end));
    is_last = end == word.size();
    word.remove_prefix(std::min(end + 1, word.size()));
  }
}

Status ReadCharacter(const std::string& option, const std::string& word, IdColumn* column) {
  const std::optional<char> c = CharacterOf(word);
  if (!c) return NotUnderstood(word, StrCat(option, " comma, semicolon, tab, space or a sign"));
  if (option == "weights") {
    column->weights = *c;
  } else {
    column->separator = *c;
  }
  return OkStatus();
}

// Takes words[*i] with the word behind it.
Status ReadIdOption(const Words& words, size_t* i, IdColumn* column) {
  const std::string& option = words[*i];
  if (column->is_bag && option == "list") {
    column->is_list = true;
    return OkStatus();
  }
  const bool is_of_bags = option == "separator" || option == "weights";
  const bool is_of_all = option == "below" || option == "missing" || option == "table";
  const bool is_known = is_of_all || (column->is_bag && is_of_bags);
  if (!is_known || *i + 1 == words.size()) {
    return NotUnderstood(option, column->is_bag
                                     ? "below NUMBER, missing TEXTS, table NAME, separator SIGN, "
                                       "weights SIGN or list"
                                     : "below NUMBER, missing TEXTS or table NAME");
  }
  const std::string& word = words[++*i];
  if (option == "below") return ReadVocabulary(word, column);
  if (is_of_bags) return ReadCharacter(option, word, column);
  if (option == "table") {
    column->table = word;
    return OkStatus();
  }
  ReadMissing(word, column);
  return OkStatus();
}

Status ReadId(const Words& words, ColumnFile* columns) {
  constexpr std::string_view kExpected = "id or bag COLUMN decimal, hex or text";
  if (words.size() < 3) return NotUnderstood(words.back(), kExpected);
  const std::optional<IdFormat> format = ValueOf(kIdFormats, words[2]);
  if (!format) return NotUnderstood(words[2], kExpected);
  IdColumn& column = columns->ids.emplace_back(
      IdColumn{.name = words[1], .format = *format, .is_bag = words[0] == "bag"});
  for (size_t i = 3; i < words.size(); ++i) {
    EMBANK_RETURN_IF_ERROR(ReadIdOption(words, &i, &column));
  }
  if (column.is_list && (column.weights || column.separator != kBagSeparator)) {
    return NotUnderstood("list", "a list has no separator and no weights");
  }
  if (column.weights == column.separator) {
    return NotUnderstood("weights", "ids and weights have the same sign between them");
  }
  return OkStatus();
}

Status ReadField(const Words& words, ColumnFile* columns) {
  const std::optional<uint64_t> number =
      words.size() == 3 ? NumberOf<uint64_t>(words[1]) : std::nullopt;
  if (!number) return NotUnderstood(words.back(), "field NUMBER NAME");
  for (const FieldColumn& field : columns->fields) {
    if (field.number == *number || field.name == words[2]) {
      return NotUnderstood(words[2], "a field or its name is there twice");
    }
  }
  columns->fields.push_back({*number, words[2]});
  return OkStatus();
}

Status ReadStatement(const Words& words, ColumnFile* columns) {
  if (words[0] == "rules") return ReadRules(words, columns);
  if (words[0] == "format") return ReadFormat(words, columns);
  if (words[0] == "separator") return ReadSeparator(words, columns);
  if (words[0] == "header") return ReadHeader(words, columns);
  if (words[0] == "label") return ReadLabel(words, columns);
  if (words[0] == "dense") return ReadDense(words, columns);
  if (words[0] == "id" || words[0] == "bag") return ReadId(words, columns);
  if (words[0] == "field") return ReadField(words, columns);
  return NotUnderstood(words[0],
                       "rules, format, separator, header, label, dense, id, bag or field");
}

// Reads a line.
Status ReadLine(std::string_view line, ColumnFile* columns) {
  if (line.substr(std::min(line.find_first_not_of(kBlanks), line.size())).starts_with('#')) {
    return OkStatus();
  }
  EMBANK_ASSIGN_OR_RETURN(const Words words, SplitWords(line));
  return words.empty() ? OkStatus() : ReadStatement(words, columns);
}

// The statements of a file go with its format.
Status CheckFormat(const ColumnFile& columns, bool needs_label) {
  if (columns.format != LogFormat::kLibffm && !columns.fields.empty()) {
    return InvalidArgumentError("column file: fields are of format libffm");
  }
  if (columns.format == LogFormat::kCsv) {
    if (!columns.label.empty() || !needs_label) return OkStatus();
    return InvalidArgumentError(
        "column file: there is no label; add a statement label COLUMN, or label COLUMN at-least "
        "NUMBER");
  }
  if (!columns.label.empty() || !columns.dense.empty() || !columns.ids.empty()) {
    return InvalidArgumentError(
        StrCat("column file: label, dense, id and bag are of format csv: a line of format ",
               WordOf(kFormats, columns.format), " names its features itself"));
  }
  if (columns.format == LogFormat::kLibsvm || !columns.fields.empty()) return OkStatus();
  return InvalidArgumentError("column file: format libffm has no field NUMBER NAME");
}

}  // namespace

std::string TextOf(const DenseColumn& dense) {
  return StrCat("dense ", QuotedName(dense.name), dense.is_log ? " log" : "",
                dense.has_flag ? " flag" : "");
}

std::string TextOf(const IdColumn& id) {
  std::string text =
      StrCat(id.is_bag ? "bag " : "id ", QuotedName(id.name), " ", WordOf(kIdFormats, id.format));
  if (id.vocabulary) StrAppend(&text, " below ", *id.vocabulary);
  if (!id.missing.empty()) {
    std::string missing;
    for (const std::string& word : id.missing)
      missing += (&word == &id.missing[0] ? "" : ",") + word;
    StrAppend(&text, " missing ", QuotedName(missing));
  }
  if (id.separator != kBagSeparator) {
    StrAppend(&text, " separator ",
              WordOf(kSeparators, id.separator, std::string_view(&id.separator, 1)));
  }
  if (id.weights) {
    StrAppend(&text, " weights ",
              WordOf(kSeparators, *id.weights, std::string_view(&*id.weights, 1)));
  }
  if (id.is_list) text += " list";
  if (!id.table.empty()) StrAppend(&text, " table ", QuotedName(id.table));
  return text;
}

StatusOr<ColumnFile> ParseColumnFile(std::string_view text, bool needs_label) {
  ColumnFile columns;
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const Status status = ReadLine(text.substr(0, end), &columns);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!status.ok()) {
      return InvalidArgumentError(StrCat("column file, line ", number, ": ", status.message()));
    }
  }
  EMBANK_RETURN_IF_ERROR(CheckFormat(columns, needs_label));
  return columns;
}

std::string TextOf(const ColumnFile& columns) {
  std::string text = columns.rules == LogRules::kFirst ? "" : "rules 2\n";
  if (columns.format != LogFormat::kCsv) {
    StrAppend(&text, "format ", WordOf(kFormats, columns.format), "\n");
    for (const FieldColumn& field : columns.fields) {
      StrAppend(&text, "field ", field.number, " ", QuotedName(field.name), "\n");
    }
    return text;
  }
  StrAppend(&text, "separator ", WordOf(kSeparators, columns.separator), "\nheader ",
            columns.has_header ? "yes\n" : "no\n");
  if (!columns.label.empty()) StrAppend(&text, "label ", QuotedName(columns.label));
  if (columns.label_at_least) {
    StrAppend(&text, " at-least ", ExactText(*columns.label_at_least));
  }
  if (!columns.label.empty()) text += '\n';
  for (const DenseColumn& dense : columns.dense) StrAppend(&text, TextOf(dense), "\n");
  for (const IdColumn& id : columns.ids) StrAppend(&text, TextOf(id), "\n");
  return text;
}

}  // namespace embank
