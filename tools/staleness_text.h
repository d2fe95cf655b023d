// The part of a report about steps whose updates of rows ended later.
#ifndef EMBANK_TOOLS_STALENESS_TEXT_H_
#define EMBANK_TOOLS_STALENESS_TEXT_H_

#include <string>

#include "train/trainer.h"
#include "train/trainer_options.h"

namespace embank {

// Returns lines of the summary of a run: how many updates lookups missed, and steps of rows that
// their tables had forgotten. Empty where there is neither.
std::string StalenessText(const Trainer& trainer, const HybridOptions& options);
// Returns the same as members of the run's JSON, each behind a comma.
std::string StalenessJson(const Trainer& trainer, const HybridOptions& options);

}  // namespace embank

#endif  // EMBANK_TOOLS_STALENESS_TEXT_H_
