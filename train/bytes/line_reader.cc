#include "train/bytes/line_reader.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"

namespace embank {

LineReader::LineReader(std::unique_ptr<ByteSource> source, bool takes_returns)
    : source_(std::move(source)), buffer_(kLineBytesMax) {
  if (!takes_returns) line_end_ = '\n';
}

bool LineReader::Peek(Line* line) {
  if (!peeked_) {
    if (!Next(line)) return false;
    peeked_ = *line;
  }
  *line = *peeked_;
  return true;
}

bool LineReader::Next(Line* line) {
  if (peeked_) {
    *line = *std::exchange(peeked_, std::nullopt);
    return true;
  }
  if (!has_begun_ && !Begin()) return false;
  for (;;) {
    const char* const first = buffer_.data() + begin_;
    const size_t unread = end_ - begin_;
    const void* const newline = std::memchr(first + scanned_, *line_end_, unread - scanned_);
    if (newline == nullptr && !is_at_end_) {
      scanned_ = unread;
      if (!Refill()) return false;
      continue;
    }
    if (newline == nullptr && unread == 0 && !is_too_long_) return false;
    const size_t size = newline != nullptr
                            ? static_cast<size_t>(static_cast<const char*>(newline) - first)
                            : unread;
    line->number = ++number_;
    line->text = std::string_view(first, size);
    if (*line_end_ == '\n' && line->text.ends_with('\r')) line->text.remove_suffix(1);
    line->ending = newline != nullptr ? LineEnding::kNewline : LineEnding::kEndOfFile;
    if (std::exchange(is_too_long_, false)) {
      line->text = {};
      line->ending = LineEnding::kTooLong;
    }
    begin_ += size + (newline != nullptr ? 1 : 0);
    scanned_ = 0;
    return true;
  }
}

std::span<const std::byte> LineReader::Head(size_t bytes) {
  EMBANK_CHECK(number_ == 0 || peeked_);
  if (!has_begun_ && !Begin()) return {};
  return std::as_bytes(std::span(buffer_.data(), std::min(bytes, end_)));
}

bool LineReader::Begin() {
  if (!Refill()) return false;
  if (!line_end_) FindLineEnd();
  has_begun_ = status_.ok();
  return has_begun_;
}

// A first line that is longer than the buffer is none, whatever ends it.
void LineReader::FindLineEnd() {
  const size_t at = std::string_view(buffer_.data(), end_).find_first_of("\r\n");
  // The byte behind it says whether it ends the line alone.
  if (at < end_ && at == end_ - 1 && buffer_[at] == '\r' && !is_at_end_) {
    buffer_.resize(buffer_.size() + 1);
    if (!Refill()) return;
    scanned_ = 0;
  }
  const std::string_view text(buffer_.data(), end_);
  const bool is_return =
      at != std::string_view::npos && text[at] == '\r' && !text.substr(at + 1).starts_with('\n');
  line_end_ = is_return ? '\r' : '\n';
}

bool LineReader::Refill() {
  EMBANK_CHECK(begin_ <= end_ && end_ <= buffer_.size());
  if (begin_ == 0 && end_ == buffer_.size()) {
    is_too_long_ = true;
    end_ = 0;
  }
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  scanned_ = end_;
  const std::span<char> free(buffer_.data() + end_, buffer_.size() - end_);
  StatusOr<size_t> count = source_->Read(std::as_writable_bytes(free));
  if (!count.ok()) {
    status_ = count.status();
    return false;
  }
  EMBANK_CHECK(*count <= free.size());
  is_at_end_ = *count < free.size();
  end_ += *count;
  return true;
}

}  // namespace embank
