// The results of a training, as a section of a page.
#ifndef EMBANK_BENCH_TRAINING_SECTION_H_
#define EMBANK_BENCH_TRAINING_SECTION_H_

#include <string>

#include "base/status_or.h"
#include "bench/html_report.h"
#include "bench/machine.h"
#include "bench/run_sections.h"

namespace embank {

// Makes a section of the figures that `embank-train --json FILE` has written. `origin` is that of
// the training. INVALID_ARGUMENT: the file has no such figures, or one of them is missing.
StatusOr<HtmlSection> TrainingSection(const Machine& machine, const std::string& json_path,
                                      const RunOrigin& origin);

}  // namespace embank

#endif  // EMBANK_BENCH_TRAINING_SECTION_H_
