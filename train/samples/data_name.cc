#include "train/samples/data_name.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/str_cat.h"

namespace embank {

FileHead HeadOf(std::span<const std::byte> bytes) {
  return {.bytes = bytes.size(), .crc32c = ExtendCrc32c(0, bytes)};
}

bool BeginWith(const DataName& data, const DataName& part) {
  return data.words == part.words && data.shuffle == part.shuffle &&
         part.files.size() <= data.files.size() &&
         std::equal(part.files.begin(), part.files.end(), data.files.begin());
}

std::string TextOf(const DataName& data) {
  std::string text = data.words;
  if (!data.files.empty()) {
    std::string heads;
    for (const FileHead& head : data.files) StrAppend(&heads, head.bytes, " ", head.crc32c, "\n");
    StrAppend(&text, " of ", data.files.size(), data.files.size() == 1 ? " file" : " files",
              " with the CRC-32C ", ExtendCrc32c(0, std::as_bytes(std::span(heads))));
  }
  if (data.shuffle > 0) StrAppend(&text, ", shuffled within ", data.shuffle);
  return text;
}

}  // namespace embank
