// The results of `embank-bench hot` for people, programs and pictures.
#ifndef EMBANK_BENCH_HOT_REPORT_H_
#define EMBANK_BENCH_HOT_REPORT_H_

#include <string>

#include "bench/hot_run.h"
#include "bench/machine.h"
#include "bench/options.h"

namespace embank {

// Tables of hit ratios, of three levels, of the model of the link, and of the curve.
std::string HotTable(const Machine& machine, const HotOptions& options, const HotReport& report);

// {"machine", "commit", "parameters", "runs": [...], "levels": [...], "link_model": [...],
// "curve": [...]}.
std::string HotJson(const Machine& machine, const HotOptions& options, const HotReport& report);

// The curve: lines of hbm_mib,k,policy,hit_ratio_lookups,hit_ratio_unique.
std::string HotCurveCsv(const HotReport& report);
// A whole SVG file with colours of its own.
std::string HotCurveSvg(const HotReport& report);

}  // namespace embank

#endif  // EMBANK_BENCH_HOT_REPORT_H_
