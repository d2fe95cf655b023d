#include "train/ranks/exchange_checks.h"

#include "base/check.h"
#include "base/str_cat.h"

namespace embank {
namespace {

void CheckSide(uint32_t ranks, const std::byte* buffer, std::span<const ExchangePart> parts) {
  EMBANK_CHECK(parts.size() == ranks);
  EMBANK_CHECK(reinterpret_cast<uintptr_t>(buffer) % kExchangeUnitBytes == 0);
  for (const ExchangePart& part : parts) {
    EMBANK_CHECK(part.begin % kExchangeUnitBytes == 0 && part.bytes % kExchangeUnitBytes == 0);
    EMBANK_CHECK(buffer != nullptr || part.bytes == 0);
  }
}

}  // namespace

void CheckParts(uint32_t ranks, const ExchangeSource& source, const ExchangeTarget& target) {
  CheckSide(ranks, source.buffer, source.parts);
  CheckSide(ranks, target.buffer, target.parts);
}

Status RanksAreLate(uint32_t rank, std::span<const uint32_t> late, uint64_t time_limit_ns) {
  return UnavailableError(StrCat("rank ", rank, " waited ",
                                 static_cast<double>(time_limit_ns) * 1e-9, " s for rank",
                                 late.size() == 1 ? " " : "s ", StrJoin(late, ", ")));
}

Status PartsDiffer(uint32_t sender, std::string_view sent, uint32_t receiver,
                   uint64_t received_bytes) {
  return InternalError(StrCat("rank ", sender, " sends ", sent, " bytes to rank ", receiver,
                              ", which expects ", received_bytes));
}

}  // namespace embank
