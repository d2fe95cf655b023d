#include "bench/killed_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "base/str_cat.h"

namespace embank {
namespace {

Status Failed(const char* call) {
  return UnavailableError(StrCat(call, ": ", std::strerror(errno)));
}

}  // namespace

StatusOr<KilledProcess> KilledProcess::Start(FunctionRef<Status(Tell)> body) {
  int ends[2];
  if (pipe(ends) != 0) return Failed("pipe");
  const pid_t pid = fork();
  if (pid < 0) {
    const Status failed = Failed("fork");
    close(ends[0]);
    close(ends[1]);
    return failed;
  }
  if (pid > 0) {
    close(ends[1]);
    return KilledProcess(pid, ends[0]);
  }
  close(ends[0]);
  const auto tell = [&](Step step) {
    if (write(ends[1], &step, sizeof step) != sizeof step) _exit(1);
  };
  // An exception must not leave the forked copy: the rest of its stack belongs to the parent.
  const Status status = [&]() noexcept { return body(tell); }();
  if (!status.ok()) {
    const std::string line = StrCat("the process that is killed: ", status.message(), "\n");
    std::fputs(line.c_str(), stderr);
  }
  _exit(status.ok() ? 0 : 1);
}

KilledProcess::KilledProcess(KilledProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), steps_(std::exchange(other.steps_, -1)) {}

KilledProcess::~KilledProcess() {
  if (pid_ != 0) Kill();
  if (steps_ >= 0) close(steps_);
}

std::optional<KilledProcess::Step> KilledProcess::Next() {
  Step step;
  // Shorter than PIPE_BUF: never in pieces.
  const ssize_t bytes = read(steps_, &step, sizeof step);
  if (bytes != sizeof step) return std::nullopt;
  return step;
}

void KilledProcess::Kill() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

}  // namespace embank
