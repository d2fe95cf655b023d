#include "bench/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/numbers.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// The text after `label` and separators on its line of a file like /proc/cpuinfo.
std::string FieldOfFile(const char* path, const std::string& label) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(label, 0) != 0) continue;
    const size_t value = line.find_first_not_of(" \t:", label.size());
    if (value != std::string::npos) return line.substr(value);
  }
  return "";
}

uint64_t MemoryFieldBytes(const std::string& label) {
  return std::strtoull(FieldOfFile("/proc/meminfo", label).c_str(), nullptr, 10) * 1024;
}

// The word in brackets of "always [madvise] never".
std::string HugePageMode() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos) return "unknown";
  return line.substr(open + 1, close - open - 1);
}

uint32_t CoresOfProcess() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

}  // namespace

Machine DescribeMachine() {
  Machine machine;
  machine.cpu = FieldOfFile("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = "unknown";
  machine.cores = CoresOfProcess();
  machine.memory_bytes = MemoryFieldBytes("MemTotal");
  machine.memory_available_bytes = MemoryFieldBytes("MemAvailable");
  utsname name{};
  machine.kernel = uname(&name) == 0 ? StrCat(name.sysname, " ", name.release) : "unknown";
  machine.huge_pages = HugePageMode();
  if (getloadavg(&machine.load_average, 1) != 1) machine.load_average = 0;
  return machine;
}

}  // namespace embank
