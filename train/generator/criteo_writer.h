// Writes a generated click log in Criteo's format.
#ifndef EMBANK_TRAIN_GENERATOR_CRITEO_WRITER_H_
#define EMBANK_TRAIN_GENERATOR_CRITEO_WRITER_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "train/generator/click_generator.h"

namespace embank {

// Appends the lines of the samples from `first` on. A reader of these lines gets the samples that
// Generate makes. Thread-safe.
// INVALID_ARGUMENT: the schema has bags, for which the format has no place.
Status AppendCriteoLines(const ClickGenerator& generator, uint64_t first, uint32_t samples,
                         std::string* text);

// Writes the lines of the first samples to a file, in constant memory. Replaces the file.
// INVALID_ARGUMENT as above. NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNKNOWN: the system
// does not write the file.
Status WriteCriteoLog(const ClickGenerator& generator, uint64_t samples, const std::string& path);

}  // namespace embank

#endif  // EMBANK_TRAIN_GENERATOR_CRITEO_WRITER_H_
