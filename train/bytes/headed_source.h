// A source whose first bytes are looked at before they are read.
#ifndef EMBANK_TRAIN_BYTES_HEADED_SOURCE_H_
#define EMBANK_TRAIN_BYTES_HEADED_SOURCE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "train/bytes/byte_source.h"

namespace embank {

// One thread. An error in the first bytes is returned by the Read that comes to it.
class HeadedSource final : public ByteSource {
 public:
  // Reads up to `head_bytes` of the source. Blocks on reads.
  HeadedSource(std::unique_ptr<ByteSource> source, size_t head_bytes);

  // Returns the first bytes, less than head_bytes only where the source ends or fails in them.
  std::string_view head() const {
    return {reinterpret_cast<const char*>(head_.data()), head_.size()};
  }
  // Leaves out the first `bytes` of the head, before anything is read.
  void Skip(size_t bytes) { at_ += bytes; }

  StatusOr<size_t> Read(std::span<std::byte> out) override;
  // Its head is read before anybody asks for it.
  double FractionRead() const override { return at_ == 0 ? 0.0 : source_->FractionRead(); }

 private:
  const std::unique_ptr<ByteSource> source_;
  std::vector<std::byte> head_;
  size_t at_ = 0;       // so much of the head was read
  Status head_status_;  // of its read
};

}  // namespace embank

#endif  // EMBANK_TRAIN_BYTES_HEADED_SOURCE_H_
