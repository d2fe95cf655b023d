#include "train/hybrid/sample_buffer.h"

#include <algorithm>
#include <atomic>
#include <libcuckoo/cuckoohash_map.hh>

#include "base/check.h"
#include "base/hash.h"

namespace embank {
namespace {

// The map grows beyond it.
constexpr uint64_t kReservedMax = uint64_t{1} << 16;

}  // namespace

struct SampleBuffer::Map {
  struct MixHash {
    size_t operator()(SampleId id) const { return Mix(id); }
  };

  explicit Map(uint64_t reserved) : places(reserved) {}

  libcuckoo::cuckoohash_map<SampleId, SamplePlace, MixHash> places;
  std::atomic<uint64_t> samples{0};
};

SampleBuffer::SampleBuffer(uint64_t samples)
    : map_(std::make_unique<Map>(std::min(samples, kReservedMax))) {}

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
