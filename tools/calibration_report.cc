#include "tools/calibration_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

#include "base/exact_text.h"
#include "base/str_cat.h"
#include "store/inspect/json_text.h"
#include "tools/text_table.h"

namespace embank {
namespace {

constexpr size_t kTablesShown = 10;  // a screen has them and the text around them

std::string PercentText(double share) { return StrCat(DecimalText(100.0 * share, 1), " %"); }

std::string ShareText(uint64_t part, uint64_t all) {
  return PercentText(all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all));
}

// JSON has no word for infinity.
std::string JsonNumber(double number) { return std::isfinite(number) ? ExactText(number) : "null"; }

// A line of a report: words of at most 14 letters, and a value.
std::string ReportLine(std::string_view words, std::string_view value) {
  constexpr size_t kWidth = 15;
  return StrCat("  ", words, std::string(kWidth - words.size(), ' '), value, "\n");
}

std::string ThresholdText(double threshold) {
  return std::isfinite(threshold) ? StrCat(threshold, " of the lookups in a table")
                                  : "none: all tables are small, and all their rows are hot";
}

// Returns the numbers 0, 1, ..., those with the most bytes first.
std::vector<size_t> ByBytes(const std::vector<double>& bytes) {
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  return order;
}

std::string TablesText(const Calibration& calibration) {
  const std::vector<CalibratedTable>& tables = calibration.tables;
  std::vector<double> bytes;
  for (const CalibratedTable& table : tables) bytes.push_back(table.rows * table.row_bytes);
  TextTable text({"table", "rows counted", "rows in all", "hot rows", "hot", "size"});
  CalibratedTable rest;
  uint64_t rest_bytes = 0;
  const std::vector<size_t> order = ByBytes(bytes);
  for (size_t i = 0; i < order.size(); ++i) {
    const CalibratedTable& table = tables[order[i]];
    if (i < kTablesShown) {
      text.Add({Printable(table.name), StrCat(table.rows_seen), DecimalText(table.rows, 0),
                StrCat(table.hot_rows), table.is_small ? "as a whole" : "in part",
                BytesText(static_cast<uint64_t>(bytes[order[i]]))});
      continue;
    }
    rest.rows_seen += table.rows_seen;
    rest.rows += table.rows;
    rest.hot_rows += table.hot_rows;
    rest_bytes += static_cast<uint64_t>(bytes[order[i]]);
  }
  if (order.size() > kTablesShown) {
    text.Add({StrCat(order.size() - kTablesShown, " more"), StrCat(rest.rows_seen),
              DecimalText(rest.rows, 0), StrCat(rest.hot_rows), "", BytesText(rest_bytes)});
  }
  return text.Text();
}

std::string CountedText(const Calibration& calibration) {
  if (calibration.counted_share < 1.0) {
    return StrCat(PercentText(calibration.counted_share), " of ", calibration.samples, " inputs");
  }
  return StrCat("all ", calibration.samples, " inputs",
                calibration.options.sampled_share < 1.0
                    ? StrCat(": there are at most ", kFullProfileIdsMax, " ids")
                    : std::string());
}

std::string HotRowsText(const Calibration& calibration) {
  uint64_t rows = 0;
  uint64_t counted = 0;
  uint64_t small = 0;
  for (const CalibratedTable& table : calibration.tables) {
    small += table.is_small ? 1 : 0;
    if (table.is_small) continue;
    rows += table.hot_rows;
    counted += table.rows_seen;
  }
  const bool may_grow = calibration.choice.has_all && calibration.counted_share < 1.0;
  if (small == calibration.tables.size()) return "all rows, since all tables are small";
  return StrCat(rows, " of ", counted, " that were counted in large tables",
                small > 0 ? StrCat(", and those of ", small, " small ones") : std::string(),
                may_grow ? "; a larger --sample finds more" : "");
}

uint64_t CountHotRows(const FaeFile& file) {
  uint64_t rows = 0;
  for (const IdPlaces& places : file.hot_ids()->tables) rows += places.size();
  return rows;
}

// The name of each table, and the bytes of a row.
struct FileTable {
  std::string name;
  uint32_t row_bytes = 0;
};

std::vector<FileTable> TablesOfFile(const FaeFile& file) {
  const std::vector<uint32_t>& table_of_column = file.hot_ids()->table_of_column;
  std::vector<FileTable> tables(file.hot_ids()->tables.size());
  for (size_t i = 0; i < table_of_column.size(); ++i) {
    tables[table_of_column[i]] = {file.header().columns.table_names()[i],
                                  file.header().row_bytes[i]};
  }
  return tables;
}

std::string HotTablesText(const FaeFile& file) {
  const std::vector<FileTable> tables = TablesOfFile(file);
  const auto rows = [&](size_t table) -> uint64_t { return file.hot_ids()->tables[table].size(); };
  std::vector<double> bytes;
  for (size_t i = 0; i < tables.size(); ++i) {
    bytes.push_back(static_cast<double>(rows(i) * tables[i].row_bytes));
  }
  TextTable text({"table", "hot rows", "bytes of a row", "size"});
  uint64_t rest_rows = 0;
  uint64_t rest_bytes = 0;
  const std::vector<size_t> order = ByBytes(bytes);
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t table = order[i];
    const auto table_bytes = static_cast<uint64_t>(bytes[table]);
    if (i < kTablesShown) {
      text.Add({Printable(tables[table].name), StrCat(rows(table)), StrCat(tables[table].row_bytes),
                BytesText(table_bytes)});
      continue;
    }
    rest_rows += rows(table);
    rest_bytes += table_bytes;
  }
  if (order.size() > kTablesShown) {
    text.Add({StrCat(order.size() - kTablesShown, " more"), StrCat(rest_rows), "",
              BytesText(rest_bytes)});
  }
  return text.Text();
}

std::string DimsText(const FaeHeader& header) {
  const std::set<uint32_t> dims(header.dims.begin(), header.dims.end());
  return StrCat("dim ", StrJoin(dims, " and "));
}

}  // namespace

std::string EstimateText(const Calibration& calibration, double seconds) {
  const HotChoice& choice = calibration.choice;
  const std::string bound =
      calibration.counted_share < 1.0
          ? StrCat(", at most ", BytesText(static_cast<uint64_t>(std::ceil(choice.bound_bytes))),
                   " by the estimate")
          : std::string();
  return StrCat(
      "estimate\n", ReportLine("counted", CountedText(calibration)),
      ReportLine("threshold", ThresholdText(choice.threshold)),
      ReportLine("hot rows", HotRowsText(calibration)),
      ReportLine("hot bytes", StrCat(BytesText(choice.hot_bytes), bound, "; the budget is ",
                                     BytesText(calibration.options.budget_bytes))),
      ReportLine("hot inputs", StrCat("about ", PercentText(calibration.hot_input_share))),
      ReportLine("seconds", StrCat(DecimalText(calibration.counting_seconds, 2), " of counting, ",
                                   DecimalText(seconds, 2), " with reading and the choice")),
      TablesText(calibration));
}

std::string EstimateJson(const Calibration& calibration, double seconds) {
  const HotChoice& choice = calibration.choice;
  const auto table = [](const CalibratedTable& of) {
    return StrCat("{\"table\": ", JsonString(of.name), ", \"rows_counted\": ", of.rows_seen,
                  ", \"rows\": ", JsonNumber(of.rows), ", \"lookups_counted\": ", of.accesses,
                  ", \"hot_rows\": ", of.hot_rows, ", \"row_bytes\": ", of.row_bytes,
                  ", \"is_small\": ", of.is_small ? "true" : "false", "}");
  };
  return StrCat("\"estimate\": {\"counted_share\": ", JsonNumber(calibration.counted_share),
                ", \"ids\": ", calibration.ids, ", \"steps\": ", choice.steps,
                ", \"threshold\": ", JsonNumber(choice.threshold),
                ", \"has_all_rows\": ", choice.has_all ? "true" : "false",
                ", \"reserved_bytes\": ", choice.reserved_bytes,
                ", \"estimated_bytes\": ", JsonNumber(choice.estimated_bytes),
                ", \"bound_bytes\": ", JsonNumber(choice.bound_bytes),
                ", \"hot_bytes\": ", choice.hot_bytes,
                ", \"hot_input_share\": ", JsonNumber(calibration.hot_input_share),
                ", \"counting_seconds\": ", JsonNumber(calibration.counting_seconds),
                ", \"seconds\": ", JsonNumber(seconds),
                ", \"tables\": ", JsonArray(calibration.tables, table), "}");
}

std::string FaeFileText(const FaeFile& file) {
  const FaeHeader& header = file.header();
  const uint64_t hot = file.samples(/*is_hot=*/true);
  uint64_t log_bytes = 0;
  for (const LogFile& log : header.files) log_bytes += log.bytes;
  return StrCat(
      ReportLine("log",
                 StrCat(header.files.size(), header.files.size() == 1 ? " file of " : " files of ",
                        BytesText(log_bytes))),
      ReportLine("features",
                 StrCat(header.columns.dense.size(), " dense, ", header.columns.ids.size(),
                        " of ids in ", file.hot_ids()->tables.size(), " tables")),
      ReportLine("rows", StrCat("of model ", header.model, ", ", DimsText(header), ", optimizer ",
                                header.row_optimizer)),
      ReportLine("sample", header.counted_share < 1.0
                               ? StrCat(PercentText(header.counted_share),
                                        " of the inputs counted, by seed ", header.seed)
                               : "all inputs counted"),
      ReportLine("threshold", ThresholdText(header.threshold)),
      ReportLine("hot rows", StrCat(CountHotRows(file))),
      ReportLine("hot bytes", StrCat(BytesText(header.hot_bytes), ", ",
                                     ShareText(header.hot_bytes, header.budget_bytes),
                                     " of the budget of ", BytesText(header.budget_bytes))),
      ReportLine("hot inputs",
                 StrCat(hot, " of ", header.samples, ", ", ShareText(hot, header.samples))),
      ReportLine("cold inputs", StrCat(file.samples(/*is_hot=*/false))), HotTablesText(file));
}

std::string FaeFileJson(const FaeFile& file) {
  const FaeHeader& header = file.header();
  const uint64_t hot = file.samples(/*is_hot=*/true);
  const auto log = [](const LogFile& of) {
    return StrCat("{\"bytes\": ", of.bytes, ", \"crc32c\": ", of.crc32c, "}");
  };
  std::vector<size_t> columns(header.columns.ids.size());
  std::iota(columns.begin(), columns.end(), size_t{0});
  const auto feature = [&](size_t i) {
    return StrCat("{\"name\": ", JsonString(header.columns.ids[i]),
                  ", \"table\": ", JsonString(header.columns.table_names()[i]),
                  ", \"dim\": ", header.dims[i], ", \"row_bytes\": ", header.row_bytes[i],
                  ", \"hot_rows_of_table\": ",
                  file.hot_ids()->OfColumn(static_cast<uint32_t>(i)).size(), "}");
  };
  const double share =
      header.samples == 0 ? 0.0 : static_cast<double>(hot) / static_cast<double>(header.samples);
  return StrCat(
      "\"log_files\": ", JsonArray(header.files, log), ", \"budget_bytes\": ", header.budget_bytes,
      ", \"sampled_share\": ", JsonNumber(header.sampled_share),
      ", \"counted_share\": ", JsonNumber(header.counted_share), ", \"seed\": ", header.seed,
      ", \"threshold\": ", JsonNumber(header.threshold), ", \"hot_rows\": ", CountHotRows(file),
      ", \"hot_bytes\": ", header.hot_bytes, ", \"bound_bytes\": ", header.bound_bytes,
      ", \"inputs\": ", header.samples, ", \"hot_inputs\": ", hot,
      ", \"cold_inputs\": ", file.samples(/*is_hot=*/false),
      ", \"hot_input_share\": ", JsonNumber(share), ", \"model\": ", JsonString(header.model),
      ", \"row_optimizer\": ", JsonString(header.row_optimizer),
      ", \"dense_features\": ", JsonStrings(header.columns.dense),
      ", \"id_features\": ", JsonArray(columns, feature));
}

}  // namespace embank
