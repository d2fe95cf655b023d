// The measurements of the rounds of a kv run, and their medians.
#ifndef EMBANK_BENCH_KV_SAMPLES_H_
#define EMBANK_BENCH_KV_SAMPLES_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/phase_run.h"

namespace embank {

// The machine itself, where engines are named.
inline constexpr char kLimitName[] = "limit";

// Measurements that are made once per round.
struct KvCase {
  std::string engine;
  Phase phase = Phase::kFill;
  uint32_t threads = 1;
  uint64_t batch = 1;
  auto operator<=>(const KvCase&) const = default;
};

// One round of one case.
struct KvSample {
  PhaseTiming timing;
  uint64_t unique_keys = 0;          // of all batches; updates only
  double index_bytes_per_row = 0.0;  // 0: not known
  double bytes_per_row = 0.0;
};

// One case: medians over the rounds, and the two extremes.
struct KvResult {
  std::string engine;
  Phase phase = Phase::kFill;
  uint32_t threads = 1;
  uint64_t batch = 1;
  double rows_per_second = 0.0;  // positions
  double rows_per_second_min = 0.0;
  double rows_per_second_max = 0.0;
  std::optional<double> unique_rows_per_second;  // updates: distinct keys of each batch
  std::optional<double> fraction_of_limit;       // of the limit of the same round
  std::optional<double> speedup;              // over the first number of threads, in the same round
  std::optional<double> index_bytes_per_row;  // largest in the fill; none up to a million rows
  double bytes_per_row = 0.0;                 // all memory after the fill
  double batch_p50_us = 0.0;
  double batch_p99_us = 0.0;
  double batch_p999_us = 0.0;
  double tail = 0.0;  // p99.9 / p50 of the same round
};

// The median of a list that is not empty: the lower one of an even number.
double Median(std::vector<double> values);

class KvSamples {
 public:
  // Each case is recorded once in every round.
  void Record(const KvCase& which, const KvSample& sample);

  bool Has(const KvCase& which) const { return samples_.contains(which); }

  // `which` was recorded. `base_threads`: what its speedup compares with.
  KvResult Result(const KvCase& which, uint32_t base_threads) const;

 private:
  // The median over the rounds of rate(which) / rate(other), if both were recorded.
  using Rate = double (*)(const KvSample&);
  std::optional<double> Ratio(const KvCase& which, const KvCase& other, Rate rate) const;

  std::map<KvCase, std::vector<KvSample>> samples_;  // by round
};

}  // namespace embank

#endif  // EMBANK_BENCH_KV_SAMPLES_H_
