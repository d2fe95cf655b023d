#include "tools/byte_size.h"

#include <charconv>
#include <system_error>
#include <utility>

#include "base/str_cat.h"

namespace embank {
namespace {

// No machine has more, and sums of a few such sizes do not wrap.
constexpr uint64_t kByteSizeMax = uint64_t{1} << 60;

}  // namespace

StatusOr<uint64_t> ParseByteSize(std::string_view of, std::string_view text) {
  constexpr std::pair<std::string_view, uint32_t> kUnits[] = {
      {"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  uint64_t units = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, units);
  const std::string_view unit = text.substr(static_cast<size_t>(result.ptr - text.data()));
  if (result.ec == std::errc()) {
    for (const auto& [name, shift] : kUnits) {
      if (unit != name) continue;
      if (units > 0 && units <= kByteSizeMax >> shift) return units << shift;
      return InvalidArgumentError(
          StrCat(of, " is ", text, "; it must be 1 to ", kByteSizeMax >> shift, name));
    }
  }
  return InvalidArgumentError(
      StrCat(of, " is ", text, "; it must be a whole number of B, KiB, MiB or GiB, as in 512MiB"));
}

}  // namespace embank
