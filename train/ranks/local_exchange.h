// Exchanges whose ranks are threads of one process: each byte is copied once, from the sender's
// buffer to the receiver's.
#ifndef EMBANK_TRAIN_RANKS_LOCAL_EXCHANGE_H_
#define EMBANK_TRAIN_RANKS_LOCAL_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/threads/clock.h"
#include "train/ranks/exchange.h"

namespace embank {

struct LocalExchangeOptions {
  uint64_t time_limit_ns = kExchangeTimeLimitNs;
  const Clock* clock = SteadyClock();  // outlives the exchanges
};

// Makes the exchanges of `ranks` ranks, 1 to kOwnersMax, in their order. Each is for a thread of
// its own and may be destroyed alone. Statuses are the same at all ranks.
std::vector<std::unique_ptr<Exchange>> MakeLocalExchanges(uint32_t ranks,
                                                          const LocalExchangeOptions& options = {});

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_LOCAL_EXCHANGE_H_
