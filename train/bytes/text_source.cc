#include "train/bytes/text_source.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/headed_source.h"

namespace embank {
namespace {

using std::string_view_literals::operator""sv;

// The magic number of a tar file is at its byte 257.
constexpr size_t kTarMagicAt = 257;
constexpr size_t kHeadBytes = 512;
constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
constexpr std::string_view kUtf16LittleMark = "\xFF\xFE";
constexpr std::string_view kUtf16BigMark = "\xFE\xFF";

// A file that is no text.
struct OtherFormat {
  std::string_view magic;
  std::string_view name;    // "PATH is ..."
  std::string_view remedy;  // "...: write it as CSV"
  bool is_word = false;     // a text may begin with it, too
};

constexpr std::string_view kWriteCsv =
    "write it as CSV (in Python: pandas.read_parquet(path).to_csv('log.csv', index=False))";
constexpr std::string_view kWriteCsvElsewhere = "write it as CSV with the program that wrote it";
constexpr OtherFormat kOtherFormats[] = {
    {"PAR1", "a Parquet file", kWriteCsv, true},
    {"PARE", "an encrypted Parquet file", kWriteCsv, true},
    {"ORC", "an ORC file",
     "write it as CSV (in Python: pandas.read_orc(path).to_csv('log.csv', index=False))", true},
    {"ARROW1", "an Arrow file",
     "write it as CSV (in Python: pandas.read_feather(path).to_csv('log.csv', index=False))", true},
    {"FEA1", "a Feather file",
     "write it as CSV (in Python: pandas.read_feather(path).to_csv('log.csv', index=False))", true},
    {"Obj\x01"sv, "an Avro file", kWriteCsvElsewhere},
    {"PK\x03\x04"sv, "an Excel or zip file",
     "save it as CSV in the spreadsheet program, or unpack it with unzip"},
    {"\xD0\xCF\x11\xE0"sv, "an Excel file", "save it as CSV in the spreadsheet program"},
    {"BZh", "a bzip2 file", "unpack it with bunzip2", true},
    {"\xFD"
     "7zXZ\0"sv,
     "an xz file", "unpack it with unxz"},
    {"7z\xBC\xAF"sv, "a 7z file", "unpack it with 7z x"},
    {"\x04\x22\x4D\x18"sv, "an lz4 file", "unpack it with unlz4"},
    {"\x89HDF"sv, "an HDF5 file", kWriteCsvElsewhere},
    {"\x93NUMPY"sv, "a NumPy file", "write it as CSV (in Python: numpy.savetxt)"},
    {"SQLite format 3\0"sv, "an SQLite file", "write its table as CSV (sqlite3 -header -csv)"},
    {"\xFF\xFE\0\0"sv, "text in UTF-32", "write it in UTF-8"},
    {"\0\0\xFE\xFF"sv, "text in UTF-32", "write it in UTF-8"},
};

bool HasControlByte(std::string_view head) {
  return std::ranges::any_of(head, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\r' && c != '\n';
  });
}

// INVALID_ARGUMENT: a file that begins so is no text.
Status CheckFormat(const std::string& path, std::string_view head) {
  if (head.size() > kTarMagicAt && head.substr(kTarMagicAt).starts_with("ustar")) {
    return InvalidArgumentError(StrCat(path, " is a tar file: unpack it with tar -xf"));
  }
  for (const OtherFormat& format : kOtherFormats) {
    if (!head.starts_with(format.magic) || (format.is_word && !HasControlByte(head))) continue;
    return InvalidArgumentError(
        StrCat(path, " is ", format.name, ", which is not read: ", format.remedy));
  }
  return OkStatus();
}

void AppendUtf8(uint32_t character, std::string* text) {
  const auto append = [&](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (character < 0x80) return append(character);
  if (character < 0x800) {
    append(0xC0 | character >> 6);
  } else {
    if (character < 0x10000) {
      append(0xE0 | character >> 12);
    } else {
      append(0xF0 | character >> 18);
      append(0x80 | (character >> 12 & 0x3F));
    }
    append(0x80 | (character >> 6 & 0x3F));
  }
  append(0x80 | (character & 0x3F));
}

// The characters of UTF-16 in UTF-8.
class Utf16Source final : public ByteSource {
 public:
  Utf16Source(std::unique_ptr<ByteSource> source, bool is_big)
      : source_(std::move(source)), is_big_(is_big), input_(64 << 10) {}

  StatusOr<size_t> Read(std::span<std::byte> out) override {
    size_t size = 0;
    while (size < out.size()) {
      if (at_ == text_.size()) {
        if (is_at_end_) break;
        EMBANK_RETURN_IF_ERROR(Refill());
        continue;
      }
      const size_t count = std::min(out.size() - size, text_.size() - at_);
      const auto bytes = std::as_bytes(std::span(text_)).subspan(at_, count);
      std::ranges::copy(bytes, out.begin() + static_cast<ptrdiff_t>(size));
      at_ += count;
      size += count;
    }
    return size;
  }

  double FractionRead() const override { return source_->FractionRead(); }

 private:
  static constexpr uint32_t kReplacement = 0xFFFD;

  Status Refill() {
    EMBANK_ASSIGN_OR_RETURN(const size_t count, source_->Read(input_));
    is_at_end_ = count < input_.size();
    text_.clear();
    at_ = 0;
    for (size_t i = 0; i + 1 < count; i += 2) Take(UnitAt(i));
    if (!is_at_end_) return OkStatus();
    // Half of a character at the end.
    if (std::exchange(high_, std::nullopt)) AppendUtf8(kReplacement, &text_);
    if (count % 2 != 0) AppendUtf8(kReplacement, &text_);
    return OkStatus();
  }

  uint32_t UnitAt(size_t i) const {
    const auto first = std::to_integer<uint32_t>(input_[i]);
    const auto second = std::to_integer<uint32_t>(input_[i + 1]);
    return is_big_ ? first << 8 | second : second << 8 | first;
  }

  void Take(uint32_t unit) {
    const bool is_high = unit >= 0xD800 && unit < 0xDC00;
    const bool is_low = unit >= 0xDC00 && unit < 0xE000;
    const std::optional<uint32_t> high = std::exchange(high_, std::nullopt);
    if (high && is_low) {
      return AppendUtf8(0x10000 + ((*high - 0xD800) << 10) + (unit - 0xDC00), &text_);
    }
    if (high) AppendUtf8(kReplacement, &text_);
    if (is_high) {
      high_ = unit;
      return;
    }
    AppendUtf8(is_low ? kReplacement : unit, &text_);
  }

  const std::unique_ptr<ByteSource> source_;
  const bool is_big_;
  std::vector<std::byte> input_;  // of an even size: a unit is in one piece
  std::string text_;              // in UTF-8
  size_t at_ = 0;                 // so much of it was read
  std::optional<uint32_t> high_;  // a first surrogate, which waits for the second one
  bool is_at_end_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<ByteSource>> OpenTextSource(const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> bytes, OpenByteSource(path));
  auto source = std::make_unique<HeadedSource>(std::move(bytes), kHeadBytes);
  const std::string_view head = source->head();
  EMBANK_RETURN_IF_ERROR(CheckFormat(path, head));
  if (head.starts_with(kUtf8Mark)) source->Skip(kUtf8Mark.size());
  const bool is_big = head.starts_with(kUtf16BigMark);
  if (!is_big && !head.starts_with(kUtf16LittleMark)) {
    return std::unique_ptr<ByteSource>(std::move(source));
  }
  source->Skip(kUtf16BigMark.size());
  return std::unique_ptr<ByteSource>(std::make_unique<Utf16Source>(std::move(source), is_big));
}

}  // namespace embank
