// The samples of a click log in a file, plain or .zst, in constant memory. Broken lines are left
// out, counted, and named by their numbers.
#ifndef EMBANK_TRAIN_DATA_CLICK_READER_H_
#define EMBANK_TRAIN_DATA_CLICK_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "train/bytes/line_reader.h"
#include "train/data/click_source.h"
#include "train/data/column_file.h"
#include "train/data/line_parser.h"

namespace embank {

struct BrokenLine {
  uint64_t number;
  LineDefect defect;
};

// The broken lines so far.
struct BrokenLines {
  static constexpr uint32_t kNamedMax = 10;

  uint64_t count = 0;
  std::vector<BrokenLine> first;  // at most kNamedMax of them
};

// A position is a number of lines, a header included. Lines that are skipped are parsed and judged
// like others, so that a reader that skips to a position goes on as one that has read up to it. One
// thread at a time.
//
// Statuses of Next and SkipTo, after which it gives nothing more:
// DATA_LOSS: a .zst file is damaged or cut off.
// INVALID_ARGUMENT: of at least kJudgedLines lines, or of the whole file, a larger share is broken
// than may be; the message names the first broken lines.
class ClickReader final : public ClickSource {
 public:
  static constexpr uint64_t kJudgedLines = 1000;
  static constexpr double kBrokenShareMax = 0.01;

  // Opens a log in Criteo's format. Statuses of OpenByteSource.
  static StatusOr<std::unique_ptr<ClickReader>> OpenCriteo(
      const std::string& path, double broken_share_max = kBrokenShareMax);
  // Opens a CSV file. Statuses of OpenByteSource and CsvParser::Create, which name the file.
  // INVALID_ARGUMENT: it is empty.
  static StatusOr<std::unique_ptr<ClickReader>> OpenCsv(const std::string& path,
                                                        const ColumnFile& columns,
                                                        double broken_share_max = kBrokenShareMax);
  // Reads lines of `source` with a parser, behind `header` lines; messages call the source `name`.
  ClickReader(std::string name, std::unique_ptr<ByteSource> source,
              std::unique_ptr<LineParser> parser, double broken_share_max, uint32_t header);

  const ClickColumns& columns() const override { return parser_->columns(); }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override;
  uint64_t position() const override { return lines_; }
  Status SkipTo(uint64_t position) override;

  // Returns the broken lines among those that were read or skipped.
  const BrokenLines& broken_lines() const { return broken_; }

 private:
  // Takes the next line, and counts it. False: there is none.
  bool NextLine(LineDefect* defect);
  LineDefect ParseLine(const Line& line);
  Status CheckShare(uint64_t judged_min) const;

  const std::string name_;
  const double broken_share_max_;
  LineReader reader_;
  std::unique_ptr<LineParser> parser_;
  ClickRow row_;
  BrokenLines broken_;
  uint64_t lines_ = 0;   // position: lines that were read or skipped
  uint64_t header_ = 0;  // lines of a header, which are not judged
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CLICK_READER_H_
