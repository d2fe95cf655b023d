// The measurements of the rounds of an ssd run, and their medians.
#ifndef EMBANK_BENCH_SSD_SAMPLES_H_
#define EMBANK_BENCH_SSD_SAMPLES_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/options.h"

namespace embank {

// Figures by name; bench/README.md says what they mean. A phase has some of them.
using SsdFigures = std::map<std::string, double>;

// All names, in the order in which they are shown.
std::span<const char* const> SsdFigureNames();

// Measurements that are made once per round.
struct SsdCase {
  SsdPhase phase = SsdPhase::kFill;
  std::string engine;
  uint32_t threads = 1;
  auto operator<=>(const SsdCase&) const = default;
};

// One case: medians over the rounds, and the extremes of its rate.
struct SsdResult {
  SsdCase which;
  SsdFigures figures;

  std::optional<double> Figure(const std::string& name) const;
};

class SsdSamples {
 public:
  // Adds a round's figures.
  void Record(const SsdCase& which, const SsdFigures& figures);

  // The cases of a phase and an engine, by threads.
  std::vector<SsdResult> Results(SsdPhase phase, const std::string& engine) const;

 private:
  std::map<SsdCase, std::vector<SsdFigures>> samples_;  // by round
};

}  // namespace embank

#endif  // EMBANK_BENCH_SSD_SAMPLES_H_
