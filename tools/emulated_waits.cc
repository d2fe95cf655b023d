#include "tools/emulated_waits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/str_cat.h"

namespace embank {
namespace {

constexpr double kWaitMsMax = 60'000;

std::string Names() {
  std::string names;
  for (size_t i = 0; i < kOperationKinds; ++i) {
    StrAppend(&names, i == 0 ? "" : ", ", NameOf(static_cast<OperationKind>(i)));
  }
  return names;
}

Status BadWait(std::string_view wait) {
  return InvalidArgumentError(StrCat("--emulate: \"", wait,
                                     "\" is no NAME=MILLISECONDS, from 0 to ", kWaitMsMax,
                                     ", of an operation: ", Names()));
}

}  // namespace

StatusOr<OperationHook> EmulatedWaits(const std::string& text) {
  if (text.empty()) return OperationHook();
  std::array<double, kOperationKinds> waits_ms = {};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view wait = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(wait.size() + 1, rest.size()));
    const size_t equals = wait.find('=');
    if (equals == std::string_view::npos) return BadWait(wait);
    const std::string_view number = wait.substr(equals + 1);
    double ms = 0.0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), ms);
    const bool is_number = read.ec == std::errc() && read.ptr == number.data() + number.size();
    if (!is_number || !(ms >= 0.0 && ms <= kWaitMsMax)) return BadWait(wait);
    size_t kind = 0;
    while (kind < kOperationKinds &&
           wait.substr(0, equals) != NameOf(static_cast<OperationKind>(kind))) {
      ++kind;
    }
    if (kind == kOperationKinds) return BadWait(wait);
    waits_ms[kind] = ms;
  }
  return OperationHook([waits_ms](const OperationLabel& label, uint32_t part) {
    const double ms = waits_ms[static_cast<size_t>(label.kind)];
    if (part > 0 || ms == 0.0) return;
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  });
}

}  // namespace embank
