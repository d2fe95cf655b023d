// A value as JSON writes it, and as Python does in the headers of npy files.
#ifndef EMBANK_TOOLS_LITERAL_H_
#define EMBANK_TOOLS_LITERAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_or.h"

namespace embank {

enum class LiteralSyntax { kJson, kPython };

struct Literal {
  enum class Kind { kNull, kTruth, kNumber, kText, kList, kObject };

  Kind kind = Kind::kNull;
  bool truth = false;
  std::optional<uint64_t> number = {};  // without: it is negative, too large, or not whole
  std::string text = {};
  std::vector<Literal> items = {};
  std::vector<std::pair<std::string, Literal>> fields = {};

  // The field of an object. nullptr: there is none, or this is no object.
  const Literal* Field(std::string_view name) const;
  // The whole numbers of a list. None: this is no list of such numbers.
  std::optional<std::vector<uint64_t>> Numbers() const;
};

// Reads one value, which is all that `text` has besides blanks. kDataLoss: it is none, or an object
// has a name twice; the message names the byte.
StatusOr<Literal> ParseLiteral(std::string_view text, LiteralSyntax syntax);

}  // namespace embank

#endif  // EMBANK_TOOLS_LITERAL_H_
