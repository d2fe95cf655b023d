// The machine of a measurement.
#ifndef EMBANK_BENCH_MACHINE_H_
#define EMBANK_BENCH_MACHINE_H_

#include <cstdint>
#include <string>

namespace embank {

struct Machine {
  std::string cpu;     // model name
  uint32_t cores = 0;  // that this process may run on
  uint64_t memory_bytes = 0;
  uint64_t memory_available_bytes = 0;
  std::string kernel;       // name and release
  std::string huge_pages;   // "always", "madvise", "never": transparent huge pages
  double load_average = 0;  // of the last minute: others on the machine make figures worse
};

// The facts that the system tells; "unknown" and 0 where it tells nothing.
Machine DescribeMachine();

}  // namespace embank

#endif  // EMBANK_BENCH_MACHINE_H_
