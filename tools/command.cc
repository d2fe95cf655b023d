#include "tools/command.h"

#include <cstdio>

namespace embank {

ExitCode Fail(const absl::Status& status) {
  std::fprintf(stderr, "embank: %s: %s\n", absl::StatusCodeToString(status.code()).c_str(),
               std::string(status.message()).c_str());
  return absl::IsDataLoss(status) ? ExitCode::kDamaged : ExitCode::kUnusable;
}

}  // namespace embank
