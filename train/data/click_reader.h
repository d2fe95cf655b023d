// The samples of a click log in one or more files, in constant memory. Broken lines are left out
// and counted; the first one of each kind is named.
#ifndef EMBANK_TRAIN_DATA_CLICK_READER_H_
#define EMBANK_TRAIN_DATA_CLICK_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "train/data/broken_lines.h"
#include "train/data/click_log.h"
#include "train/samples/click_source.h"

namespace embank {

// A position is a number of lines of all files, headers included, and behind a last line without an
// end also its length: if the line has grown, a reader that skips to it gives the whole one. Lines
// that are skipped are parsed and judged like others, so that a reader that skips to a position
// goes on as one that has read up to it. One thread at a time.
//
// Statuses of Next and SkipTo, after which it gives nothing more:
// DATA_LOSS: a packed file is damaged or cut off.
// INVALID_ARGUMENT: of at least kJudgedLines lines, or of all files, a larger share is broken than
// may be; the message names the first broken line of each kind.
class ClickReader final : public ClickSource {
 public:
  static constexpr uint64_t kJudgedLines = 1000;
  static constexpr double kBrokenShareMax = 0.01;

  // Opens a log of at least one file, in this order. In CSV each has its header, and may have its
  // columns in another order; empty files are left out if there are others. Each file that is no
  // pipe is looked at. Statuses of OpenClickLog. INVALID_ARGUMENT: all files are empty.
  static StatusOr<std::unique_ptr<ClickReader>> Open(std::vector<std::string> files,
                                                     ClickLogFormat format,
                                                     double broken_share_max = kBrokenShareMax);
  // Opens a log in Criteo's format. Statuses of Open.
  static StatusOr<std::unique_ptr<ClickReader>> OpenCriteo(
      const std::string& path, double broken_share_max = kBrokenShareMax);
  // Opens a log with the columns of a column file. Statuses of Open.
  static StatusOr<std::unique_ptr<ClickReader>> OpenCsv(const std::string& path,
                                                        const ColumnFile& columns,
                                                        double broken_share_max = kBrokenShareMax);
  // Reads lines of `source` with a parser, behind `header` lines; messages call the source `name`.
  ClickReader(std::string name, std::unique_ptr<ByteSource> source,
              std::unique_ptr<LineParser> parser, double broken_share_max, uint32_t header);

  const ClickColumns& columns() const override { return columns_; }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override;
  DataPosition position() const override;
  Status SkipTo(DataPosition position) override;

  // Returns the path of the file that is read.
  const std::string& file() const { return files_[next_file_ - 1]; }
  // Returns the first bytes of its text, before a batch is read (LineReader::Head).
  std::span<const std::byte> Head(size_t bytes) { return log_.lines->Head(bytes); }

  // Returns the broken lines among those that were read or skipped.
  const BrokenLines& broken_lines() const { return broken_; }
  // Returns their number before each sample of the last batch.
  const std::vector<uint64_t>& broken_before() const { return broken_before_; }
  // Returns the part of all files that was read, 0..1, by their bytes; 0 if one is a pipe.
  double FractionRead() const override;

 private:
  enum class LineKind { kEnd, kSample, kOther };

  ClickReader(std::vector<std::string> files, ClickLogFormat format, double broken_share_max);
  Status OpenNext();
  Status CheckFiles() const;
  StatusOr<LineKind> NextLine();
  LineDefect ParseLine(const Line& line);
  void Break(LineDefect defect, uint64_t number);
  Status CheckShare(uint64_t judged_min) const;

  const std::vector<std::string> files_;
  const ClickLogFormat format_;
  const double broken_share_max_;
  ClickColumns columns_;
  OpenedLog log_;         // the file that is read
  size_t next_file_ = 0;  // the one behind it
  ClickRow row_;
  BadField bad_;
  BrokenLines broken_;
  std::vector<uint64_t> broken_before_;
  uint64_t lines_ = 0;        // position: lines that were read or skipped
  uint32_t line_bytes_ = 0;   // of the last of them
  bool is_open_ = false;      // it is the last line of all files, and has no end
  bool is_row_next_ = false;  // row_ is the sample of the next line
  uint64_t unjudged_ = 0;     // lines of headers, and blank ones at the end of files
  uint64_t blanks_ = 0;       // blank lines that are broken if another line follows in their file
  uint64_t files_bytes_ = 0;  // of all files; 0: one is a pipe
  uint64_t read_bytes_ = 0;   // of the files before log_
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CLICK_READER_H_
