#include "bench/trace.h"

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

template <typename Word>
Word FromBigEndian(const std::byte* bytes) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) {
    word = static_cast<Word>((word << 8) | std::to_integer<Word>(bytes[i]));
  }
  return word;
}

std::string Quoted(std::byte byte) {
  const auto c = std::to_integer<unsigned char>(byte);
  return absl::ascii_isprint(c) ? absl::StrFormat("'%c'", c) : absl::StrFormat("byte 0x%02X", c);
}

}  // namespace

StatusOr<TraceFormat> ParseTraceFormat(const std::string& name) {
  if (name == "be64") return TraceFormat::kBigEndian64;
  if (name == "u32") return TraceFormat::kBigEndian32;
  if (name == "text") return TraceFormat::kText;
  return InvalidArgumentError(StrCat("'", name, "' is no trace format: be64, u32 or text"));
}

StatusOr<TraceFormat> TraceFormatOfName(const std::string& path) {
  const std::string name(absl::StripSuffix(path, ".zst"));
  if (absl::EndsWith(name, ".trace")) return TraceFormat::kBigEndian64;
  if (absl::EndsWith(name, ".bin")) return TraceFormat::kBigEndian32;
  if (absl::EndsWith(name, ".txt")) return TraceFormat::kText;
  return InvalidArgumentError(
      StrCat(path, ": the name does not tell the format (.trace, .bin, .txt, each also with .zst):",
             " give --trace-format"));
}

StatusOr<std::unique_ptr<TraceReader>> TraceReader::Open(const std::string& path,
                                                         std::optional<TraceFormat> format) {
  if (!format.has_value()) {
    EMBANK_ASSIGN_OR_RETURN(format, TraceFormatOfName(path));
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> bytes, OpenByteSource(path));
  return std::unique_ptr<TraceReader>(new TraceReader(path, *format, std::move(bytes)));
}

TraceReader::TraceReader(std::string path, TraceFormat format, std::unique_ptr<ByteSource> bytes)
    : path_(std::move(path)), format_(format), bytes_(std::move(bytes)), buffer_(kBufferBytes) {}

StatusOr<size_t> TraceReader::Read(std::span<Key> keys) {
  if (!failure_.ok()) return failure_;
  StatusOr<size_t> count = format_ == TraceFormat::kText          ? ReadLines(keys)
                           : format_ == TraceFormat::kBigEndian64 ? ReadWords<uint64_t>(keys)
                                                                  : ReadWords<uint32_t>(keys);
  if (!count.ok()) failure_ = count.status();
  return count;
}

Status TraceReader::Refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  EMBANK_ASSIGN_OR_RETURN(const size_t count, bytes_->Read(std::span(buffer_).subspan(end_)));
  source_is_over_ = count < buffer_.size() - end_;
  end_ += count;
  return OkStatus();
}

template <typename Word>
StatusOr<size_t> TraceReader::ReadWords(std::span<Key> keys) {
  size_t done = 0;
  while (done < keys.size()) {
    if (end_ - begin_ < sizeof(Word)) {
      if (!source_is_over_) EMBANK_RETURN_IF_ERROR(Refill());
      if (end_ == begin_) break;
      if (end_ - begin_ < sizeof(Word)) {
        return DataLossError(StrCat(path_, ": byte ", offset_bytes_, ": the last record has ",
                                    end_ - begin_, " bytes instead of ", sizeof(Word)));
      }
    }
    keys[done++] = FromBigEndian<Word>(buffer_.data() + begin_);
    begin_ += sizeof(Word);
    offset_bytes_ += sizeof(Word);
  }
  return done;
}

StatusOr<size_t> TraceReader::ReadLines(std::span<Key> keys) {
  size_t done = 0;
  for (; done < keys.size(); ++done) {
    EMBANK_ASSIGN_OR_RETURN(const bool more, ReadLine(&keys[done]));
    if (!more) break;
  }
  return done;
}

StatusOr<bool> TraceReader::ReadLine(Key* key) {
  constexpr Key kMax = std::numeric_limits<Key>::max();
  Key value = 0;
  for (uint64_t column = 1;; ++column) {
    if (begin_ == end_ && !source_is_over_) EMBANK_RETURN_IF_ERROR(Refill());
    if (begin_ == end_) {
      if (column == 1) return false;
      break;
    }
    const std::byte byte = buffer_[begin_++];
    const auto digit = static_cast<uint32_t>(std::to_integer<unsigned char>(byte)) - '0';
    if (byte == std::byte{'\n'}) {
      if (column == 1) return LineError("empty line");
      break;
    }
    if (digit > 9) {
      return LineError(StrCat(Quoted(byte), " in column ", column, ", a decimal key expected"));
    }
    if (value > (kMax - digit) / 10) return LineError(StrCat("key above ", kMax));
    value = value * 10 + digit;
  }
  ++line_;
  *key = value;
  return true;
}

Status TraceReader::LineError(const std::string& what) const {
  return DataLossError(StrCat(path_, ":", line_, ": ", what));
}

}  // namespace embank
