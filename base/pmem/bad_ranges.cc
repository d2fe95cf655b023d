#include "base/pmem/bad_ranges.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/files/posix_file.h"
#include "base/status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr uint64_t kSectorBytes = 512;  // of the kernel's lists

// A whole file of sysfs, which does not tell its length. kNotFound: it is not there.
StatusOr<std::string> ReadText(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) return ErrorOf(errno, "open", path);
  std::string text;
  std::array<char, 4096> some;
  while (true) {
    const ssize_t n = read(file.number(), some.data(), some.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrorOf(errno, "read", path);
    if (n == 0) return text;
    text.append(some.data(), static_cast<size_t>(n));
  }
}

// The numbers of a text, whatever stands between them.
std::vector<uint64_t> NumbersOf(std::string_view text) {
  std::vector<uint64_t> numbers;
  while (true) {
    const size_t begin = text.find_first_of("0123456789");
    if (begin == std::string_view::npos) return numbers;
    text.remove_prefix(begin);
    uint64_t number = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(end.ptr - text.data()));
  }
}

// The damaged bytes of the device, counted from its begin. The list of a partition is its disk's.
StatusOr<std::vector<BadRange>> BadBytesOfDevice(const std::string& device) {
  uint64_t start = 0;
  StatusOr<std::string> list = ReadText(device + "/badblocks");
  if (IsNotFound(list.status())) {
    const StatusOr<std::string> first_sector = ReadText(device + "/start");
    if (IsNotFound(first_sector.status())) return std::vector<BadRange>();
    EMBANK_RETURN_IF_ERROR(first_sector.status());
    const std::vector<uint64_t> numbers = NumbersOf(*first_sector);
    if (!numbers.empty()) start = numbers[0];
    list = ReadText(device + "/../badblocks");
    if (IsNotFound(list.status())) return std::vector<BadRange>();
  }
  EMBANK_RETURN_IF_ERROR(list.status());
  const std::vector<uint64_t> numbers = NumbersOf(*list);
  std::vector<BadRange> bad;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {  // a sector, and how many
    const uint64_t end = numbers[i] + numbers[i + 1];
    if (end <= start) continue;  // before the partition
    const uint64_t begin = std::max(numbers[i], start);
    bad.push_back({(begin - start) * kSectorBytes, (end - start) * kSectorBytes});
  }
  return bad;
}

// Adds the damaged ranges of an extent.
void AddBadParts(const fiemap_extent& extent, const std::vector<BadRange>& of_device,
                 std::vector<BadRange>* bad) {
  constexpr uint32_t kHasNoPlace =
      FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_INLINE;
  if ((extent.fe_flags & kHasNoPlace) != 0) return;
  for (const BadRange& range : of_device) {
    const uint64_t begin = std::max<uint64_t>(range.begin, extent.fe_physical);
    const uint64_t end = std::min<uint64_t>(range.end, extent.fe_physical + extent.fe_length);
    if (begin >= end) continue;
    const uint64_t logical = extent.fe_logical;
    bad->push_back({logical + (begin - extent.fe_physical), logical + (end - extent.fe_physical)});
  }
}

// The next extents of a file from a place on; the kernel writes them behind the request.
constexpr uint32_t kExtentsMax = 64;
struct Extents {
  uint32_t count = 0;
  std::array<fiemap_extent, kExtentsMax> extents;
};

// An error number of the system, or 0.
int ReadExtents(int descriptor, uint64_t from, Extents* into) {
  alignas(fiemap) std::array<std::byte, sizeof(fiemap) + sizeof(into->extents)> request = {};
  fiemap head;
  std::memset(&head, 0, sizeof(head));
  head.fm_start = from;
  head.fm_length = FIEMAP_MAX_OFFSET - from;
  head.fm_extent_count = kExtentsMax;
  std::memcpy(request.data(), &head, sizeof(head));
  if (ioctl(descriptor, FS_IOC_FIEMAP, request.data()) != 0) return errno;
  std::memcpy(&head, request.data(), sizeof(head));
  EMBANK_CHECK(head.fm_mapped_extents <= kExtentsMax);
  into->count = head.fm_mapped_extents;
  std::memcpy(into->extents.data(), request.data() + sizeof(head), sizeof(into->extents));
  return 0;
}

}  // namespace

StatusOr<std::vector<BadRange>> BadRangesOf(int descriptor) {
  return BadRangesBelow("/sys", descriptor);
}

StatusOr<std::vector<BadRange>> BadRangesBelow(const std::string& sysfs, int descriptor) {
  EMBANK_CHECK(descriptor >= 0);
  struct stat about;
  if (fstat(descriptor, &about) != 0) return ErrorOf(errno, "stat", "a mapped file");
  const std::string device =
      StrCat(sysfs, "/dev/block/", major(about.st_dev), ":", minor(about.st_dev));
  EMBANK_ASSIGN_OR_RETURN(const std::vector<BadRange> of_device, BadBytesOfDevice(device));
  std::vector<BadRange> bad;
  if (of_device.empty()) return bad;

  Extents some;
  uint64_t from = 0;
  do {
    const int error = ReadExtents(descriptor, from, &some);
    if (error == EOPNOTSUPP || error == ENOTTY) return bad;
    if (error != 0) return ErrorOf(error, "list the extents of a file on", device);
    for (uint32_t i = 0; i < some.count; ++i) {
      AddBadParts(some.extents[i], of_device, &bad);
      from = some.extents[i].fe_logical + some.extents[i].fe_length;
    }
  } while (some.count > 0);
  return bad;
}

}  // namespace embank
