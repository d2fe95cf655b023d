// A table for people: columns as wide as their contents.
#ifndef EMBANK_TOOLS_TEXT_TABLE_H_
#define EMBANK_TOOLS_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace embank {

class TextTable {
 public:
  // The first column is aligned to the left, the others to the right.
  explicit TextTable(std::vector<std::string> titles) : rows_{std::move(titles)} {}
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Lines, each indented by two.
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Formats a number with so many decimals, 0 to 9.
std::string DecimalText(double number, int decimals);

// Formats a number of bytes in at most five digits and a unit: "512 B", "12.5 MiB".
std::string BytesText(uint64_t bytes);

// Replaces bytes that a terminal does not show as they are by '?'.
std::string Printable(const std::string& text);

}  // namespace embank

#endif  // EMBANK_TOOLS_TEXT_TABLE_H_
