#include "train/generator/criteo_writer.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/errno_status.h"
#include "train/bytes/file_pointer.h"
#include "train/samples/click_batch.h"

namespace embank {
namespace {

// A megabyte of lines.
constexpr uint64_t kSamplesPerWrite = 4096;

void AppendInteger(int64_t value, std::string* text) {
  if (value == ClickGenerator::kMissingInteger) return;
  char digits[24];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, value);
  text->append(digits, end.ptr);
}

void AppendHex(uint64_t id, std::string* text) {
  if (id == kMissingId) return;
  EMBANK_CHECK(id >> 32 == 0);
  for (int32_t shift = 28; shift >= 0; shift -= 4) {
    text->push_back("0123456789abcdef"[id >> shift & 0xF]);
  }
}

}  // namespace

Status AppendCriteoLines(const ClickGenerator& generator, uint64_t first, uint32_t samples,
                         std::string* text) {
  ClickBatch batch;
  generator.Generate(first, samples, nullptr, &batch);
  for (const FeatureIds& feature : batch.features) {
    if (!feature.offsets.empty()) {
      return InvalidArgumentError(
          StrCat("schema ", generator.schema().name, " has bags: Criteo's format has none"));
    }
  }
  for (uint32_t s = 0; s < samples; ++s) {
    text->push_back(batch.labels[s] == 1.0f ? '1' : '0');
    for (uint32_t d = 0; d < generator.schema().dense; ++d) {
      text->push_back('\t');
      AppendInteger(generator.Integer(first + s, d), text);
    }
    for (const FeatureIds& feature : batch.features) {
      text->push_back('\t');
      AppendHex(feature.ids[s], text);
    }
    text->push_back('\n');
  }
  return OkStatus();
}

Status WriteCriteoLog(const ClickGenerator& generator, uint64_t samples, const std::string& path) {
  FilePointer file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return ErrnoStatus(errno, StrCat("cannot write ", path));
  std::string text;
  for (uint64_t first = 0; first < samples; first += kSamplesPerWrite) {
    const auto count = static_cast<uint32_t>(std::min(kSamplesPerWrite, samples - first));
    text.clear();
    EMBANK_RETURN_IF_ERROR(AppendCriteoLines(generator, first, count, &text));
    if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size()) {
      return ErrnoStatus(errno, StrCat("cannot write ", path));
    }
  }
  if (std::fclose(file.release()) != 0) return ErrnoStatus(errno, StrCat("cannot write ", path));
  return OkStatus();
}

}  // namespace embank
