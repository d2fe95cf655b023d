#include "train/data/click_reader.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/byte_source.h"

namespace embank {
namespace {

uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const uintmax_t size = IsReadOnce(path) ? 0 : std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

}  // namespace

StatusOr<std::unique_ptr<ClickReader>> ClickReader::Open(std::vector<std::string> files,
                                                         ClickLogFormat format,
                                                         double broken_share_max) {
  EMBANK_CHECK(!files.empty());
  std::unique_ptr<ClickReader> reader(
      new ClickReader(std::move(files), std::move(format), broken_share_max));
  EMBANK_RETURN_IF_ERROR(reader->OpenNext());
  if (reader->log_.parser == nullptr) {
    return InvalidArgumentError(StrCat(reader->log_.name, ": is empty; give a log with lines"));
  }
  reader->columns_ = reader->log_.parser->columns();
  EMBANK_RETURN_IF_ERROR(reader->CheckFiles());
  return reader;
}

StatusOr<std::unique_ptr<ClickReader>> ClickReader::OpenCriteo(const std::string& path,
                                                               double broken_share_max) {
  return Open({path}, {}, broken_share_max);
}

StatusOr<std::unique_ptr<ClickReader>> ClickReader::OpenCsv(const std::string& path,
                                                            const ColumnFile& columns,
                                                            double broken_share_max) {
  return Open({path}, {.columns = columns}, broken_share_max);
}

ClickReader::ClickReader(std::vector<std::string> files, ClickLogFormat format,
                         double broken_share_max)
    : files_(std::move(files)), format_(std::move(format)), broken_share_max_(broken_share_max) {
  if (std::ranges::any_of(files_, IsReadOnce)) return;
  for (const std::string& file : files_) files_bytes_ += SizeOf(file);
}

ClickReader::ClickReader(std::string name, std::unique_ptr<ByteSource> source,
                         std::unique_ptr<LineParser> parser, double broken_share_max,
                         uint32_t header)
    : broken_share_max_(broken_share_max), columns_(parser->columns()) {
  log_ = {std::move(name), std::make_unique<LineReader>(std::move(source)), std::move(parser),
          header};
}

// Goes on to the next file that is not empty, or to the last one.
Status ClickReader::OpenNext() {
  do {
    if (next_file_ > 0) read_bytes_ += SizeOf(files_[next_file_ - 1]);
    EMBANK_ASSIGN_OR_RETURN(log_, OpenClickLog(files_[next_file_], format_));
    ++next_file_;
  } while (log_.parser == nullptr && next_file_ < files_.size());
  return OkStatus();
}

// A long training must not end because a later file has other columns.
Status ClickReader::CheckFiles() const {
  for (size_t i = next_file_; i < files_.size(); ++i) {
    if (IsReadOnce(files_[i])) continue;
    EMBANK_RETURN_IF_ERROR(OpenClickLog(files_[i], format_).status());
  }
  return OkStatus();
}

double ClickReader::FractionRead() const {
  if (files_bytes_ == 0) return 0.0;
  const double bytes =
      static_cast<double>(read_bytes_) +
      log_.lines->FractionRead() * static_cast<double>(SizeOf(files_[next_file_ - 1]));
  return std::min(1.0, bytes / static_cast<double>(files_bytes_));
}

StatusOr<uint32_t> ClickReader::Next(uint32_t samples_max, ClickBatch* batch) {
  EMBANK_CHECK(samples_max > 0);
  batch->Clear(columns_.ids.size());
  broken_before_.clear();
  while (batch->samples < samples_max) {
    EMBANK_ASSIGN_OR_RETURN(const LineKind kind, NextLine());
    if (kind == LineKind::kEnd) {
      EMBANK_RETURN_IF_ERROR(CheckShare(1));
      break;
    }
    if (kind != LineKind::kSample) continue;
    AppendRow(row_, batch);
    broken_before_.push_back(broken_.count);
  }
  return batch->samples;
}

// Takes the next line of all files, and counts it.
StatusOr<ClickReader::LineKind> ClickReader::NextLine() {
  if (std::exchange(is_row_next_, false)) {
    ++lines_;
    return LineKind::kSample;
  }
  Line line;
  while (log_.parser == nullptr || !log_.lines->Next(&line)) {
    EMBANK_RETURN_IF_ERROR(log_.lines->status());
    unjudged_ += std::exchange(blanks_, 0);
    if (next_file_ >= files_.size()) return LineKind::kEnd;
    EMBANK_RETURN_IF_ERROR(OpenNext());
  }
  ++lines_;
  line_bytes_ = static_cast<uint32_t>(line.text.size());
  is_open_ = line.ending == LineEnding::kEndOfFile && next_file_ >= files_.size();
  if (line.number <= log_.header_lines) {
    ++unjudged_;
    return LineKind::kOther;
  }
  const bool knows_blanks = format_.line_rules() != LogRules::kFirst;
  if (knows_blanks && line.text.empty() && line.ending != LineEnding::kTooLong) {
    ++blanks_;
    return LineKind::kOther;
  }
  const uint64_t broken = broken_.count;
  for (; blanks_ > 0; --blanks_) Break(LineDefect::kBlank, line.number - blanks_);
  const LineDefect defect = ParseLine(line);
  if (defect != LineDefect::kNone) Break(defect, line.number);
  if (broken_.count > broken) EMBANK_RETURN_IF_ERROR(CheckShare(kJudgedLines));
  return defect == LineDefect::kNone ? LineKind::kSample : LineKind::kOther;
}

LineDefect ClickReader::ParseLine(const Line& line) {
  if (line.ending == LineEnding::kTooLong) return bad_.Set(LineDefect::kTooLong, "", "");
  // By the first rules, because a line that is cut off inside its last field looks whole.
  if (line.ending == LineEnding::kEndOfFile && format_.line_rules() == LogRules::kFirst) {
    return bad_.Set(LineDefect::kFileEnds, "", "");
  }
  return log_.parser->Parse(line.text, &row_, &bad_);
}

void ClickReader::Break(LineDefect defect, uint64_t number) {
  if (defect == LineDefect::kBlank) bad_ = {};
  broken_.Add(defect, bad_, log_.name, number);
}

Status ClickReader::CheckShare(uint64_t judged_min) const {
  const uint64_t judged = lines_ - unjudged_ - blanks_;
  const double broken = static_cast<double>(broken_.count);
  if (judged < judged_min || broken <= broken_share_max_ * static_cast<double>(judged)) {
    return OkStatus();
  }
  std::string text = StrCat(log_.name, ": ", broken_.count, " of ", judged,
                            " lines are broken, and at most a share of ", broken_share_max_,
                            " may be (--broken-share)");
  for (const std::string& of_kind : TextsOf(broken_)) StrAppend(&text, "; ", of_kind);
  if (!format_.columns && broken_.count == judged) {
    text +=
        "; without --columns FILE (docs/training.md) lines have Criteo's format: a label, 13 "
        "integers and 26 ids, with tabs between them";
  }
  return InvalidArgumentError(text);
}

DataPosition ClickReader::position() const {
  DataPosition position = lines_;
  if (is_open_ && !is_row_next_) position.open_line_bytes = line_bytes_;
  return position;
}

Status ClickReader::SkipTo(DataPosition position) {
  EMBANK_CHECK(position.place >= lines_);
  LineKind kind = LineKind::kOther;
  while (lines_ < position.place) {
    EMBANK_ASSIGN_OR_RETURN(kind, NextLine());
    if (kind == LineKind::kEnd) {
      return OutOfRangeError(StrCat(
          log_.name, ": the data end behind line ", lines_, ", and go on behind line ",
          position.place, " of the checkpoint; give all files that were trained, or other data"));
    }
  }
  const bool has_grown = position.open_line_bytes > 0 && position.open_line_bytes != line_bytes_;
  if (has_grown && kind == LineKind::kSample) {
    --lines_;
    is_row_next_ = true;
  }
  return OkStatus();
}

}  // namespace embank
