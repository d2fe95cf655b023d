// Measures the SSD under a program that does nothing else: fio, as a child process. Its file is
// beside the engines' files and as large as their data.
#ifndef EMBANK_BENCH_FIO_PROBE_H_
#define EMBANK_BENCH_FIO_PROBE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status_or.h"

namespace embank {

struct FioReads {
  double per_second = 0.0;
  double cpu_us_per_read = 0.0;  // of fio's process
};

// One thread.
class FioProbe {
 public:
  // Writes the file, of whole MiB, into a directory. UNIMPLEMENTED: fio is not installed.
  // UNAVAILABLE: fio failed; the message has its words. Blocks, like all of its calls.
  static StatusOr<std::unique_ptr<FioProbe>> Create(const std::string& directory, uint64_t bytes);
  // Removes its file.
  ~FioProbe();
  FioProbe(const FioProbe&) = delete;
  FioProbe& operator=(const FioProbe&) = delete;

  // Random reads of 4 KiB without the page cache: `jobs` threads with `depth` reads in flight each.
  StatusOr<FioReads> RandomReads(uint32_t depth, uint32_t jobs, double seconds);
  // Reads the file once in order, 1 MiB at a time, without the page cache; returns bytes per
  // second.
  StatusOr<double> SequentialRead();
  StatusOr<double> SequentialWrite();

 private:
  FioProbe(const std::string& directory, uint64_t bytes);

  StatusOr<std::string> Run(std::vector<std::string> arguments) const;

  const std::string data_path_;
  const std::string output_path_;
  const std::string words_path_;
  const uint64_t bytes_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_FIO_PROBE_H_
