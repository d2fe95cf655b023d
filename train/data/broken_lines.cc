#include "train/data/broken_lines.h"

#include <algorithm>
#include <string_view>

#include "base/str_cat.h"
#include "base/utf8.h"

namespace embank {
namespace {

constexpr size_t kShownCharacters = 40;

bool IsNumber(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

std::string TextOf(const BrokenKind& kind) {
  std::string text = StrCat(kind.file, ", line ", kind.number, ": ", DefectText(kind.defect));
  const BadField& bad = kind.bad;
  if (!bad.text.empty() || !bad.column.empty()) StrAppend(&text, ": ", ShownText(bad.text));
  if (!bad.column.empty()) {
    const char* const mark = IsNumber(bad.column) ? "" : "'";
    StrAppend(&text, " in column ", mark, bad.column, mark);
  }
  if (kind.count > 1) StrAppend(&text, " (", kind.count, " such lines)");
  return text;
}

}  // namespace

std::string ShownText(std::string_view text, char mark) {
  std::string quoted(1, mark);
  for (size_t shown = 0; !text.empty() && shown < kShownCharacters; ++shown) {
    const auto byte = static_cast<uint8_t>(text[0]);
    const size_t bytes = Utf8CharacterBytes(text);
    if (byte == '\t') {
      quoted += "\\t";
    } else if (text[0] == mark || byte == '\\') {
      quoted += '\\';
      quoted += text[0];
    } else if (bytes == 0 || byte < ' ' || byte == 0x7F) {
      quoted += StrCat("\\x", Hex(uint32_t{byte}, 2));
    } else {
      quoted += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  if (!text.empty()) quoted += "...";
  return quoted + mark;
}

std::vector<std::string> TextsOf(const BrokenLines& broken) {
  std::vector<std::string> texts;
  uint64_t others = broken.count;
  for (const BrokenKind& kind : broken.kinds) {
    texts.push_back(TextOf(kind));
    others -= kind.count;
  }
  if (others > 0) texts.push_back(StrCat(others, " lines of other kinds"));
  return texts;
}

void BrokenLines::Add(LineDefect defect, const BadField& bad, const std::string& file,
                      uint64_t number) {
  ++count;
  const auto kind = std::ranges::find_if(
      kinds, [&](const BrokenKind& k) { return k.defect == defect && k.bad.column == bad.column; });
  if (kind != kinds.end()) {
    ++kind->count;
  } else if (kinds.size() < kNamedMax) {
    kinds.push_back({defect, bad, file, number});
  }
}

}  // namespace embank
