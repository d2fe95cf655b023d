#include "store/scan/scan_notes.h"

#include <bit>
#include <utility>

#include "base/status_macros.h"

namespace embank {
namespace {

constexpr uint32_t kWordBits = 64;

// Calls visit(segment's place, slot) for the bits from a place on, until it returns false.
template <typename Segments, typename Visit>
void ForEachBit(const Segments& segments, uint32_t index, uint32_t slot, Visit visit) {
  for (; index < segments.size(); ++index, slot = 0) {
    const std::vector<uint64_t>& bits = segments[index].bits;
    for (size_t word = slot / kWordBits; word < bits.size(); ++word, slot = 0) {
      for (uint64_t left = bits[word] >> (slot % kWordBits) << (slot % kWordBits); left != 0;
           left &= left - 1) {
        const auto bit = static_cast<uint32_t>(std::countr_zero(left));
        if (!visit(index, static_cast<uint32_t>(word) * kWordBits + bit)) return;
      }
    }
  }
}

}  // namespace

ScanNotes::Segment* ScanNotes::SegmentOf(Location location) {
  std::vector<uint32_t>& places = places_[static_cast<uint32_t>(location.tier())];
  const uint32_t index = SegmentIndexOf(location);
  if (index >= places.size()) places.resize(index + 1);
  if (places[index] == 0) {
    segments_.emplace_back();
    segments_.back().tier = location.tier();
    segments_.back().index = index;
    places[index] = static_cast<uint32_t>(segments_.size());
  }
  return &segments_[places[index] - 1];
}

void ScanNotes::Add(Location location) {
  Segment& segment = *SegmentOf(location);
  if (segment.held == nullptr) {
    std::shared_ptr<const LogSegment> held = logs_->Hold(location);
    const bool is_ours = held->header.row_class == row_class_;
    segment.bits.resize(is_ours ? RoundUp(held->geometry.slots, kWordBits) / kWordBits : 0);
    segment.geometry = held->geometry;
    segment.held = std::move(held);
    bits_bytes_ += segment.bits.size() * sizeof(uint64_t);
  }
  if (segment.bits.empty()) return;
  const uint32_t slot = segment.geometry.SlotAt(SegmentOffsetOf(location));
  segment.bits[slot / kWordBits] |= uint64_t{1} << (slot % kWordBits);
  ++noted_;
}

Status ScanNotes::Resolve(uint64_t* unknown) {
  keys_.reserve(noted_);
  for (Segment& segment : segments_) {
    if (!segment.bits.empty()) EMBANK_RETURN_IF_ERROR(ResolveSegment(&segment, unknown));
    segment.held.reset();
  }
  return OkStatus();
}

Status ScanNotes::ResolveSegment(Segment* segment, uint64_t* unknown) {
  // The memory is the call's own, because the store's budget may be used up.
  MemoryBudget unlimited(0);
  AlignedBuffer memory;
  SegmentFooter owners;
  const Location first = LocationInSegment(segment->tier, segment->index, 0);
  Status told = logs_->Of(first).owners().OwnersOf(*segment->held, &unlimited, &memory, &owners);
  if (IsResourceExhausted(told)) return told;
  const size_t slots = told.ok() ? owners.keys.size() : 0;
  ForEachBit(std::span(segment, 1), 0, 0, [&](uint32_t, uint32_t slot) {
    const TableId owner = slot < slots ? owners.tables[slot] : kNoTable;
    if (owner == table_) {
      keys_.push_back(owners.keys[slot]);
    } else {
      segment->bits[slot / kWordBits] &= ~(uint64_t{1} << (slot % kWordBits));
      *unknown += owner == kNoTable ? 1 : 0;
    }
    return true;
  });
  return OkStatus();
}

void ScanNotes::Clear() {
  segments_.clear();
  for (std::vector<uint32_t>& places : places_) places.clear();
  keys_.clear();
  bits_bytes_ = noted_ = 0;
  keys_done_ = 0;
  next_segment_ = next_slot_ = 0;
}

void ScanNotes::Places(std::span<Location> places) const {
  size_t count = 0;
  ForEachBit(segments_, next_segment_, next_slot_, [&](uint32_t index, uint32_t slot) {
    if (count == places.size()) return false;
    const Segment& segment = segments_[index];
    places[count++] =
        LocationInSegment(segment.tier, segment.index, segment.geometry.OffsetOf(slot));
    return true;
  });
}

void ScanNotes::Skip(size_t count) {
  keys_done_ += count;
  ForEachBit(segments_, next_segment_, next_slot_, [&](uint32_t index, uint32_t slot) {
    next_segment_ = index;
    next_slot_ = slot;
    return count-- > 0;
  });
}

}  // namespace embank
