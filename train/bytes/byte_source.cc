#include "train/bytes/byte_source.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/errno_status.h"
#include "train/bytes/file_pointer.h"
#include "train/bytes/gzip_source.h"
#include "train/bytes/headed_source.h"
#include "train/bytes/zstd_source.h"

namespace embank {
namespace {

constexpr size_t kMagicBytes = 4;
// A writer that is only slow writes within this time.
constexpr int kWaitMilliseconds = 1000;

std::atomic<bool> waits_end = false;
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers set it");

class PlainFile final : public ByteSource {
 public:
  PlainFile(std::string path, std::FILE* file, uint64_t size_bytes)
      : path_(std::move(path)), file_(file), size_bytes_(size_bytes) {}

  StatusOr<size_t> Read(std::span<std::byte> out) override {
    size_t count = 0;
    while (count < out.size()) {
      EMBANK_RETURN_IF_ERROR(WaitForBytes());
      const ssize_t size = read(fileno(file_.get()), out.data() + count, out.size() - count);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return ErrnoStatus(errno, StrCat(path_, ": cannot read"));
      if (size == 0) break;
      count += static_cast<size_t>(size);
    }
    read_bytes_ += count;
    return count;
  }

  double FractionRead() const override {
    if (size_bytes_ == 0) return 0.0;
    return std::min(1.0, static_cast<double>(read_bytes_) / static_cast<double>(size_bytes_));
  }

 private:
  // Files never wait; writers of pipes may be silent for as long as they like.
  Status WaitForBytes() {
    pollfd file = {.fd = fileno(file_.get()), .events = POLLIN, .revents = 0};
    for (;;) {
      const int ready = poll(&file, 1, kWaitMilliseconds);
      if (ready > 0 || (ready < 0 && errno != EINTR)) return OkStatus();
      if (ready == 0 && waits_end) return CancelledError(StrCat(path_, ": no more bytes came"));
    }
  }

  const std::string path_;
  const FilePointer file_;
  const uint64_t size_bytes_;
  uint64_t read_bytes_ = 0;
};

// Standard input gets a descriptor of its own, so that it stays open.
std::FILE* OpenFile(const std::string& path) {
  if (path != kStandardInput) return std::fopen(path.c_str(), "rb");
  const int descriptor = dup(STDIN_FILENO);
  return descriptor < 0 ? nullptr : fdopen(descriptor, "rb");
}

// Whether a file begins with the bytes of a packed one, or ends inside of them and has its name.
bool Begins(std::string_view head, std::string_view magic, bool has_name) {
  if (head.starts_with(magic)) return true;
  return has_name && head.size() < magic.size() && magic.starts_with(head);
}

}  // namespace

void EndWaits(bool end) { waits_end = end; }

bool IsReadOnce(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return path == kStandardInput ||
         (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
          !std::filesystem::is_directory(status));
}

StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path) {
  std::FILE* file = OpenFile(path);
  if (file == nullptr) return ErrnoStatus(errno, StrCat(path, ": cannot open"));
  struct stat status {};
  const bool known = fstat(fileno(file), &status) == 0 && status.st_size > 0;
  auto source = std::make_unique<HeadedSource>(
      std::make_unique<PlainFile>(path, file,
                                  known ? static_cast<uint64_t>(status.st_size) : uint64_t{0}),
      kMagicBytes);
  const std::string_view head = source->head();
  const bool is_skippable = head.size() == kMagicBytes && (head[0] & 0xF0) == 0x50 &&
                            head.substr(1) == kZstdSkippableMagic;
  if (is_skippable || Begins(head, kZstdMagic, path.ends_with(".zst"))) {
    return UnpackZstd(path, std::move(source));
  }
  if (Begins(head, kGzipMagic, path.ends_with(".gz"))) return UnpackGzip(path, std::move(source));
  return source;
}

}  // namespace embank
