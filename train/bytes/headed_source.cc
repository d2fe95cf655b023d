#include "train/bytes/headed_source.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace embank {

HeadedSource::HeadedSource(std::unique_ptr<ByteSource> source, size_t head_bytes)
    : source_(std::move(source)), head_(head_bytes) {
  const StatusOr<size_t> count = source_->Read(head_);
  head_status_ = count.status();
  head_.resize(count.ok() ? *count : 0);
}

StatusOr<size_t> HeadedSource::Read(std::span<std::byte> out) {
  EMBANK_RETURN_IF_ERROR(head_status_);
  const size_t count = std::min(out.size(), head_.size() - at_);
  std::copy_n(head_.begin() + static_cast<ptrdiff_t>(at_), count, out.begin());
  at_ += count;
  if (count == out.size()) return count;
  EMBANK_ASSIGN_OR_RETURN(const size_t more, source_->Read(out.subspan(count)));
  return count + more;
}

}  // namespace embank
