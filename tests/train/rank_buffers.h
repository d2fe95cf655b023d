// The buffers of one rank in one call of an exchange, whose bytes are a function of sender,
// receiver, round and offset: what arrives is compared with that function.
#ifndef EMBANK_TESTS_TRAIN_RANK_BUFFERS_H_
#define EMBANK_TESTS_TRAIN_RANK_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/str_cat.h"
#include "train/ranks/exchange.h"

namespace embank::test {

// The units that the first rank sends to the second.
using UnitsOf = std::function<uint64_t(uint32_t sender, uint32_t receiver)>;

class RankBuffers {
 public:
  RankBuffers(const Exchange& exchange, uint64_t round, const UnitsOf& units)
      : rank_(exchange.rank()), round_(round) {
    const uint32_t ranks = exchange.ranks();
    source_.parts.resize(ranks);
    target_.parts.resize(ranks);
    // Parts do not stand in the order of ranks.
    for (uint32_t i = 0; i < ranks; ++i) {
      const uint32_t peer = (rank_ * 3 + ranks - i) % ranks;
      source_.Add(peer, units(rank_, peer));
      target_.Add(peer, units(peer, rank_));
    }
    source_.units.resize(source_.end, kUntouched);
    target_.units.resize(target_.end, kUntouched);
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      const ExchangePart& part = source_.parts[peer];
      for (uint64_t at = 0; at < part.bytes / kExchangeUnitBytes; ++at) {
        source_.units[part.begin / kExchangeUnitBytes + at] = UnitAt(rank_, peer, at);
      }
    }
  }

  // Exchanges, and then changes what was sent, as the sender may.
  Status Run(Exchange* exchange) {
    const Status status =
        exchange->Run({source_.bytes(), source_.parts}, {target_.bytes(), target_.parts});
    source_.units.assign(source_.units.size(), kUntouched);
    return status;
  }

  // Describes the first wrong unit of what was received, the space between parts included, or "".
  std::string Wrong() const {
    std::vector<Unit> expected(target_.units.size(), kUntouched);
    for (uint32_t peer = 0; peer < target_.parts.size(); ++peer) {
      const ExchangePart& part = target_.parts[peer];
      for (uint64_t at = 0; at < part.bytes / kExchangeUnitBytes; ++at) {
        expected[part.begin / kExchangeUnitBytes + at] = UnitAt(peer, rank_, at);
      }
    }
    for (size_t at = 0; at < expected.size(); ++at) {
      if (std::memcmp(&expected[at], &target_.units[at], sizeof(Unit)) != 0) {
        return StrCat("round ", round_, ", rank ", rank_, ": unit ", at, " of ", expected.size());
      }
    }
    return "";
  }

 private:
  struct alignas(kExchangeUnitBytes) Unit {
    uint64_t low;
    uint64_t high;
  };
  static constexpr Unit kUntouched = {0xA5A5'A5A5'A5A5'A5A5, 0x5A5A'5A5A'5A5A'5A5A};

  struct Side {
    std::vector<ExchangePart> parts;
    std::vector<Unit> units;
    uint64_t end = 1;  // in units: parts stand behind this one, with one between them

    void Add(uint32_t peer, uint64_t part_units) {
      parts[peer] = {end * kExchangeUnitBytes, part_units * kExchangeUnitBytes};
      end += part_units + 1;
    }
    std::byte* bytes() { return reinterpret_cast<std::byte*>(units.data()); }
  };

  Unit UnitAt(uint32_t sender, uint32_t receiver, uint64_t at) const {
    const uint64_t low = Mix(Mix(round_ << 32 | sender << 16 | receiver) + at);
    return {low, Mix(low)};
  }

  const uint32_t rank_;
  const uint64_t round_;
  Side source_;
  Side target_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_RANK_BUFFERS_H_
