#include "tools/command.h"

#include <cstdio>

namespace embank {

ExitCode Fail(const Status& status) {
  std::fprintf(stderr, "embank: %s: %s\n", StatusCodeToString(status.code()).c_str(),
               std::string(status.message()).c_str());
  return IsDataLoss(status) ? ExitCode::kDamaged : ExitCode::kUnusable;
}

}  // namespace embank
