// The values of fields: numbers, whole numbers and what stands for a missing one.
#ifndef EMBANK_TRAIN_DATA_FIELD_VALUE_H_
#define EMBANK_TRAIN_DATA_FIELD_VALUE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "train/data/log_rules.h"

namespace embank {

// Returns whether a field of numbers has none: it is empty, or, by the second rules, a word for a
// missing number ("NA", "NaN", "null", "None", "\N" and the like). Thread-safe, as all of these.
bool IsMissingNumber(std::string_view field, LogRules rules);

// Returns a finite number, or nothing where the text is none. By the second rules it may have a
// plus sign.
std::optional<double> ReadNumber(std::string_view text, LogRules rules);

// Returns whether a point in place of its comma makes the text a number.
bool HasDecimalComma(std::string_view text);

// A whole number of 64 bits.
struct WholeNumber {
  uint64_t bits = 0;  // of a negative one: its two's complement
  bool is_negative = false;
};

// Returns a whole number in decimal digits, or nothing where the text is none. By the second rules
// also a negative one from -2^63 on, and one below 2^53 as data frames write it: "12.0", "1e5".
std::optional<WholeNumber> ReadWholeNumber(std::string_view text, LogRules rules);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_FIELD_VALUE_H_
