// The results of a run, for people (a table of at most 80 columns) and for programs (JSON).
#ifndef EMBANK_BENCH_REPORT_H_
#define EMBANK_BENCH_REPORT_H_

#include <string>

#include "base/status.h"
#include "bench/kv_run.h"
#include "bench/limits_run.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/replay.h"
#include "bench/traces_run.h"

namespace embank {

// Tables, with a line about the machine and the parameters above them.
std::string KvTable(const Machine& machine, const KvOptions& options, const KvReport& report);
std::string ReplayTable(const Machine& machine, const ReplayOptions& options,
                        const ReplayReport& report);
std::string LimitsTable(const Machine& machine, const LimitsReport& report);
std::string TracesTable(const Machine& machine, const TracesOptions& options,
                        const TracesReport& report);

// Everything that is known: {"machine", "commit", "parameters", "runs": [...]}, and for kv also
// "limits", the figures of the machine in place of an engine.
std::string KvJson(const Machine& machine, const KvOptions& options, const KvReport& report);
std::string ReplayJson(const Machine& machine, const ReplayOptions& options,
                       const ReplayReport& report);
// {"machine", "commit", "parameters", "limits": [...]}.
std::string LimitsJson(const Machine& machine, const LimitsOptions& options,
                       const LimitsReport& report);
// {"machine", "commit", "parameters", "runs": [...], "left_out": [...]}.
std::string TracesJson(const Machine& machine, const TracesOptions& options,
                       const TracesReport& report);

// Checks that `path` can be written, before a long run is wasted. Changes nothing.
Status CheckWritable(const std::string& path);

// Replaces the file. The status names it.
Status WriteFile(const std::string& path, const std::string& text);

}  // namespace embank

#endif  // EMBANK_BENCH_REPORT_H_
