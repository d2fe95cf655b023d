// The lines of a file, one after the other, in constant memory.
#ifndef EMBANK_TRAIN_BYTES_LINE_READER_H_
#define EMBANK_TRAIN_BYTES_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "train/bytes/byte_source.h"

namespace embank {

// How a line ends.
enum class LineEnding {
  kNewline,
  kEndOfFile,  // the file ends inside the line
  kTooLong,    // the line has more than kLineBytesMax bytes, and its text is left out
};

struct Line {
  uint64_t number = 0;    // the first line is 1
  std::string_view text;  // without what ends it
  LineEnding ending = LineEnding::kNewline;
};

// Lines end with "\n" or "\r\n", or all with "\r": the first end of a line decides. One thread.
class LineReader {
 public:
  // As large as the buffer, which stays in a second-level cache.
  static constexpr uint32_t kLineBytesMax = 256 << 10;

  // `takes_returns`: lines may end with "\r" alone.
  explicit LineReader(std::unique_ptr<ByteSource> source, bool takes_returns = true);

  // Gets the next line, whose text is valid until the next call. Returns false at the end of the
  // file and after an error. Blocks on reads.
  bool Next(Line* line);

  // Shows the line that Next will get.
  bool Peek(Line* line);

  // Returns the first bytes, up to kLineBytesMax, while no line behind the first one was read; they
  // are valid until the next call of Next. Fewer than `bytes` only where there are no more, or
  // where reading fails. Blocks on reads.
  std::span<const std::byte> Head(size_t bytes);

  // Returns the part of the source that was read, as ByteSource does.
  double FractionRead() const { return source_->FractionRead(); }

  // Returns the error that ended the lines: a status of ByteSource::Read.
  const Status& status() const { return status_; }

 private:
  bool Begin();
  void FindLineEnd();
  bool Refill();

  const std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::optional<char> line_end_;  // once it is known
  std::optional<Line> peeked_;
  // The unread bytes are buffer_[begin_] up to buffer_[end_]. The first scanned_ of them have no
  // line_end_.
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t scanned_ = 0;
  uint64_t number_ = 0;
  bool has_begun_ = false;  // the first bytes were read
  bool is_at_end_ = false;
  bool is_too_long_ = false;
  Status status_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_BYTES_LINE_READER_H_
