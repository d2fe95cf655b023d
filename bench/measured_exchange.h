// An exchange that notes how long the calls of another one take, and what they send.
#ifndef EMBANK_BENCH_MEASURED_EXCHANGE_H_
#define EMBANK_BENCH_MEASURED_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "train/ranks/exchange.h"

namespace embank {

class MeasuredExchange final : public Exchange {
 public:
  struct Call {
    uint64_t ns = 0;
    uint64_t bytes = 0;  // to other ranks, padding included
  };

  // The exchange outlives it.
  explicit MeasuredExchange(Exchange* exchange)
      : Exchange(exchange->rank(), exchange->ranks()), exchange_(exchange) {}

  Status Run(const ExchangeSource& source, const ExchangeTarget& target) override;
  // Not measured.
  std::unique_ptr<Exchange> Duplicate() override { return exchange_->Duplicate(); }
  Status Barrier() override { return exchange_->Barrier(); }
  void Abort(std::string_view reason) override { exchange_->Abort(reason); }

  // The calls of Run since the last Take.
  std::vector<Call> Take() { return std::exchange(calls_, {}); }

 private:
  Exchange* const exchange_;
  std::vector<Call> calls_;
};

// Returns the largest of the numbers of all ranks. All of them call it, and so wait for each other.
// It ends the job where the exchange fails.
double MaxOverRanks(Exchange* exchange, double number);

}  // namespace embank

#endif  // EMBANK_BENCH_MEASURED_EXCHANGE_H_
