// Text read as a log with a column file.
#ifndef EMBANK_TESTS_TRAIN_READ_CSV_H_
#define EMBANK_TESTS_TRAIN_READ_CSV_H_

#include <memory>
#include <string>

#include "base/status_or.h"
#include "tests/bench/temporary_file.h"
#include "train/data/click_reader.h"
#include "train/data/column_file.h"

namespace embank::test {

// Opens a CSV file, each of whose lines may be broken, and reads it as one batch.
inline StatusOr<ClickBatch> ReadCsv(const std::string& columns, const std::string& text,
                                    BrokenLines* broken = nullptr) {
  const TemporaryFile file(".csv", text);
  StatusOr<ColumnFile> parsed = ParseColumnFile(columns);
  if (!parsed.ok()) return parsed.status();
  StatusOr<std::unique_ptr<ClickReader>> reader = ClickReader::OpenCsv(file.path(), *parsed, 1.0);
  if (!reader.ok()) return reader.status();
  ClickBatch batch;
  const StatusOr<uint32_t> samples = (*reader)->Next(1000, &batch);
  if (!samples.ok()) return samples.status();
  if (broken != nullptr) *broken = (*reader)->broken_lines();
  return batch;
}

inline std::string MessageOf(const Status& status) { return std::string(status.message()); }

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_READ_CSV_H_
