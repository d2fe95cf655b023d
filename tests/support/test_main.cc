// Runs the tests of a program. EMBANK_TEST_SOURCES names the sources whose tests run, file names
// with ':' between them; without it all do. ctest thus runs parts of one program, each by itself.
// A test that --gtest_filter leaves out stays out.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace embank::test {
namespace {

bool Names(std::string_view sources, std::string_view path) {
  const std::string name(path.substr(path.rfind('/') + 1));
  return (':' + std::string(sources) + ':').find(':' + name + ':') != std::string::npos;
}

// A pattern for each test, or one for a suite all of whose tests are in them, or in others.
std::string Patterns(std::string_view sources, bool in_them) {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  std::string patterns;
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    std::string chosen;
    bool all = true;
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const bool choose = Names(sources, test.file()) == in_them;
      all = all && choose;
      if (choose) chosen += std::string(":") + suite.name() + "." + test.name();
    }
    patterns += all ? std::string(":") + suite.name() + ".*" : chosen;
  }
  return patterns;
}

std::string FilterOf(std::string_view sources, const std::string& filter) {
  if (filter == "*") return Patterns(sources, true);
  // The patterns after the '-' are of tests that are left out.
  const bool leaves_out = filter.find('-') != std::string::npos;
  return filter + (leaves_out ? "" : "-") + Patterns(sources, false);
}

}  // namespace
}  // namespace embank::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const char* sources = std::getenv("EMBANK_TEST_SOURCES")) {
    testing::GTEST_FLAG(filter) = embank::test::FilterOf(sources, testing::GTEST_FLAG(filter));
  }
  return RUN_ALL_TESTS();
}
