// Key traces: one key per access, in order, in one of three formats, plain or compressed (.zst).
//
//   be64   8 bytes per key, big-endian          *.trace
//   u32    4 bytes per key, big-endian          *.trc.bin *.bin
//   text   one decimal key per line             *.txt
#ifndef EMBANK_BENCH_TRACE_H_
#define EMBANK_BENCH_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "train/bytes/byte_source.h"

namespace embank {

enum class TraceFormat { kBigEndian64, kBigEndian32, kText };

// "be64", "u32" or "text"; INVALID_ARGUMENT lists them.
StatusOr<TraceFormat> ParseTraceFormat(const std::string& name);

// By the end of a file's name, see above; INVALID_ARGUMENT when it says nothing.
StatusOr<TraceFormat> TraceFormatOfName(const std::string& path);

// Reads a trace front to back in constant memory. One thread.
class TraceReader {
 public:
  // Without a format the file's name tells it. Statuses of OpenByteSource and TraceFormatOfName.
  static StatusOr<std::unique_ptr<TraceReader>> Open(const std::string& path,
                                                     std::optional<TraceFormat> format);

  // The next keys: fills `keys` from its front and returns their number, less than asked only at
  // the end, 0 when it is over. DATA_LOSS: a broken text line ("FILE:LINE: ..."), a cut-off binary
  // record ("FILE: byte OFFSET: ..."), a damaged .zst. After an error every call returns it again.
  StatusOr<size_t> Read(std::span<Key> keys);

  // How much of the file was read, 0..1.
  double FractionRead() const { return bytes_->FractionRead(); }

 private:
  TraceReader(std::string path, TraceFormat format, std::unique_ptr<ByteSource> bytes);

  // Moves the unread bytes to the buffer's front and reads more behind them.
  Status Refill();
  template <typename Word>
  StatusOr<size_t> ReadWords(std::span<Key> keys);
  StatusOr<size_t> ReadLines(std::span<Key> keys);
  // The key on the next line; false at the end.
  StatusOr<bool> ReadLine(Key* key);
  Status LineError(const std::string& what) const;

  const std::string path_;
  const TraceFormat format_;
  const std::unique_ptr<ByteSource> bytes_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;  // of the unread bytes in buffer_
  size_t end_ = 0;
  bool source_is_over_ = false;
  uint64_t offset_bytes_ = 0;  // of begin_ in the trace
  uint64_t line_ = 1;
  Status failure_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_TRACE_H_
