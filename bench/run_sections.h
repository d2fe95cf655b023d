// The results of a replay, of a survive run and of a tiers run, as sections of a page.
#ifndef EMBANK_BENCH_RUN_SECTIONS_H_
#define EMBANK_BENCH_RUN_SECTIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/html_report.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/replay.h"
#include "bench/survive_run.h"
#include "bench/tiers_run.h"

namespace embank {

// The command and time of a run.
struct RunOrigin {
  std::string command;  // as a shell takes it
  std::string time;
};

// Formats a command line for a shell, with the program's name without its folder.
std::string CommandText(std::span<const char* const> words);
// "2026-01-31 12:30 UTC".
std::string TimeText(int64_t seconds_since_1970);

HtmlSection ReplaySection(const Machine& machine, const ReplayOptions& options,
                          const ReplayReport& report, const RunOrigin& origin);
HtmlSection SurviveSection(const Machine& machine, const SurviveOptions& options,
                           const SurviveReport& report, const RunOrigin& origin);
HtmlSection TiersSection(const Machine& machine, const TiersOptions& options,
                         const TiersReport& report, const RunOrigin& origin);
// The facts of any run: machine, commit, command, time.
std::vector<std::pair<std::string, std::string>> OriginFacts(const Machine& machine,
                                                             const RunOrigin& origin);

}  // namespace embank

#endif  // EMBANK_BENCH_RUN_SECTIONS_H_
