#include "train/bytes/gzip_source.h"

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr size_t kInputBytes = 128 << 10;
constexpr int kWindowBits = 15 + 16;  // the largest window, and the header of a .gz file

class GzipSource final : public ByteSource {
 public:
  GzipSource(std::string name, std::unique_ptr<ByteSource> source)
      : name_(std::move(name)), source_(std::move(source)), input_(kInputBytes) {}
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  // Before anything else. False: there is no memory.
  bool Begin() { return inflateInit2(&stream_, kWindowBits) == Z_OK; }

  StatusOr<size_t> Read(std::span<std::byte> out) override {
    size_t size = 0;
    while (size < out.size()) {
      if (stream_.avail_in == 0) {
        EMBANK_ASSIGN_OR_RETURN(const size_t count, source_->Read(input_));
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(count);
        if (count == 0) break;
      }
      if (!member_is_open_ && !BeginMember()) continue;
      EMBANK_ASSIGN_OR_RETURN(const size_t count, Inflate(out.subspan(size)));
      size += count;
    }
    if (size < out.size() && member_is_open_) {
      return DataLossError(StrCat(name_, ": truncated .gz: member incomplete; copy the file anew"));
    }
    return size;
  }

  double FractionRead() const override { return source_->FractionRead(); }

 private:
  // Begins the next member where there is one; leaves out zeros.
  bool BeginMember() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
    if (stream_.avail_in == 0) return false;
    inflateReset(&stream_);
    member_is_open_ = true;
    return true;
  }

  StatusOr<size_t> Inflate(std::span<std::byte> out) {
    const auto size = static_cast<uInt>(std::min(out.size(), size_t{UINT_MAX}));
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = size;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    // Z_BUF_ERROR: it waits for more of the file.
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return DataLossError(
          StrCat(name_, ": damaged .gz: ", stream_.msg != nullptr ? stream_.msg : zError(result),
                 "; copy the file anew"));
    }
    if (result == Z_STREAM_END) member_is_open_ = false;
    return size - stream_.avail_out;
  }

  const std::string name_;
  const std::unique_ptr<ByteSource> source_;
  std::vector<std::byte> input_;
  z_stream stream_{};
  bool member_is_open_ = true;  // A .gz file has at least one member, so an empty one is cut off.
};

}  // namespace

StatusOr<std::unique_ptr<ByteSource>> UnpackGzip(const std::string& name,
                                                 std::unique_ptr<ByteSource> source) {
  auto gzip = std::make_unique<GzipSource>(name, std::move(source));
  if (!gzip->Begin()) return ResourceExhaustedError("no memory for a zlib stream");
  return std::unique_ptr<ByteSource>(std::move(gzip));
}

}  // namespace embank
