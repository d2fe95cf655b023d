// A program that is stopped before each change of names of files, to see their order or to end it
// between two of them.
#ifndef EMBANK_TESTS_TOOLS_TRACED_PROGRAM_H_
#define EMBANK_TESTS_TOOLS_TRACED_PROGRAM_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/str_cat.h"

namespace embank::test {

struct Traced {
  bool is_possible = true;         // whether this machine lets a process trace its child
  std::vector<std::string> calls;  // such as "rename A B", "unlink A", "fsync A"
  int wait_status = 0;
};

inline std::string TextOf(pid_t process, uint64_t address) {
  std::ifstream memory(StrCat("/proc/", process, "/mem"), std::ios::binary);
  memory.seekg(static_cast<std::streamoff>(address));
  std::string text;
  std::getline(memory, text, '\0');
  return text;
}

// The call before which the process stands; empty: it is none that changes or syncs names.
inline std::string CallOf(pid_t process) {
  __ptrace_syscall_info info = {};
  ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof info, &info);
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return "";
  const auto text = [&](int argument) { return TextOf(process, info.entry.args[argument]); };
  switch (info.entry.nr) {
    case SYS_fsync:
      return StrCat("fsync ", std::filesystem::read_symlink(
                                  StrCat("/proc/", process, "/fd/", info.entry.args[0]))
                                  .string());
#ifdef SYS_rename
    case SYS_rename:
      return StrCat("rename ", text(0), " ", text(1));
    case SYS_unlink:
      return StrCat("unlink ", text(0));
#endif
    case SYS_renameat:
    case SYS_renameat2:
      return StrCat("rename ", text(1), " ", text(3));
    case SYS_unlinkat:
      return StrCat("unlink ", text(1));
    default:
      return "";
  }
}

// Runs the program that an environment variable names, and watches the calls of its main thread
// with files in `directory`. After `calls_max` such calls it ends the program before the next one.
inline Traced RunTraced(const char* variable, const std::vector<std::string>& words,
                        const std::string& directory, size_t calls_max = SIZE_MAX) {
  std::vector<char*> arguments = {std::getenv(variable)};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t process = fork();
  if (process == 0) {
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // which cannot be in a process that is traced
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(126);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  Traced traced;
  waitpid(process, &traced.wait_status, 0);
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
  traced.is_possible =
      WIFSTOPPED(traced.wait_status) && ptrace(PTRACE_SETOPTIONS, process, nullptr, options) == 0;
  if (WIFSTOPPED(traced.wait_status) && !traced.is_possible) {
    kill(process, SIGKILL);
    waitpid(process, &traced.wait_status, 0);
  }
  for (int number = 0; WIFSTOPPED(traced.wait_status);) {
    ptrace(PTRACE_SYSCALL, process, nullptr, number);
    waitpid(process, &traced.wait_status, 0);
    if (!WIFSTOPPED(traced.wait_status)) break;
    number = WSTOPSIG(traced.wait_status);
    if (number != (SIGTRAP | 0x80)) continue;  // a signal, which goes on to the process
    number = 0;
    std::string call = CallOf(process);
    if (call.find(directory) == std::string::npos) continue;
    if (traced.calls.size() == calls_max) {
      kill(process, SIGKILL);
      waitpid(process, &traced.wait_status, 0);
      break;
    }
    traced.calls.push_back(std::move(call));
  }
  return traced;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_TOOLS_TRACED_PROGRAM_H_
