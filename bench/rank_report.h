// The tables of embank-ranks.
#ifndef EMBANK_BENCH_RANK_REPORT_H_
#define EMBANK_BENCH_RANK_REPORT_H_

#include <span>
#include <string>

#include "bench/machine.h"
#include "bench/rank_bytes.h"
#include "bench/rank_dense.h"
#include "bench/rank_exchange.h"
#include "bench/rank_load.h"

namespace embank {

std::string RankExchangeTable(const Machine& machine, const RankExchangeOptions& options,
                              uint32_t ranks, std::span<const RankExchangeFigure> figures);
std::string RankDenseTable(const Machine& machine, uint32_t ranks,
                           std::span<const RankDenseFigure> figures);
std::string RankBytesTable(const Machine& machine, const RankBytesOptions& options,
                           std::span<const RankBytesFigure> figures);
std::string RankLoadTable(const Machine& machine, const RankLoadOptions& options,
                          const RankLoadFigure& figure);

}  // namespace embank

#endif  // EMBANK_BENCH_RANK_REPORT_H_
