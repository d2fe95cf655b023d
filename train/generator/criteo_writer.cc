#include "train/generator/criteo_writer.h"

#include <charconv>

#include "base/check.h"
#include "base/str_cat.h"
#include "train/data/click_batch.h"

namespace embank {
namespace {

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

}  // namespace embank
