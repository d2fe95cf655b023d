#include "tools/rank_output.h"

namespace embank {
namespace {

thread_local bool is_thread_silent = false;

// The process has it until its end. Where it cannot be opened, ranks speak at once.
std::FILE* Nowhere() {
  static std::FILE* const nowhere = std::fopen("/dev/null", "w");
  return nowhere;
}

std::FILE* Unless(bool is_silent, std::FILE* stream) {
  return is_silent && Nowhere() != nullptr ? Nowhere() : stream;
}

}  // namespace

std::FILE* Out() { return Unless(is_thread_silent, stdout); }
std::FILE* Err() { return Unless(is_thread_silent, stderr); }
void SetSilent(bool is_silent) { is_thread_silent = is_silent; }

}  // namespace embank
