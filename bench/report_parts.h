// What the reports of all commands have in common.
#ifndef EMBANK_BENCH_REPORT_PARTS_H_
#define EMBANK_BENCH_REPORT_PARTS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "bench/machine.h"
#include "bench/options.h"

namespace embank {

using Json = nlohmann::ordered_json;

// For a file. Names of machines and files may be no UTF-8: what is not is replaced.
std::string JsonText(const Json& json);

// 1234567 -> "1,234,567"; the second rounds.
std::string Grouped(uint64_t number);
std::string GroupedRounded(double number);

// The number, or what stands for none.
Json OrNull(const std::optional<double>& value);
std::string OrDash(const std::optional<double>& value, int digits);

// Of the sources, as the library tells it.
const char* Commit();

// The lines above a table: machine and commit; and the rows, where there are any.
std::string Heading(const Machine& machine);
std::string Heading(const Machine& machine, const TableShape& shape);

// What stands below a table and explains its columns: words in lines of at most 80 columns,
// indented by two, the last one ended.
std::string Legend(std::string_view words);

Json MachineJson(const Machine& machine);
void AddShape(const TableShape& shape, Json* parameters);

}  // namespace embank

#endif  // EMBANK_BENCH_REPORT_PARTS_H_
