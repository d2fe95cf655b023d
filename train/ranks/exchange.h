// The exchange of bytes between the ranks of one training job: AllToAllv. Local ranks are threads
// of one process (local_exchange.h); others are processes that MPI connects (mpi_module.h).
//
//   rank 0   send     [to 0][ to 1 ][to 2]          receive   [from 0][from 1][from 2]
//   rank 1   send     [to 0][to 1][]                receive   [ from 0 ][from 1][]
//
// There is no AllReduce: a sum is an exchange of parts, an addition in the order of ranks, and an
// exchange back, so that its bits are ours (train/ranks/README.md).
#ifndef EMBANK_TRAIN_RANKS_EXCHANGE_H_
#define EMBANK_TRAIN_RANKS_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"

namespace embank {

// The unit of all parts: they begin at multiples of it, and have so many bytes or a multiple.
// The sender of a part sets the bytes of its padding to 0.
inline constexpr uint64_t kExchangeUnitBytes = 16;

// The time limit of a call, unless an option says otherwise.
inline constexpr uint64_t kExchangeTimeLimitNs = 60'000'000'000;

// A part of a buffer.
struct ExchangePart {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

// One side of an exchange: a buffer, aligned to kExchangeUnitBytes, and the part of it for each
// rank. Parts that are sent may overlap; those that are received may overlap no other part of
// either side. What lies between parts is not read or written.
struct ExchangeSource {
  const std::byte* buffer = nullptr;
  std::span<const ExchangePart> parts;
};
struct ExchangeTarget {
  std::byte* buffer = nullptr;
  std::span<const ExchangePart> parts;
};

// One thread at a time, but for Abort. All ranks make the same calls in the same order. Once a call
// has failed, so do all others of this rank, with the same status. A rank whose exchange is
// destroyed has ended, and calls that others still make fail.
class Exchange {
 public:
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  // This rank, and how many there are: 1 to kOwnersMax.
  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return ranks_; }

  // Sends a part to each rank and receives one from each, this one included; both may be empty. The
  // part that p sends to q has as many bytes as the one that q receives from p. Returns when the
  // received parts are there and the sent ones may change.
  // UNAVAILABLE: a rank did not come within the time limit (the message names it), or MPI failed.
  // CANCELLED: a rank aborted or ended; the message has its number and its reason.
  // INTERNAL: two ranks disagree about the bytes of a part; the message names both.
  // After a failure under MPI other ranks may still read and write the parts: the buffers must stay
  // until Abort is called or the process ends.
  virtual Status Run(const ExchangeSource& source, const ExchangeTarget& target) = 0;

  // Makes another exchange of these ranks: its calls have an order of their own, and may run beside
  // those of this one, which outlives it and is no duplicate. All ranks make their duplicates in
  // the same order. Abort of one ends all of them.
  virtual std::unique_ptr<Exchange> Duplicate() = 0;

  // Waits until all ranks are here, as a Run without bytes. Statuses of Run.
  virtual Status Barrier() = 0;

  // Ends the job: the calls of all ranks fail, now and from now on. Of MPI it ends the processes of
  // all ranks, this one included, after a message on standard error. Thread-safe, also beside a
  // call that waits.
  virtual void Abort(std::string_view reason) = 0;

 protected:
  Exchange(uint32_t rank, uint32_t ranks) : rank_(rank), ranks_(ranks) {}

 private:
  const uint32_t rank_;
  const uint32_t ranks_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_EXCHANGE_H_
