#include "train/data/click_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/byte_source.h"
#include "train/data/criteo_parser.h"
#include "train/data/csv_parser.h"

namespace embank {

StatusOr<std::unique_ptr<ClickReader>> ClickReader::OpenCriteo(const std::string& path,
                                                               double broken_share_max) {
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenByteSource(path));
  return std::make_unique<ClickReader>(path, std::move(source), std::make_unique<CriteoParser>(),
                                       broken_share_max, 0);
}

StatusOr<std::unique_ptr<ClickReader>> ClickReader::OpenCsv(const std::string& path,
                                                            const ColumnFile& columns,
                                                            double broken_share_max) {
  // The first line is read twice: without a header it is a sample.
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> first_source, OpenByteSource(path));
  LineReader first_reader(std::move(first_source));
  Line line;
  if (!first_reader.Next(&line)) {
    EMBANK_RETURN_IF_ERROR(first_reader.status());
    return InvalidArgumentError(StrCat(path, ": is empty"));
  }
  StatusOr<std::unique_ptr<CsvParser>> parser = CsvParser::Create(columns, line.text);
  if (!parser.ok()) {
    return Status(parser.status().code(), StrCat(path, ": ", parser.status().message()));
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenByteSource(path));
  return std::make_unique<ClickReader>(path, std::move(source), *std::move(parser),
                                       broken_share_max, columns.has_header ? 1 : 0);
}

ClickReader::ClickReader(std::string name, std::unique_ptr<ByteSource> source,
                         std::unique_ptr<LineParser> parser, double broken_share_max,
                         uint32_t header)
    : name_(std::move(name)),
      broken_share_max_(broken_share_max),
      reader_(std::move(source)),
      parser_(std::move(parser)) {
  Line line;
  for (; header_ < header && reader_.Next(&line); ++header_) ++lines_;
}

StatusOr<uint32_t> ClickReader::Next(uint32_t samples_max, ClickBatch* batch) {
  EMBANK_CHECK(samples_max > 0);
  batch->Clear(parser_->columns().ids.size());
  LineDefect defect = LineDefect::kNone;
  while (batch->samples < samples_max && NextLine(&defect)) {
    if (defect == LineDefect::kNone) {
      AppendRow(row_, batch);
    } else {
      EMBANK_RETURN_IF_ERROR(CheckShare(kJudgedLines));
    }
  }
  EMBANK_RETURN_IF_ERROR(reader_.status());
  if (batch->samples < samples_max) EMBANK_RETURN_IF_ERROR(CheckShare(1));
  return batch->samples;
}

bool ClickReader::NextLine(LineDefect* defect) {
  Line line;
  if (!reader_.Next(&line)) return false;
  ++lines_;
  *defect = ParseLine(line);
  if (*defect == LineDefect::kNone) return true;
  ++broken_.count;
  if (broken_.first.size() < BrokenLines::kNamedMax) broken_.first.push_back({lines_, *defect});
  return true;
}

LineDefect ClickReader::ParseLine(const Line& line) {
  EMBANK_CHECK(line.number == lines_);
  if (line.ending == LineEnding::kTooLong) return LineDefect::kTooLong;
  // A line that is cut off inside its last field looks whole.
  if (line.ending == LineEnding::kEndOfFile) return LineDefect::kFileEnds;
  return parser_->Parse(line.text, &row_);
}

Status ClickReader::CheckShare(uint64_t judged_min) const {
  const uint64_t judged = lines_ - header_;
  const double broken = static_cast<double>(broken_.count);
  if (judged < judged_min || broken <= broken_share_max_ * static_cast<double>(judged)) {
    return OkStatus();
  }
  std::string text =
      StrCat(name_, ": ", broken_.count, " of ", judged,
             " lines are broken, and at most a share of ", broken_share_max_, " may be");
  for (const BrokenLine& line : broken_.first) {
    text += StrCat("; line ", line.number, ": ", DefectText(line.defect));
  }
  return InvalidArgumentError(text);
}

Status ClickReader::SkipTo(uint64_t position) {
  EMBANK_CHECK(position >= lines_);
  LineDefect defect = LineDefect::kNone;
  while (lines_ < position) {
    if (!NextLine(&defect)) {
      EMBANK_RETURN_IF_ERROR(reader_.status());
      return OutOfRangeError(StrCat(name_, ": has ", lines_, " lines, and not ", position));
    }
    if (defect != LineDefect::kNone) EMBANK_RETURN_IF_ERROR(CheckShare(kJudgedLines));
  }
  return OkStatus();
}

}  // namespace embank
