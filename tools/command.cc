#include "tools/command.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

namespace embank {

bool IsWithin(const std::string& path, const std::string& directory) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::weakly_canonical(path, error);
  if (error) return false;
  for (; !at.empty() && at != at.root_path(); at = at.parent_path()) {
    if (std::filesystem::equivalent(at, directory, error)) return true;
  }
  return false;
}

ExitCode Fail(const Status& status) {
  // A status without text was made where no memory was left.
  const std::string message(status.message().empty() ? "out of memory" : status.message());
  std::fprintf(stderr, "embank: %s: %s\n", StatusCodeToString(status.code()).c_str(),
               message.c_str());
  return IsDataLoss(status) ? ExitCode::kDamaged : ExitCode::kUnusable;
}

}  // namespace embank
