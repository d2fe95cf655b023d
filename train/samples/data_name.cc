#include "train/samples/data_name.h"

#include "base/crc32c.h"
#include "base/str_cat.h"

namespace embank {
namespace {

bool HasSameHead(const FileHead& a, const FileHead& b) {
  return a.bytes == b.bytes && a.crc32c == b.crc32c;
}

// Pipes and older checkpoints have no size.
bool MayHaveSameSize(const FileHead& a, const FileHead& b) {
  return a.file_bytes == b.file_bytes || a.file_bytes == 0 || b.file_bytes == 0;
}

}  // namespace

FileHead HeadOf(std::span<const std::byte> bytes) {
  return {.bytes = bytes.size(), .crc32c = ExtendCrc32c(0, bytes)};
}

bool BeginWith(const DataName& data, const DataName& part) {
  if (data.words != part.words || data.shuffle != part.shuffle ||
      part.files.size() > data.files.size()) {
    return false;
  }
  for (size_t i = 0; i < part.files.size(); ++i) {
    const bool is_last = i + 1 == part.files.size();
    if (!HasSameHead(part.files[i], data.files[i])) return false;
    if (!is_last && !MayHaveSameSize(part.files[i], data.files[i])) return false;
  }
  return true;
}

std::string TextOf(const DataName& data) {
  std::string text = data.words;
  if (!data.files.empty()) {
    std::string heads;
    uint64_t bytes = 0;
    for (const FileHead& head : data.files) {
      StrAppend(&heads, head.bytes, " ", head.crc32c, "\n");
      if (&head == &data.files.back() || head.file_bytes == 0) continue;
      StrAppend(&heads, head.file_bytes, "\n");
      bytes += head.file_bytes;
    }
    StrAppend(&text, " of ", data.files.size(), data.files.size() == 1 ? " file" : " files",
              " with the CRC-32C ", ExtendCrc32c(0, std::as_bytes(std::span(heads))));
    if (bytes > 0) StrAppend(&text, ", ", bytes, " bytes before the last one");
  }
  if (data.shuffle > 0) StrAppend(&text, ", shuffled within ", data.shuffle);
  return text;
}

}  // namespace embank
