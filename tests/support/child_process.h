// Runs a part of a test in a process of its own, because it may end the process or change it for
// good.
#ifndef EMBANK_TESTS_SUPPORT_CHILD_PROCESS_H_
#define EMBANK_TESTS_SUPPORT_CHILD_PROCESS_H_

#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace embank::test {

// Describes the end of a child, by its wait status: "exit 0", "signal 6".
inline std::string EndOf(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "signal " + std::to_string(WTERMSIG(wait_status));
  return "exit " + std::to_string(WEXITSTATUS(wait_status));
}

// Runs `body`, which returns an exit status, in a child process, and describes its end. SIGALRM
// ends a child that hangs after a minute or more.
template <typename Body>
std::string InChild(const Body& body) {
  constexpr unsigned kSecondsMax = 150;
  const pid_t child = fork();
  if (child < 0) return "no child";
  if (child == 0) {
    alarm(kSecondsMax);
    _exit(body());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "no end";
  return EndOf(status);
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_CHILD_PROCESS_H_
