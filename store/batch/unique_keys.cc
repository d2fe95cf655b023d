#include "store/batch/unique_keys.h"

#include <algorithm>

#include "base/status_macros.h"

namespace embank {

Status UniqueKeys::Allocate(size_t keys) {
  EMBANK_RETURN_IF_ERROR(next_.Allocate(keys));
  EMBANK_RETURN_IF_ERROR(last_.Allocate(keys));
  EMBANK_RETURN_IF_ERROR(firsts_.Allocate(keys));
  return places_.Allocate(kPlacesPerKey * keys);
}

std::span<const uint32_t> UniqueKeys::Find(const ShardGroup& group) {
  const size_t count = group.size();
  const std::span<uint32_t> next = next_.values().subspan(group.begin, count);
  const std::span<uint32_t> firsts = firsts_.values().subspan(group.begin, count);
  if (count == 1) {  // as most groups of a small batch have
    next[0] = kEnd;
    firsts[0] = 0;
    return firsts;
  }
  const std::span<uint32_t> last = last_.values().subspan(group.begin, count);
  const std::span<uint32_t> places =
      places_.values().subspan(kPlacesPerKey * group.begin, kPlacesPerKey * count);
  std::fill(places.begin(), places.end(), kEnd);

  size_t distinct = 0;
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = kEnd;
    // The low half of the hash: the high bits of a group's hashes are its shard's.
    uint64_t place = (uint64_t{static_cast<uint32_t>(group.hashes[i])} * places.size()) >> 32;
    // In one table, equal hashes are equal keys.
    while (places[place] != kEnd && group.hashes[places[place]] != group.hashes[i]) {
      if (++place == places.size()) place = 0;
    }
    const uint32_t first = places[place];
    if (first == kEnd) {
      places[place] = i;
      firsts[distinct++] = i;
      last[i] = i;
    } else {
      next[last[first]] = i;
      last[first] = i;
    }
  }
  return firsts.first(distinct);
}

}  // namespace embank
