// Finds the word that a user probably meant by a mistyped one.
#ifndef EMBANK_BASE_NEAREST_WORD_H_
#define EMBANK_BASE_NEAREST_WORD_H_

#include <string>
#include <string_view>
#include <vector>

namespace embank {

// The word of `words` that `typed` becomes with the fewest changes: a letter added, left out or
// replaced, or two neighbours swapped. Empty if every word needs changes to half of the letters
// typed or more.
std::string NearestWord(std::string_view typed, const std::vector<std::string>& words);

}  // namespace embank

#endif  // EMBANK_BASE_NEAREST_WORD_H_
