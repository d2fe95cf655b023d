#include "bench/report_parts.h"

#include <cmath>

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/str_cat.h"
#include "bench/id_mode.h"
#include "bindings/c/embank.h"

namespace embank {

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string Grouped(uint64_t number) {
  std::string digits = StrCat(number);
  for (size_t i = digits.size(); i > 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

std::string GroupedRounded(double number) {
  return Grouped(static_cast<uint64_t>(std::llround(number)));
}

const char* Commit() {
  const char* commit = embank_build_info("git");
  return commit == nullptr ? "unknown" : commit;
}

std::string Heading(const Machine& machine) {
  std::string text;
  absl::StrAppendFormat(&text, "  machine  %s\n", machine.cpu);
  absl::StrAppendFormat(&text, "           %d cores, %.1f GiB, huge pages %s, load %.2f\n",
                        machine.cores, static_cast<double>(machine.memory_bytes) * 0x1p-30,
                        machine.huge_pages, machine.load_average);
  absl::StrAppendFormat(&text, "           %s\n", machine.kernel);
  absl::StrAppendFormat(&text, "  commit   %s\n", Commit());
  return text;
}

std::string Heading(const Machine& machine, const TableShape& shape) {
  std::string text = Heading(machine);
  absl::StrAppendFormat(&text, "  table    dim %d %s, optimizer %s\n", shape.dim,
                        ValueTypeName(shape.value_type), OptimizerName(shape.optimizer));
  return text;
}

std::string Legend(std::string_view words) {
  constexpr size_t kColumnsMax = 80;
  std::string text;
  size_t columns = kColumnsMax;  // of the last line; the first word begins a line
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(words.data(), words.size()), ' ', absl::SkipEmpty());
  for (const std::string& word : parts) {
    const bool fits = columns + 1 + word.size() <= kColumnsMax;
    StrAppend(&text, fits ? " " : text.empty() ? "  " : "\n  ", word);
    columns = fits ? columns + 1 + word.size() : 2 + word.size();
  }
  return text + "\n";
}

std::string MismatchesText(const OracleFigures& figures) {
  return StrCat(Grouped(figures.mismatches),
                figures.first_mismatch.empty() ? "" : ", the first: ", figures.first_mismatch);
}

void AddComparison(const OracleFigures& figures, Json* json) {
  (*json)["answers_compared"] = figures.answers_compared;
  (*json)["rows_compared"] = figures.rows_compared;
  (*json)["mismatches"] = figures.mismatches;
  (*json)["first_mismatch"] = figures.first_mismatch;
}

Json MachineJson(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory_bytes},
          {"kernel", machine.kernel},
          {"huge_pages", machine.huge_pages},
          {"load_average", machine.load_average}};
}

void AddShape(const TableShape& shape, Json* parameters) {
  (*parameters)["dim"] = shape.dim;
  (*parameters)["type"] = ValueTypeName(shape.value_type);
  (*parameters)["optimizer"] = OptimizerName(shape.optimizer);
}

void AddKeys(const KvOptions& options, uint64_t rows, uint64_t positions, bool trace_is_whole,
             Json* parameters) {
  (*parameters)["rows"] = rows;
  (*parameters)["positions"] = positions;
  AddShape(options.shape, parameters);
  (*parameters)["dist"] = DistributionName(options.distribution);
  (*parameters)["trace_is_whole"] = trace_is_whole;
  (*parameters)["id_mode"] = IdModeName(options.id_mode);
  if (options.id_space > 0) (*parameters)["id_space"] = options.id_space;
}

Json OrNull(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

std::string OrDash(const std::optional<double>& value, int digits) {
  return value.has_value() ? absl::StrFormat("%.*f", digits, *value) : "-";
}

}  // namespace embank
