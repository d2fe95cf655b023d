#include "store/batch/unique_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/batch/key_group.h"

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

namespace {

constexpr uint32_t kNone = 0xFFFFFFFF;

// Calls use(begin, hashes) for groups of keys, one group after `next(hashes)`.
template <typename Next, typename Use>
void ForEachHashed(const Table& table, KeySpan keys, Next next, Use use) {
  std::array<std::array<KeyHash, kGroupKeys>, 2> memory;
  std::span<KeyHash> before;
  for (size_t begin = 0; begin < keys.size() + kGroupKeys; begin += kGroupKeys) {
    std::span<KeyHash> hashes;
    if (begin < keys.size()) {
      hashes = std::span(memory[begin / kGroupKeys % 2])
                   .first(std::min(kGroupKeys, keys.size() - begin));
      table.HashesOf(keys.subspan(begin, hashes.size()), hashes.data());
      next(hashes);
    }
    if (!before.empty()) use(begin - kGroupKeys, before);
    before = hashes;
  }
}

}  // namespace

Status NumberedKeys::Allocate(size_t keys) {
  EMBANK_CHECK(keys <= kKeysMax);
  const size_t places = keys + keys / 2;
  const size_t bytes =
      keys * (sizeof(Key) + sizeof(uint32_t) + sizeof(uint16_t) + 1) + places * sizeof(uint32_t);
  EMBANK_RETURN_IF_ERROR(memory_.Allocate((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t)));
  // The widest first, so that all are aligned.
  keys_ = {memory_.values().data(), keys};
  places_ = {reinterpret_cast<uint32_t*>(keys_.data() + keys), places};
  numbers_ = {places_.data() + places, keys};
  touches_ = {reinterpret_cast<uint16_t*>(numbers_.data() + keys), keys};
  outcomes_ = {reinterpret_cast<uint8_t*>(touches_.data() + keys), keys};
  return OkStatus();
}

uint32_t NumberedKeys::NumberOf(Key key, uint64_t place) {
  // Ids that somebody chose for their hashes cost no more than others.
  constexpr int kProbesMax = 32;
  const std::span<uint32_t> places = places_;
  for (int probe = 0; probe < kProbesMax; ++probe) {
    const uint32_t number = places[place];
    if (number == kNone) {
      places[place] = static_cast<uint32_t>(count_);
      break;
    }
    if (keys_[number] == key) {
      if (touches_[number] < UINT16_MAX) {
        if (!Seeded(SeededBug::kRepeatedKeyCountedOnce)) ++touches_[number];
        return number;
      }
      places[place] = static_cast<uint32_t>(count_);
      break;
    }
    if (++place == places.size()) place = 0;
  }
  keys_[count_] = key;
  touches_[count_] = 1;
  return static_cast<uint32_t>(count_++);
}

void NumberedKeys::Find(const Table& table, KeySpan keys) {
  const std::span<uint32_t> places = places_;
  const std::span<uint32_t> numbers = numbers_;
  EMBANK_CHECK(keys.size() == numbers.size());
  std::fill(places.begin(), places.end(), kNone);
  count_ = 0;
  const auto prefetch = [&](std::span<KeyHash> hashes) {
    for (KeyHash& hash : hashes) {
      hash = (uint64_t{static_cast<uint32_t>(hash)} * places.size()) >> 32;
      __builtin_prefetch(&places[hash]);
    }
  };
  ForEachHashed(table, keys, prefetch, [&](size_t begin, std::span<const KeyHash> hashes) {
    for (size_t i = 0; i < hashes.size(); ++i) {
      numbers[begin + i] = NumberOf(keys[begin + i], hashes[i]);
    }
  });
  EMBANK_CHECK(count_ <= keys.size());
}

double DistinctPart(const Table& table, KeySpan keys) {
  EMBANK_CHECK(!keys.empty());
  constexpr size_t kSampledPositions = 1024;
  constexpr KeyHash kPart = 8;      // of the keys, which are in the sample
  std::array<uint64_t, 64> seen{};  // a bit for each of them, by its hash
  uint64_t sampled = 0;             // their positions
  keys = keys.first(std::min(keys.size(), kSampledPositions));
  ForEachHashed(
      table, keys, [](std::span<const KeyHash>) {},
      [&](size_t, std::span<const KeyHash> hashes) {
        for (const KeyHash hash : hashes) {
          if (hash % kPart != 0) continue;
          ++sampled;
          seen[hash / kPart & 63] |= uint64_t{1} << (hash >> 9 & 63);
        }
      });
  uint64_t distinct = 0;
  for (const uint64_t word : seen) distinct += static_cast<uint64_t>(std::popcount(word));
  // Where the sample has about as many positions as it should, no key is frequent. Then its own
  // part says more than that of the positions it stands for, whose number is chance.
  const double expected = static_cast<double>(keys.size()) / static_cast<double>(kPart);
  const auto positions = static_cast<double>(sampled);
  const bool is_even = std::abs(positions - expected) <= expected / 4;
  return std::min(1.0, static_cast<double>(distinct) / (is_even ? positions : expected));
}

}  // namespace embank
