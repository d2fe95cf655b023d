// A program of the project, run from the outside.
#ifndef EMBANK_TESTS_SUPPORT_PROGRAM_H_
#define EMBANK_TESTS_SUPPORT_PROGRAM_H_

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace embank::test {

struct Ended {
  int exit_code = -1;
  std::string output;  // standard output and error
};

// Runs the program that an environment variable names, which ctest sets, through a shell.
inline Ended RunProgram(const char* variable, const std::string& arguments) {
  const char* const program = std::getenv(variable);
  EXPECT_NE(program, nullptr) << variable << " must name the program (ctest sets it)";
  const std::string command = std::string(program == nullptr ? "" : program) + " " + arguments;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  Ended ended;
  std::array<char, 4096> part;
  for (size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    ended.output.append(part.data(), n);
  }
  ended.exit_code = WEXITSTATUS(pclose(pipe));
  return ended;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_PROGRAM_H_
