#include "train/data/click_log.h"

#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/text_source.h"
#include "train/data/criteo_parser.h"
#include "train/data/csv_parser.h"
#include "train/data/sparse_parser.h"

namespace embank {
namespace {

constexpr uint32_t kCriteoIntegers = 13;
constexpr uint32_t kCriteoIds = 26;

StatusOr<std::unique_ptr<LineParser>> MakeParser(const ClickLogFormat& format,
                                                 std::string_view first_line) {
  if (!format.columns) {
    const CriteoLabel label = format.has_labels
                                  ? CriteoLabel::kRead
                                  : CriteoParser::LabelOf(first_line, kCriteoIntegers, kCriteoIds);
    return std::make_unique<CriteoParser>(kCriteoIntegers, kCriteoIds, format.rules, label);
  }
  if (format.columns->format != LogFormat::kCsv) {
    return std::make_unique<SparseParser>(*format.columns, format.has_labels);
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<CsvParser> parser,
                          CsvParser::Create(*format.columns, first_line, format.has_labels));
  return std::unique_ptr<LineParser>(std::move(parser));
}

// Whether a log must have a first line: a parser may depend on it, and a prediction of nothing is a
// mistake.
bool NeedsFirstLine(const ClickLogFormat& format) {
  return !format.has_labels || (format.columns && format.columns->format == LogFormat::kCsv);
}

// "sep=;" is a line before the header, for Excel. The column file has the separator.
bool NamesSeparator(std::string_view first_line) {
  constexpr std::string_view kWords = "sep=";
  return first_line.starts_with(kWords) && first_line.size() == kWords.size() + 1;
}

}  // namespace

StatusOr<OpenedLog> OpenClickLog(const std::string& path, const ClickLogFormat& format) {
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenTextSource(path));
  OpenedLog log;
  log.name = path == kStandardInput ? "standard input" : path;
  log.lines =
      std::make_unique<LineReader>(std::move(source), format.line_rules() != LogRules::kFirst);
  Line first;
  const bool is_csv = format.columns && format.columns->format == LogFormat::kCsv;
  bool has_first = !NeedsFirstLine(format) || log.lines->Peek(&first);
  if (has_first && is_csv && NamesSeparator(first.text)) {
    log.lines->Next(&first);
    log.header_lines = 1;
    has_first = log.lines->Peek(&first);
  }
  if (!has_first) {
    EMBANK_RETURN_IF_ERROR(log.lines->status());
    return log;
  }
  StatusOr<std::unique_ptr<LineParser>> parser = MakeParser(format, first.text);
  if (!parser.ok()) {
    return Status(parser.status().code(), StrCat(log.name, ": ", parser.status().message()));
  }
  log.parser = *std::move(parser);
  if (is_csv && format.columns->has_header) ++log.header_lines;
  return log;
}

}  // namespace embank
