// embank-ranks COMMAND [ROUNDS | OPTION VALUE ...]: bench/README.md has the commands.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status_macros.h"
#include "bench/machine.h"
#include "bench/rank_bytes.h"
#include "bench/rank_dense.h"
#include "bench/rank_exchange.h"
#include "bench/rank_load.h"
#include "bench/rank_report.h"
#include "bench/rank_schedules.h"
#include "bench/report.h"

namespace embank {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct RankOptions {
  RankExchangeOptions exchange;
  RankDenseOptions dense;
  RankBytesOptions bytes;
  RankLoadOptions load;
};

// Calls table(exchange), which all ranks do; the first one prints what it returns.
template <typename Table>
Status PrintOfRanks(const Table& table) {
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<Exchange> exchange, JoinRanks());
  StatusOr<std::string> text = table(exchange.get());
  if (!text.ok()) exchange->Abort(text.status().ToString());
  EMBANK_RETURN_IF_ERROR(text.status());
  if (exchange->rank() == 0) std::fputs(text->c_str(), stdout);
  exchange.reset();
  LeaveRanks();
  return OkStatus();
}

Status Run(const std::string& command, const RankOptions& options) {
  const Machine machine = DescribeMachine();
  if (command == "exchange") {
    return PrintOfRanks([&](Exchange* exchange) -> StatusOr<std::string> {
      EMBANK_ASSIGN_OR_RETURN(const std::vector<RankExchangeFigure> figures,
                              RunRankExchange(options.exchange, exchange));
      return RankExchangeTable(machine, options.exchange, exchange->ranks(), figures);
    });
  }
  if (command == "dense") {
    return PrintOfRanks([&](Exchange* exchange) -> StatusOr<std::string> {
      EMBANK_ASSIGN_OR_RETURN(const std::vector<RankDenseFigure> figures,
                              RunRankDense(options.dense, exchange));
      return RankDenseTable(machine, exchange->ranks(), figures);
    });
  }
  std::string text;
  if (command == "bytes") {
    EMBANK_ASSIGN_OR_RETURN(const std::vector<RankBytesFigure> figures,
                            RunRankBytes(options.bytes));
    text = RankBytesTable(machine, options.bytes, figures);
  } else {
    text = RankLoadTable(machine, options.load, RunRankLoad(options.load));
  }
  std::fputs(text.c_str(), stdout);
  return OkStatus();
}

Status RunSchedules(std::span<char* const> words) {
  EMBANK_ASSIGN_OR_RETURN(const RankSchedulesOptions options, ParseRankSchedules(words));
  const std::vector<SimulatedSchedule> schedules = RunRankSchedules(options);
  std::fputs(RankSchedulesTable(options, schedules).c_str(), stdout);
  if (options.svg.empty()) return OkStatus();
  return WriteFile(options.svg, RankSchedulesPicture(schedules));
}

int Main(int count, char** arguments) {
  constexpr std::string_view kCommands[] = {"exchange", "dense", "bytes", "load", "schedules"};
  const std::string command = count > 1 ? arguments[1] : "";
  const bool is_simulated = command == "schedules";
  if ((count > 3 && !is_simulated) ||
      std::ranges::find(kCommands, command) == std::end(kCommands)) {
    std::fputs(
        "usage: embank-ranks bytes | load | schedules [OPTION VALUE ...], and\n"
        "mpirun -n N embank-ranks exchange | dense\n",
        stderr);
    return kExitUsage;
  }
  RankOptions options;
  if (count == 3 && !is_simulated) {
    const auto rounds = static_cast<uint32_t>(std::strtoul(arguments[2], nullptr, 10));
    options.exchange.rounds = options.dense.rounds = std::max(1u, rounds);
  }
  const Status status =
      is_simulated ? RunSchedules(std::span(arguments, static_cast<size_t>(count)).subspan(2))
                   : Run(command, options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "embank-ranks: %s\n", status.ToString().c_str());
  return kExitFailed;
}

}  // namespace
}  // namespace embank

int main(int count, char** arguments) { return embank::Main(count, arguments); }
