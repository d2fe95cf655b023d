// embank-train as a program, and the files that it reads and writes.
#ifndef EMBANK_TESTS_TRAIN_TRAIN_PROGRAM_H_
#define EMBANK_TESTS_TRAIN_TRAIN_PROGRAM_H_

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/program.h"

namespace embank::test {

inline Ended Train(const std::string& arguments) { return RunProgram("EMBANK_TRAIN", arguments); }

inline std::string TextIn(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// All files of a directory and their bytes.
inline std::map<std::string, std::string> FilesIn(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    files[entry.path().filename().string()] = TextIn(entry.path().string());
  }
  return files;
}

inline size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// The number behind a name in JSON.
inline double NumberOf(const std::string& json, const std::string& name) {
  const size_t at = json.find("\"" + name + "\": ");
  return at == std::string::npos ? -1.0 : std::stod(json.substr(at + name.size() + 4));
}

inline void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

// Returns whether a process has a handler for SIGINT and one for SIGTERM.
inline bool CatchesSignals(pid_t child) {
  std::ifstream status("/proc/" + std::to_string(child) + "/status");
  std::string word;
  while (status >> word && word != "SigCgt:") continue;
  uint64_t caught = 0;
  status >> std::hex >> caught;
  constexpr uint64_t kBoth = uint64_t{1} << (SIGINT - 1) | uint64_t{1} << (SIGTERM - 1);
  return (caught & kBoth) == kBoth;
}

// The processor time of a process so far, in its own code; less than 0: it has ended.
inline double UserSeconds(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string word;
  for (int field = 1; field <= 14; ++field) stat >> word;  // utime
  return stat ? std::stod(word) / static_cast<double>(sysconf(_SC_CLK_TCK)) : -1.0;
}

// Lines in Criteo's format; line `broken` has no label.
inline std::string CriteoLog(int lines, int broken = 0) {
  std::ostringstream log;
  for (int line = 1; line <= lines; ++line) {
    log << (line == broken ? "neither" : line % 3 == 0 ? "1" : "0");
    for (int i = 0; i < 13; ++i) log << '\t' << (line + i) % 9;
    for (int i = 0; i < 26; ++i) log << "\t0000000" << (line * 31 + i) % 10;
    log << '\n';
  }
  return log.str();
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_TRAIN_PROGRAM_H_
