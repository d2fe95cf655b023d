// A click log's format, and how a file of it is opened.
#ifndef EMBANK_TRAIN_DATA_CLICK_LOG_H_
#define EMBANK_TRAIN_DATA_CLICK_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status_or.h"
#include "train/bytes/line_reader.h"
#include "train/data/column_file.h"
#include "train/data/line_parser.h"
#include "train/data/log_rules.h"

namespace embank {

struct ClickLogFormat {
  std::optional<ColumnFile> columns = {};  // without one it is Criteo's format
  LogRules rules = kNewestRules;           // of Criteo's format; a column file has its own
  // Without labels, columns of labels are left out where the log has them: in Criteo's format where
  // the first line has a column more than there are features.
  bool has_labels = true;

  LogRules line_rules() const { return columns ? columns->rules : rules; }
};

// A file of a log, at its first line.
struct OpenedLog {
  std::string name;
  std::unique_ptr<LineReader> lines;
  std::unique_ptr<LineParser> parser;  // none: the file is empty, and its first line was needed
  uint32_t header_lines = 0;
};

// Opens a file, a pipe or standard input. Blocks on reads. The statuses of OpenTextSource, of a
// read, and of CsvParser::Create; they name the file.
StatusOr<OpenedLog> OpenClickLog(const std::string& path, const ClickLogFormat& format);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_CLICK_LOG_H_
