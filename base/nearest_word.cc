#include "base/nearest_word.h"

#include <algorithm>
#include <cstddef>

namespace embank {
namespace {

// Optimal string alignment: cell (i, j) is the number of changes from the first i letters of `from`
// to the first j of `to`. Only the last three rows are kept.
size_t Changes(std::string_view from, std::string_view to) {
  std::vector<size_t> before_last(to.size() + 1);
  std::vector<size_t> last(to.size() + 1);
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[to.size()];
}

}  // namespace

std::string NearestWord(std::string_view typed, const std::vector<std::string>& words) {
  std::string nearest;
  size_t fewest = (typed.size() + 1) / 2;
  for (const std::string& word : words) {
    const size_t changes = Changes(typed, word);
    if (changes >= fewest) continue;
    fewest = changes;
    nearest = word;
  }
  return nearest;
}

}  // namespace embank
