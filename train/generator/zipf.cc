#include "train/generator/zipf.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/numeric.h"
#include "base/status.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// Fewer than half of all attempts are rejected whatever n and s: 2^-128 is never.
constexpr uint64_t kAttemptsMax = 128;

// 1 / (2 i + 1), for artanh(x) / x = sum x^2i / (2 i + 1): the terms left out are below
// (1/9)^17 / 35 = 2e-18.
constexpr std::array<double, 17> kArtanhTerms = [] {
  std::array<double, 17> terms{};
  for (uint32_t i = 0; i < terms.size(); ++i) terms[i] = 1.0 / static_cast<double>(2 * i + 1);
  return terms;
}();

// log(1 + t) / t, also where t is small or 0; t > -1.
double LogRatio(double t) {
  if (std::abs(t) > 0.5) return NaturalLog(1.0 + t) / t;
  const double half = t / (2.0 + t);  // log(1 + t) = 2 artanh(t / (2 + t)), and |half| <= 1/3
  const double square = half * half;
  double sum = kArtanhTerms.back();
  for (size_t i = kArtanhTerms.size() - 1; i-- > 0;) sum = sum * square + kArtanhTerms[i];
  return 2.0 / (2.0 + t) * sum;
}

}  // namespace

StatusOr<ZipfSampler> ZipfSampler::Create(uint64_t n, double s, uint64_t seed) {
  if (n == 0 || n > kRankMax) {
    return InvalidArgumentError(StrCat("zipf: n = ", n, ": must be 1..", kRankMax));
  }
  if (!(s >= 0.0 && s <= kExponentMax)) {
    return InvalidArgumentError(StrCat("zipf: s = ", s, ": must be 0..", kExponentMax));
  }
  return ZipfSampler(n, s, seed);
}

ZipfSampler::ZipfSampler(uint64_t n, double s, uint64_t seed)
    : n_(n),
      s_(s),
      random_(seed),
      integral_low_(Integral(1.5) - 1.0),
      integral_high_(Integral(static_cast<double>(n) + 0.5)),
      accept_below_(2.0 - IntegralInverse(Integral(2.5) - Density(2.0))) {}

double ZipfSampler::Density(double x) const { return Exponential(-s_ * NaturalLog(x)); }

double ZipfSampler::Integral(double x) const {
  const double log_x = NaturalLog(x);
  return ExponentialRatio((1.0 - s_) * log_x) * log_x;
}

double ZipfSampler::IntegralInverse(double y) const {
  // Rounding may carry the argument to the pole, which stands for the largest rank.
  const double t = std::max(y * (1.0 - s_), -1.0 + 0x1p-53);
  return Exponential(LogRatio(t) * y);
}

uint64_t ZipfSampler::Rank(uint64_t position) const {
  const CounterRandom attempts(random_.Bits(position));
  return Draw(attempts.UnitDouble(0), attempts);
}

uint64_t ZipfSampler::Draw(double first, CounterRandom attempts) const {
  const auto last = static_cast<double>(n_);
  for (uint64_t attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const double unit = attempt == 0 ? first : attempts.UnitDouble(attempt);
    const double y = integral_high_ + unit * (integral_low_ - integral_high_);
    const double x = IntegralInverse(y);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, last);
    if (rank - x <= accept_below_ || y >= Integral(rank + 0.5) - Density(rank)) {
      return static_cast<uint64_t>(rank);
    }
  }
  EMBANK_CHECK(false && "a rank is accepted within kAttemptsMax");
  return 1;
}

void ZipfSampler::Ranks(uint64_t first, std::span<uint64_t> ranks) const {
  for (uint64_t i = 0; i < ranks.size(); ++i) ranks[i] = Rank(first + i);
}

}  // namespace embank
