// Hit ratios of the policies of a hot set, in simulation: table 5.2's measurement.
#ifndef EMBANK_BENCH_HOT_RUN_H_
#define EMBANK_BENCH_HOT_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status_or.h"
#include "bench/hot_policy.h"
#include "bench/options.h"
#include "bench/progress.h"

namespace embank {

// steady: behind the warm-up, up to the drift. drifted: the 300 iterations behind it. settled: all
// later ones.
enum class HotPart { kSteady, kDrifted, kSettled };
inline constexpr uint64_t kDriftedIters = 300;

// "steady", ...
const char* HotPartName(HotPart part);

// One policy in one part of a run.
struct HotFigure {
  HotPolicyKind policy = HotPolicyKind::kIdeal;
  HotPart part = HotPart::kSteady;
  double k = 0.0;
  std::optional<double> skew;  // none: a trace
  HotHits hits;
  // The next three are those of the whole run.
  uint64_t flushes = 0;
  uint64_t moves = 0;
  uint64_t early_epochs = 0;
};

// Hits of one of three levels / all, of rows that are in one level only.
struct HotLevels {
  HotPolicyKind policy = HotPolicyKind::kIdeal;
  std::optional<double> skew;
  double k_first = 0.0;
  double k_second = 0.0;
  double first = 0.0;  // shares of the lookups
  double second = 0.0;
  double third = 0.0;
};

// The hit ratio with a size of HBM.
struct HotCurvePoint {
  uint64_t hbm_mib = 0;  // of the paper's store
  double k = 0.0;        // its share of the rows
  HotHits embank;
  HotHits ideal;
};

struct HotReport {
  uint64_t rows = 0;
  std::vector<HotFigure> figures;
  std::vector<HotLevels> levels;
  std::vector<HotCurvePoint> curve;
};

// Zipf's exponent with which the first `top` of all ranks has the share `coverage`; 0 < top < 1.
double ExponentOfCoverage(uint64_t rows, double top, double coverage);

// Runs all policies on the same batches, on one thread. `options` are valid. The statuses of
// TraceReader.
StatusOr<HotReport> RunHot(const HotOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_HOT_RUN_H_
