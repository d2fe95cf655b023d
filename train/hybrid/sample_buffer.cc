#include "train/hybrid/sample_buffer.h"

#include "base/check.h"

namespace embank {

void SampleBuffer::Insert(SampleId id, const SamplePlace& place) {
  EMBANK_CHECK(places_.emplace(id, place).second);
}

std::optional<SamplePlace> SampleBuffer::Find(SampleId id) const {
  const auto found = places_.find(id);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<SamplePlace> SampleBuffer::Take(SampleId id) {
  const auto node = places_.extract(id);
  return node ? std::optional(node.mapped()) : std::nullopt;
}

}  // namespace embank
