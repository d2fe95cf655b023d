#include "train/hybrid/sample_buffer.h"

#include <atomic>
#include <libcuckoo/cuckoohash_map.hh>

#include "base/check.h"
#include "base/hash.h"

namespace embank {
namespace {

// The least with all of libcuckoo's 65,536 locks, one for each bucket of four. A map that begins
// smaller adds locks as it grows, and a thread that holds one of the former locks may then read
// buckets that are moved by another: libcuckoo 0.3.1 fails within seconds.
constexpr size_t kCapacity = size_t{4} << 16;

}  // namespace

struct SampleBuffer::Map {
  struct MixHash {
    size_t operator()(SampleId id) const { return Mix(id); }
  };

  libcuckoo::cuckoohash_map<SampleId, SamplePlace, MixHash> places{kCapacity};
  std::atomic<uint64_t> samples{0};
};

SampleBuffer::SampleBuffer() : map_(std::make_unique<Map>()) {}
SampleBuffer::~SampleBuffer() = default;

void SampleBuffer::Insert(SampleId id, const SamplePlace& place) {
  EMBANK_CHECK(map_->places.insert(id, place));
  map_->samples.fetch_add(1, std::memory_order_relaxed);
}

std::optional<SamplePlace> SampleBuffer::Find(SampleId id) const {
  SamplePlace place;
  if (!map_->places.find(id, place)) return std::nullopt;
  return place;
}

std::optional<SamplePlace> SampleBuffer::Take(SampleId id) {
  std::optional<SamplePlace> taken;
  map_->places.erase_fn(id, [&](const SamplePlace& place) {
    taken = place;
    return true;
  });
  if (taken) map_->samples.fetch_sub(1, std::memory_order_relaxed);
  return taken;
}

uint64_t SampleBuffer::samples() const { return map_->samples.load(std::memory_order_relaxed); }

}  // namespace embank
