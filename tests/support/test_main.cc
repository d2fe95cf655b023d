// Runs the tests of a program. EMBANK_TEST_SOURCES names the sources whose tests run, file names
// with ':' between them; without it all do. ctest thus runs parts of one program, each by itself.
// A test that --gtest_filter leaves out stays out. A filter with a pattern that chooses no test is
// an error: the test may have another name now.
#include <fnmatch.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
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

bool ChoosesATest(const std::string& pattern, const char* sources) {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (sources != nullptr && !Names(sources, test.file())) continue;
      const std::string name = std::string(suite.name()) + "." + test.name();
      if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
    }
  }
  return false;
}

// The first pattern of a filter that chooses none of the tests in `sources` (all, if nullptr), or
// "".
std::string UselessPattern(const std::string& filter, const char* sources) {
  std::istringstream patterns(filter.substr(0, filter.find('-')));
  for (std::string pattern; std::getline(patterns, pattern, ':');) {
    if (!pattern.empty() && !ChoosesATest(pattern, sources)) return pattern;
  }
  return "";
}

}  // namespace
}  // namespace embank::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* const sources = std::getenv("EMBANK_TEST_SOURCES");
  const std::string filter = testing::GTEST_FLAG(filter);
  const std::string useless = embank::test::UselessPattern(filter, sources);
  if (!useless.empty()) {
    std::printf("no test has a name like '%s'\n", useless.c_str());
    return 1;
  }
  if (sources != nullptr) testing::GTEST_FLAG(filter) = embank::test::FilterOf(sources, filter);
  return RUN_ALL_TESTS();
}
