#include "bench/hot_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/hot_stream.h"
#include "bench/trace.h"
#include "bench/workload.h"

namespace embank {
namespace {

constexpr std::array kTableSizes = {0.001, 0.01, 0.05, 0.10, 0.20};
// The three levels of a run of size k: k, this many times k, and the rest.
constexpr double kSecondLevel = 10.0;
// The sizes of table VI of the paper. Its 1 GiB has as many unique hits as 1 % of the rows of the
// preset "avg", so the sizes are scaled to 1 GiB = 1 %.
constexpr std::array<uint64_t, 5> kCurveMib = {256, 512, 1024, 2048, 4096};
constexpr double kShareOfGib = 0.01;

struct Coverage {
  const char* preset;
  double top;
  double share;
};
constexpr std::array<Coverage, 3> kCoverages = {
    {{"avg", 0.20, 0.70}, {"extreme", 0.20, 0.99}, {"kaggle", 0.068, 0.76}}};

// The sum of r^-s for r = 1 .. n: exact for the first ranks, their integral for the others.
double HarmonicSum(double n, double s) {
  constexpr double kExact = 1000.0;
  double sum = 0.0;
  for (double rank = 1.0; rank <= std::min(n, kExact); rank += 1.0) sum += std::pow(rank, -s);
  if (n <= kExact) return sum;
  const auto integral = [s](double x) {
    return std::abs(s - 1.0) < 1e-9 ? std::log(x) : std::pow(x, 1.0 - s) / (1.0 - s);
  };
  return sum + integral(n + 0.5) - integral(kExact + 0.5);
}

double ExponentOfPreset(const std::string& preset, uint64_t rows) {
  for (const Coverage& coverage : kCoverages) {
    if (coverage.preset == preset) return ExponentOfCoverage(rows, coverage.top, coverage.share);
  }
  return 0.0;
}

// One stream, and the sizes and policies that it goes through.
struct Scenario {
  std::optional<double> skew;
  uint64_t iters = 0;
  uint64_t drift_at = 0;
  std::vector<double> sizes;
  std::vector<HotPolicyKind> policies;
};

struct Contender {
  HotPolicyKind kind;
  double k;
  std::unique_ptr<HotPolicy> policy;
  std::array<HotHits, 3> hits;  // by part
};

uint32_t RowsOfShare(double k, uint64_t rows) {
  return static_cast<uint32_t>(std::max<int64_t>(1, std::llround(k * static_cast<double>(rows))));
}

HotPart PartOf(const Scenario& scenario, uint64_t iteration) {
  if (scenario.drift_at == 0 || iteration <= scenario.drift_at) return HotPart::kSteady;
  return iteration <= scenario.drift_at + kDriftedIters ? HotPart::kDrifted : HotPart::kSettled;
}

class HotRun {
 public:
  HotRun(const HotOptions& options, Progress* progress) : options_(options), progress_(progress) {}

  StatusOr<HotReport> Run() {
    if (!options_.trace_path.empty()) EMBANK_RETURN_IF_ERROR(ReadTrace());
    const std::vector<Scenario> scenarios = Scenarios();
    const bool has_curve = !options_.curve_csv.empty();
    const double runs = static_cast<double>(scenarios.size() + (has_curve ? 1 : 0));
    for (const Scenario& scenario : scenarios) {
      EMBANK_ASSIGN_OR_RETURN(const std::vector<Contender> contenders, Race(scenario, runs));
      AddFigures(scenario, contenders);
      AddLevels(scenario, contenders);
    }
    if (has_curve) EMBANK_RETURN_IF_ERROR(RunCurve(runs));
    return std::move(report_);
  }

 private:
  Status ReadTrace() {
    const StatusOr<std::unique_ptr<TraceReader>> reader =
        TraceReader::Open(options_.trace_path, options_.trace_format);
    if (!reader.ok()) {
      return InvalidArgumentError(StrCat("--trace: ", reader.status().message()));
    }
    KvOptions reading;
    reading.distribution = {Distribution::Kind::kTrace, 0.0, options_.trace_path};
    reading.trace_format = options_.trace_format;
    EMBANK_ASSIGN_OR_RETURN(const Workload workload, MakeWorkload(reading));
    absl::flat_hash_map<Key, uint32_t> numbers;
    trace_.reserve(workload.positions.size());
    for (const Key key : workload.positions) {
      const auto next = static_cast<uint32_t>(numbers.size());
      trace_.push_back(numbers.try_emplace(key, next).first->second);
    }
    trace_rows_ = static_cast<uint32_t>(numbers.size());
    return OkStatus();
  }

  bool IsTrace() const { return !options_.trace_path.empty(); }
  double Skew() const {
    return options_.preset.empty() ? options_.skew
                                   : ExponentOfPreset(options_.preset, options_.rows);
  }

  std::vector<Scenario> Scenarios() const {
    const std::vector<HotPolicyKind> policies(kHotPolicyKinds.begin(), kHotPolicyKinds.end());
    const std::vector<double> sizes(kTableSizes.begin(), kTableSizes.end());
    if (options_.all) {
      return {{0.79, 1000, 0, sizes, policies},
              {0.94, 600, 0, sizes, policies},
              {1.05, 1000, 0, sizes, policies},
              {1.05, 1200, 600, sizes, policies}};
    }
    Scenario scenario{.skew = Skew(),
                      .iters = options_.iters,
                      .drift_at = options_.drift_at,
                      .sizes = {options_.k},
                      .policies = policies};
    if (IsTrace()) scenario.skew.reset();
    return {scenario};
  }

  StatusOr<std::unique_ptr<HotStream>> StreamOf(const Scenario& scenario) const {
    if (IsTrace()) return HotStream::Trace(trace_, trace_rows_, options_.batch);
    return HotStream::Zipf({.rows = static_cast<uint32_t>(options_.rows),
                            .skew = *scenario.skew,
                            .batch = options_.batch,
                            .drift_at = scenario.drift_at,
                            .seed = options_.seed});
  }

  // Level sizes beside those of the table. The interpreter of Algorithm 1 is slow, and says nothing
  // new about them.
  static std::vector<double> LevelSizes(const Scenario& scenario) {
    std::vector<double> sizes;
    for (const double k : scenario.sizes) {
      const double both = k * (1.0 + kSecondLevel);
      if (scenario.drift_at == 0 && both < 1.0 && HasLevels(k)) sizes.push_back(both);
    }
    return sizes;
  }
  static bool HasLevels(double k) { return k <= 0.01; }

  std::vector<Contender> Contenders(const Scenario& scenario, const HotStream& stream) const {
    std::vector<Contender> contenders;
    const auto add = [&](HotPolicyKind kind, double k) {
      const HotShape shape{.rows = stream.rows(),
                           .hot_rows = RowsOfShare(k, stream.rows()),
                           .warmup_iters = options_.warmup_iters,
                           .flush_iters = options_.flush_iters};
      contenders.push_back({kind, k, MakeHotPolicy(kind, shape), {}});
      contenders.back().policy->Learn(stream.order());
    };
    for (const double k : scenario.sizes) {
      for (const HotPolicyKind kind : scenario.policies) add(kind, k);
    }
    for (const double k : LevelSizes(scenario)) {
      for (const HotPolicyKind kind : kLevelPolicies) add(kind, k);
    }
    return contenders;
  }

  StatusOr<std::vector<Contender>> Race(const Scenario& scenario, double runs) {
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<HotStream> stream, StreamOf(scenario));
    report_.rows = stream->rows();
    std::vector<Contender> contenders = Contenders(scenario, *stream);
    for (uint64_t iteration = 0; iteration < scenario.iters; ++iteration) {
      progress_->Update(
          (runs_done_ + static_cast<double>(iteration) / static_cast<double>(scenario.iters)) /
              runs,
          StrCat("iteration ", iteration));
      const HotBatch& batch = stream->Next();
      if (batch.ids.empty()) break;
      const bool drifts = scenario.drift_at != 0 && iteration == scenario.drift_at + 1;
      for (Contender& contender : contenders) {
        if (drifts) contender.policy->Learn(stream->order());
        const HotHits hits = contender.policy->Lookup(batch);
        if (iteration < options_.warmup_iters) continue;
        contender.hits[static_cast<size_t>(PartOf(scenario, iteration))].Add(hits);
      }
    }
    runs_done_ += 1.0;
    return contenders;
  }

  void AddFigures(const Scenario& scenario, const std::vector<Contender>& contenders) {
    for (const Contender& contender : contenders) {
      const bool is_asked_for = std::find(scenario.sizes.begin(), scenario.sizes.end(),
                                          contender.k) != scenario.sizes.end();
      for (const HotPart part : {HotPart::kSteady, HotPart::kDrifted, HotPart::kSettled}) {
        const HotHits& hits = contender.hits[static_cast<size_t>(part)];
        // The table's steady columns are those of the run without a drift.
        const bool is_told = options_.all && scenario.drift_at != 0 && part == HotPart::kSteady;
        if (!is_asked_for || hits.lookups == 0 || is_told) continue;
        report_.figures.push_back({contender.kind, part, contender.k, scenario.skew, hits,
                                   contender.policy->flushes(), contender.policy->moves(),
                                   contender.policy->early_epochs()});
      }
    }
  }

  // Two LRU caches, of which the second takes what the first one evicts and gives back what is
  // asked for, are one list: so the second level has what a larger cache has beside the first. The
  // top k of what the top k leaves is a larger top k likewise.
  void AddLevels(const Scenario& scenario, const std::vector<Contender>& contenders) {
    const auto share_of = [&](HotPolicyKind kind, double k) {
      for (const Contender& contender : contenders) {
        const HotHits& hits = contender.hits[0];
        if (contender.kind == kind && contender.k == k && hits.lookups > 0) {
          return static_cast<double>(hits.lookup_hits) / static_cast<double>(hits.lookups);
        }
      }
      return 0.0;
    };
    for (const double k : scenario.sizes) {
      const double both = k * (1.0 + kSecondLevel);
      if (scenario.drift_at != 0 || both >= 1.0 || !HasLevels(k)) continue;
      for (const HotPolicyKind kind : kLevelPolicies) {
        const double first = share_of(kind, k);
        const double two = share_of(kind, both);
        report_.levels.push_back(
            {kind, scenario.skew, k, k * kSecondLevel, first, two - first, 1.0 - two});
      }
    }
  }

  Status RunCurve(double runs) {
    Scenario scenario{.skew = IsTrace() ? std::nullopt : std::optional(Skew()),
                      .iters = options_.iters,
                      .drift_at = 0,
                      .sizes = {},
                      .policies = {HotPolicyKind::kEmbank, HotPolicyKind::kIdeal}};
    for (const uint64_t mib : kCurveMib) {
      scenario.sizes.push_back(static_cast<double>(mib) / 1024.0 * kShareOfGib);
    }
    EMBANK_ASSIGN_OR_RETURN(const std::vector<Contender> contenders, Race(scenario, runs));
    for (size_t i = 0; i < kCurveMib.size(); ++i) {
      report_.curve.push_back({kCurveMib[i], scenario.sizes[i], contenders[2 * i].hits[0],
                               contenders[2 * i + 1].hits[0]});
    }
    return OkStatus();
  }

  static constexpr std::array kLevelPolicies = {HotPolicyKind::kLru, HotPolicyKind::kEmbank,
                                                HotPolicyKind::kIdeal};

  const HotOptions& options_;
  Progress* const progress_;
  std::vector<uint32_t> trace_;
  uint32_t trace_rows_ = 0;
  double runs_done_ = 0.0;
  HotReport report_;
};

}  // namespace

const char* HotPartName(HotPart part) {
  constexpr std::array kNames = {"steady", "drifted", "settled"};
  return kNames[static_cast<size_t>(part)];
}

double ExponentOfCoverage(uint64_t rows, double top, double coverage) {
  const auto n = static_cast<double>(rows);
  double low = 0.0;
  double high = 10.0;
  for (int i = 0; i < 60; ++i) {
    const double s = (low + high) / 2;
    (HarmonicSum(n * top, s) < coverage * HarmonicSum(n, s) ? low : high) = s;
  }
  return (low + high) / 2;
}

StatusOr<HotReport> RunHot(const HotOptions& options, Progress* progress) {
  return HotRun(options, progress).Run();
}

}  // namespace embank
