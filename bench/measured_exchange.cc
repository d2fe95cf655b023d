#include "bench/measured_exchange.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/threads/clock.h"
#include "train/ranks/gathered_texts.h"

namespace embank {

Status MeasuredExchange::Run(const ExchangeSource& source, const ExchangeTarget& target) {
  Call call;
  for (uint32_t peer = 0; peer < ranks(); ++peer) {
    if (peer != rank()) call.bytes += source.parts[peer].bytes;
  }
  const uint64_t begin_ns = SteadyClock()->NowNs();
  Status status = exchange_->Run(source, target);
  call.ns = SteadyClock()->NowNs() - begin_ns;
  calls_.push_back(call);
  return status;
}

double MaxOverRanks(Exchange* exchange, double number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  const StatusOr<std::vector<std::string>> all = GatherTexts(exchange, bytes);
  EMBANK_CHECK(all.ok());
  for (const std::string& of_rank : *all) {
    double other = 0.0;
    std::memcpy(&other, of_rank.data(), sizeof(other));
    number = std::max(number, other);
  }
  return number;
}

}  // namespace embank
