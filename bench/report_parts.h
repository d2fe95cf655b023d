// The parts that the reports of all commands share.
#ifndef EMBANK_BENCH_REPORT_PARTS_H_
#define EMBANK_BENCH_REPORT_PARTS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "bench/machine.h"
#include "bench/options.h"
#include "bench/oracle_check.h"

namespace embank {

using Json = nlohmann::ordered_json;

// A text for a file. Names of machines and files may have bytes that are no UTF-8, which are
// replaced.
std::string JsonText(const Json& json);

// 1234567 -> "1,234,567"; the second rounds.
std::string Grouped(uint64_t number);
std::string GroupedRounded(double number);

// The number, or a dash if there is none.
Json OrNull(const std::optional<double>& value);
std::string OrDash(const std::optional<double>& value, int digits);

// The commit of the sources, as the library reports it.
const char* Commit();

// The lines above a table: machine and commit; and the rows, if there are any.
std::string Heading(const Machine& machine);
std::string Heading(const Machine& machine, const TableShape& shape);

// Formats the text below a table that explains its columns: lines of at most 80 columns, indented
// by two, with a newline at the end.
std::string Legend(std::string_view words);

// "0", or "3, the first: key 7: ...".
std::string MismatchesText(const OracleFigures& figures);
// Adds them as members.
void AddComparison(const OracleFigures& figures, Json* json);

Json MachineJson(const Machine& machine);
void AddShape(const TableShape& shape, Json* parameters);
// Adds the table and the keys of a kv run.
void AddKeys(const KvOptions& options, uint64_t rows, uint64_t positions, bool trace_is_whole,
             Json* parameters);

}  // namespace embank

#endif  // EMBANK_BENCH_REPORT_PARTS_H_
