// Checks that all exchanges make, and the statuses of their failures.
#ifndef EMBANK_TRAIN_RANKS_EXCHANGE_CHECKS_H_
#define EMBANK_TRAIN_RANKS_EXCHANGE_CHECKS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "train/ranks/exchange.h"

namespace embank {

// Stops the process unless both sides have a part for each of `ranks` ranks, and all parts begin
// and end at multiples of kExchangeUnitBytes of an aligned buffer.
void CheckParts(uint32_t ranks, const ExchangeSource& source, const ExchangeTarget& target);

// UNAVAILABLE: `rank` waited `time_limit_ns` for the `late` ranks.
Status RanksAreLate(uint32_t rank, std::span<const uint32_t> late, uint64_t time_limit_ns);

// INTERNAL: a part has `sent` bytes at its sender ("48", "more than 32") and others at its
// receiver.
Status PartsDiffer(uint32_t sender, std::string_view sent, uint32_t receiver,
                   uint64_t received_bytes);

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_EXCHANGE_CHECKS_H_
