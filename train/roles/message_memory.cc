#include "train/roles/message_memory.h"

#include <new>
#include <utility>

namespace embank {

MessageMemory::MessageMemory(uint64_t bytes, MemorySource* source) {
  if (bytes >= kHugePageBytes) {
    StatusOr<AlignedBuffer> pages = AlignedBuffer::Create(source, &budget_, bytes);
    if (pages.ok()) {
      pages_ = *std::move(pages);
      data_ = pages_.data();
      return;
    }
  }
  heap_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kMessageAlignment})));
  data_ = heap_.get();
}

}  // namespace embank
