#include "train/bytes/zstd_source.h"

#include <zstd.h>

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

struct StreamFreer {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdSource final : public ByteSource {
 public:
  ZstdSource(std::string name, std::unique_ptr<ByteSource> source, ZSTD_DStream* stream)
      : name_(std::move(name)),
        source_(std::move(source)),
        stream_(stream),
        input_(ZSTD_DStreamInSize()) {}

  StatusOr<size_t> Read(std::span<std::byte> out) override {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos < output.size) {
      if (waiting_.pos == waiting_.size) {
        EMBANK_ASSIGN_OR_RETURN(const size_t count, source_->Read(input_));
        waiting_ = {input_.data(), count, 0};
        if (count == 0) break;
      }
      const size_t result = ZSTD_decompressStream(stream_.get(), &output, &waiting_);
      if (ZSTD_isError(result) != 0) {
        return DataLossError(
            StrCat(name_, ": damaged .zst: ", ZSTD_getErrorName(result), "; copy the file anew"));
      }
      frame_is_open_ = result != 0;
    }
    // A frame that lacks bytes at the end of the file was cut off.
    if (output.pos < output.size && frame_is_open_) {
      return DataLossError(StrCat(name_, ": truncated .zst: frame incomplete; copy the file anew"));
    }
    return output.pos;
  }

  double FractionRead() const override { return source_->FractionRead(); }

 private:
  const std::string name_;
  const std::unique_ptr<ByteSource> source_;
  const std::unique_ptr<ZSTD_DStream, StreamFreer> stream_;
  std::vector<std::byte> input_;
  ZSTD_inBuffer waiting_{nullptr, 0, 0};
  bool frame_is_open_ = true;  // A .zst file has at least one frame, so an empty one is cut off.
};

}  // namespace

StatusOr<std::unique_ptr<ByteSource>> UnpackZstd(const std::string& name,
                                                 std::unique_ptr<ByteSource> source) {
  ZSTD_DStream* stream = ZSTD_createDStream();
  if (stream == nullptr) return ResourceExhaustedError("no memory for a zstd stream");
  return std::unique_ptr<ByteSource>(std::make_unique<ZstdSource>(name, std::move(source), stream));
}

}  // namespace embank
