#include "train/bytes/byte_source.h"

#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/errno_status.h"
#include "train/bytes/file_pointer.h"

namespace embank {
namespace {

class PlainFile final : public ByteSource {
 public:
  PlainFile(std::string path, std::FILE* file, uint64_t size_bytes)
      : path_(std::move(path)), file_(file), size_bytes_(size_bytes) {}

  StatusOr<size_t> Read(std::span<std::byte> out) override {
    const size_t count = std::fread(out.data(), 1, out.size(), file_.get());
    if (count < out.size() && std::ferror(file_.get()) != 0) {
      return ErrnoStatus(errno, StrCat(path_, ": cannot read"));
    }
    read_bytes_ += count;
    return count;
  }

  double FractionRead() const override {
    if (size_bytes_ == 0) return 1.0;
    return std::min(1.0, static_cast<double>(read_bytes_) / static_cast<double>(size_bytes_));
  }

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const FilePointer file_;
  const uint64_t size_bytes_;
  uint64_t read_bytes_ = 0;
};

struct StreamFreer {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdFile final : public ByteSource {
 public:
  ZstdFile(std::unique_ptr<PlainFile> file, ZSTD_DStream* stream)
      : file_(std::move(file)), stream_(stream), input_(ZSTD_DStreamInSize()) {}

  StatusOr<size_t> Read(std::span<std::byte> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos < output.size) {
      if (waiting_.pos == waiting_.size) {
        EMBANK_ASSIGN_OR_RETURN(const size_t count, file_->Read(input_));
        waiting_ = {input_.data(), count, 0};
        if (count == 0) break;
      }
      const size_t result = ZSTD_decompressStream(stream_.get(), &output, &waiting_);
      if (ZSTD_isError(result) != 0) {
        return DataLossError(StrCat(file_->path(), ": damaged .zst: ", ZSTD_getErrorName(result)));
      }
      frame_is_open_ = result != 0;
    }
    // A frame that lacks bytes at the end of the file was cut off.
    if (output.pos < output.size && frame_is_open_) {
      return DataLossError(StrCat(file_->path(), ": truncated .zst: frame incomplete"));
    }
    return output.pos;
  }

  double FractionRead() const override { return file_->FractionRead(); }

 private:
  const std::unique_ptr<PlainFile> file_;
  const std::unique_ptr<ZSTD_DStream, StreamFreer> stream_;
  std::vector<std::byte> input_;
  ZSTD_inBuffer waiting_{nullptr, 0, 0};
  bool frame_is_open_ = true;  // A .zst file has at least one frame, so an empty one is cut off.
};

}  // namespace

StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return ErrnoStatus(errno, StrCat(path, ": cannot open"));
  struct stat status {};
  const bool known = fstat(fileno(file), &status) == 0 && status.st_size > 0;
  auto plain = std::make_unique<PlainFile>(
      path, file, known ? static_cast<uint64_t>(status.st_size) : uint64_t{0});
  if (!path.ends_with(".zst")) return plain;
  ZSTD_DStream* stream = ZSTD_createDStream();
  if (stream == nullptr) return ResourceExhaustedError("no memory for a zstd stream");
  return std::make_unique<ZstdFile>(std::move(plain), stream);
}

}  // namespace embank
