#include "bench/kv_samples.h"

#include <algorithm>

#include "base/check.h"

namespace embank {
namespace {

double PositionRate(const KvSample& sample) {
  return static_cast<double>(sample.timing.positions) / sample.timing.seconds;
}
double UniqueRate(const KvSample& sample) {
  return static_cast<double>(sample.unique_keys) / sample.timing.seconds;
}

double PercentileUs(const KvSample& sample, double fraction) {
  return static_cast<double>(sample.timing.latency.PercentileNs(fraction)) * 1e-3;
}

template <typename Figure>
std::vector<double> Figures(const std::vector<KvSample>& samples, Figure figure) {
  std::vector<double> figures;
  for (const KvSample& sample : samples) figures.push_back(figure(sample));
  return figures;
}

}  // namespace

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void KvSamples::Record(const KvCase& which, const KvSample& sample) {
  samples_[which].push_back(sample);
}

std::optional<double> KvSamples::Ratio(const KvCase& which, const KvCase& other, Rate rate) const {
  const auto mine = samples_.find(which);
  const auto theirs = samples_.find(other);
  if (mine == samples_.end() || theirs == samples_.end()) return std::nullopt;
  EMBANK_CHECK(mine->second.size() == theirs->second.size());
  std::vector<double> ratios;
  for (size_t round = 0; round < mine->second.size(); ++round) {
    ratios.push_back(rate(mine->second[round]) / rate(theirs->second[round]));
  }
  return Median(ratios);
}

KvResult KvSamples::Result(const KvCase& which, uint32_t base_threads) const {
  const std::vector<KvSample>& samples = samples_.at(which);
  const bool is_update = which.phase == Phase::kUpdate;
  const bool is_limit = which.engine == kLimitName;
  const auto percentile_us = [&](double fraction) {
    return Median(Figures(samples, [&](const KvSample& s) { return PercentileUs(s, fraction); }));
  };
  const std::vector<double> rates = Figures(samples, PositionRate);
  KvResult result;
  result.engine = which.engine;
  result.phase = which.phase;
  result.threads = which.threads;
  result.batch = which.batch;
  result.rows_per_second = Median(rates);
  result.rows_per_second_min = *std::min_element(rates.begin(), rates.end());
  result.rows_per_second_max = *std::max_element(rates.begin(), rates.end());
  if (is_update) result.unique_rows_per_second = Median(Figures(samples, UniqueRate));
  if (!is_limit) {
    const KvCase limit{kLimitName, which.phase, which.threads, which.batch};
    result.fraction_of_limit = Ratio(which, limit, is_update ? UniqueRate : PositionRate);
  }
  if (which.threads != base_threads) {
    const KvCase base{which.engine, which.phase, base_threads, which.batch};
    result.speedup = Ratio(which, base, PositionRate);
  }
  const auto index_bytes = [](const KvSample& s) { return s.index_bytes_per_row; };
  const double index_bytes_per_row = Median(Figures(samples, index_bytes));
  if (index_bytes_per_row > 0.0) result.index_bytes_per_row = index_bytes_per_row;
  result.bytes_per_row =
      Median(Figures(samples, [](const KvSample& s) { return s.bytes_per_row; }));
  result.batch_p50_us = percentile_us(0.5);
  result.batch_p99_us = percentile_us(0.99);
  result.batch_p999_us = percentile_us(0.999);
  // A batch may take less than the clock can tell.
  result.tail = Median(Figures(samples, [](const KvSample& s) {
    return PercentileUs(s, 0.999) / std::max(1e-3, PercentileUs(s, 0.5));
  }));
  return result;
}

}  // namespace embank
