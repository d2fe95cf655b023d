#include "tools/literal.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <set>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/utf8.h"

namespace embank {
namespace {

constexpr int kDepthMax = 32;

class LiteralParser {
 public:
  LiteralParser(std::string_view text, LiteralSyntax syntax)
      : text_(text), is_json_(syntax == LiteralSyntax::kJson) {}

  StatusOr<Literal> ParseAll() {
    EMBANK_ASSIGN_OR_RETURN(Literal value, Parse(0));
    SkipBlanks();
    if (at_ < text_.size()) return Wrong("is more than one value");
    return value;
  }

 private:
  Status Wrong(std::string_view what) const {
    return DataLossError(StrCat("byte ", at_, " of the text ", what));
  }
  void SkipBlanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool Skip(std::string_view word) {
    SkipBlanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  StatusOr<Literal> Parse(int depth) {
    if (depth > kDepthMax) return Wrong("is too deep within lists and objects");
    if (Skip("{")) return ParseObject(depth);
    if (Skip("[")) return ParseList(depth, "]");
    if (!is_json_ && Skip("(")) return ParseList(depth, ")");
    if (Skip("\"")) return ParseText('"');
    if (!is_json_ && Skip("'")) return ParseText('\'');
    if (Skip(is_json_ ? "null" : "None")) return Literal();
    for (const bool truth : {false, true}) {
      const char* const word = is_json_ ? (truth ? "true" : "false") : (truth ? "True" : "False");
      if (Skip(word)) return Literal{.kind = Literal::Kind::kTruth, .truth = truth};
    }
    return ParseNumber();
  }

  StatusOr<Literal> ParseObject(int depth) {
    Literal object = {.kind = Literal::Kind::kObject};
    std::set<std::string> names;
    while (!Skip("}")) {
      if (!object.fields.empty()) {
        if (!Skip(",")) return Wrong("must be a comma or the end of an object");
        if (!is_json_ && Skip("}")) break;
      }
      const bool is_double = Skip("\"");
      if (!is_double && (is_json_ || !Skip("'"))) return Wrong("must be a name");
      EMBANK_ASSIGN_OR_RETURN(Literal name, ParseText(is_double ? '"' : '\''));
      if (!names.insert(name.text).second) {
        return Wrong(StrCat("is after the name ", name.text, ", which is there twice"));
      }
      if (!Skip(":")) return Wrong("must be a colon");
      EMBANK_ASSIGN_OR_RETURN(Literal value, Parse(depth + 1));
      object.fields.emplace_back(std::move(name.text), std::move(value));
    }
    return object;
  }

  StatusOr<Literal> ParseList(int depth, std::string_view end) {
    Literal list = {.kind = Literal::Kind::kList};
    while (!Skip(end)) {
      if (!list.items.empty()) {
        if (!Skip(",")) return Wrong("must be a comma or the end of a list");
        if (!is_json_ && Skip(end)) break;
      }
      EMBANK_ASSIGN_OR_RETURN(Literal item, Parse(depth + 1));
      list.items.push_back(std::move(item));
    }
    return list;
  }

  StatusOr<Literal> ParseText(char quote) {
    Literal value = {.kind = Literal::Kind::kText};
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\') {
        EMBANK_RETURN_IF_ERROR(ParseEscape(&value.text));
        continue;
      }
      const size_t bytes = Utf8CharacterBytes(text_.substr(at_));
      if (bytes == 0 || static_cast<unsigned char>(text_[at_]) < 0x20) {
        return Wrong("is no character of a string");
      }
      value.text += text_.substr(at_, bytes);
      at_ += bytes;
    }
    if (at_ == text_.size()) return Wrong("is the end of the text within a string");
    ++at_;
    return value;
  }

  StatusOr<uint32_t> ParseUnit() {
    uint32_t unit = 0;
    const std::string_view digits = text_.substr(at_, 6);
    const char* const end = digits.data() + digits.size();
    if (digits.size() < 6 || !digits.starts_with("\\u") ||
        std::from_chars(digits.data() + 2, end, unit, 16).ptr != end) {
      return Wrong("must be an escape \\u with four digits");
    }
    at_ += digits.size();
    return unit;
  }

  Status ParseEscape(std::string* text) {
    constexpr std::string_view kLetters = "\"\\/bfnrt'";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t'";
    const size_t letter = at_ + 1 < text_.size() ? kLetters.find(text_[at_ + 1]) : kLetters.npos;
    if (letter < kLetters.size() - (is_json_ ? 1 : 0)) {
      *text += kMeanings[letter];
      at_ += 2;
      return OkStatus();
    }
    EMBANK_ASSIGN_OR_RETURN(uint32_t code, ParseUnit());
    if (code >= 0xD800 && code < 0xDC00) {
      EMBANK_ASSIGN_OR_RETURN(const uint32_t low, ParseUnit());
      if (low < 0xDC00 || low > 0xDFFF) return Wrong("is after half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return Wrong("is after half of a surrogate pair");
    }
    AppendCharacter(code, text);
    return OkStatus();
  }

  static void AppendCharacter(uint32_t code, std::string* text) {
    const auto tail = [&](uint32_t shift) {
      *text += static_cast<char>(0x80 | ((code >> shift) & 0x3F));
    };
    if (code < 0x80) {
      *text += static_cast<char>(code);
    } else if (code < 0x800) {
      *text += static_cast<char>(0xC0 | (code >> 6));
      tail(0);
    } else {
      *text += static_cast<char>(code < 0x10000 ? 0xE0 | (code >> 12) : 0xF0 | (code >> 18));
      if (code >= 0x10000) tail(12);
      tail(6);
      tail(0);
    }
  }

  StatusOr<Literal> ParseNumber() {
    const size_t end = text_.find_first_not_of("+-.0123456789eE", at_);
    const std::string_view digits = text_.substr(at_, end == text_.npos ? end : end - at_);
    const char* const digits_end = digits.data() + digits.size();
    double real = 0.0;
    const auto read = std::from_chars(digits.data(), digits_end, real);
    const bool has_zero_in_front = digits.size() > 1 && digits[0] == '0' && digits[1] != '.' &&
                                   digits[1] != 'e' && digits[1] != 'E';
    if (digits.empty() || read.ptr != digits_end || has_zero_in_front) {
      return Wrong("is no value");
    }
    Literal value = {.kind = Literal::Kind::kNumber};
    uint64_t whole = 0;
    const auto read_whole = std::from_chars(digits.data(), digits_end, whole);
    if (read_whole.ec == std::errc() && read_whole.ptr == digits_end) value.number = whole;
    at_ += digits.size();
    return value;
  }

  const std::string_view text_;
  const bool is_json_;
  size_t at_ = 0;
};

}  // namespace

const Literal* Literal::Field(std::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (field == name) return &value;
  }
  return nullptr;
}

std::optional<std::vector<uint64_t>> Literal::Numbers() const {
  if (kind != Kind::kList) return std::nullopt;
  std::vector<uint64_t> numbers;
  for (const Literal& item : items) {
    if (!item.number.has_value()) return std::nullopt;
    numbers.push_back(*item.number);
  }
  return numbers;
}

StatusOr<Literal> ParseLiteral(std::string_view text, LiteralSyntax syntax) {
  return LiteralParser(text, syntax).ParseAll();
}

}  // namespace embank
