// The usual transform of counts: x becomes log(max(x, 0) + 1), in arithmetic of our own.
#ifndef EMBANK_TRAIN_DATA_LOG_VALUE_H_
#define EMBANK_TRAIN_DATA_LOG_VALUE_H_

#include <cstdint>

namespace embank {

// Transforms a whole number. Thread-safe.
float LogOfCount(int64_t count);
// Transforms a finite number. Thread-safe.
float LogOfNumber(double number);

}  // namespace embank

#endif  // EMBANK_TRAIN_DATA_LOG_VALUE_H_
