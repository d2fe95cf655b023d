// The rules by which the lines of a click log are read. A model keeps those under which it was
// trained, so that a resumed training reads what it would have read.
#ifndef EMBANK_TRAIN_DATA_LOG_RULES_H_
#define EMBANK_TRAIN_DATA_LOG_RULES_H_

#include <cstdint>

namespace embank {

enum class LogRules : uint8_t {
  // An empty field alone is a missing value; a decimal id has digits alone; a last line without a
  // newline is broken, and so are blank lines at the end.
  kFirst = 1,
  // Missing and whole numbers are understood as spreadsheets, data frames and SQL engines write
  // them, and so are those lines.
  kSecond = 2,
};

inline constexpr LogRules kNewestRules = LogRules::kSecond;

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_LOG_RULES_H_
