#include "bench/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace embank::machine_test {
namespace {

TEST(Machine, IsDescribed) {
  const Machine machine = DescribeMachine();
  EXPECT_FALSE(machine.cpu.empty());
  // The cores that the process may use, and all cores.
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  EXPECT_EQ(machine.cores, static_cast<uint32_t>(CPU_COUNT(&cores)));
  EXPECT_GT(machine.memory_bytes, uint64_t{64} << 20);
  EXPECT_GT(machine.memory_available_bytes, 0u);
  EXPECT_LE(machine.memory_available_bytes, machine.memory_bytes);
  EXPECT_EQ(machine.kernel.rfind("Linux ", 0), 0u);
  EXPECT_FALSE(machine.huge_pages.empty());
  EXPECT_EQ(machine.huge_pages.find('['), std::string::npos);
}

}  // namespace
}  // namespace embank::machine_test
