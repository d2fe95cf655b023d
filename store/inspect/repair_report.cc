#include "store/inspect/repair_report.h"

#include "base/str_cat.h"
#include "store/inspect/json_text.h"

namespace embank {
namespace {

std::string TextOrNull(const std::string& text) { return text.empty() ? "null" : JsonString(text); }

std::string FormatRepairedTable(const RepairedTable& table) {
  return StrCat("{\"table\":", JsonString(table.name), ",\"rows_saved\":", table.rows_saved,
                ",\"rows_lost\":", table.rows_lost, "}");
}

std::string FormatLoss(const RepairLoss& loss) {
  return StrCat("{\"file\":", JsonString(loss.file), ",\"what\":", JsonString(loss.what),
                ",\"table\":", TextOrNull(loss.table), ",\"rows\":", loss.rows, ",\"keys\":[",
                StrJoin(loss.keys, ","), "]}");
}

}  // namespace

std::string FormatRepairReport(const RepairReport& report) {
  return StrCat(
      "{\"directory\":", JsonString(report.directory), ",\"target\":", JsonString(report.target),
      ",\"whole\":", report.is_whole() ? "true" : "false", ",\"checkpoint\":", report.checkpoint,
      ",\"role\":\"", report.is_newest ? "newest" : "previous",
      "\",\"newest_lost\":", TextOrNull(report.newest_lost), ",\"rows_saved\":", report.rows_saved,
      ",\"rows_lost\":", report.rows_lost,
      ",\"tables\":", JsonArray(report.tables, FormatRepairedTable),
      ",\"loss_count\":", report.loss_count, ",\"losses\":", JsonArray(report.losses, FormatLoss),
      ",\"heat_lost\":", TextOrNull(report.heat_lost), ",\"segments\":", report.segments,
      ",\"written_bytes\":", report.written_bytes, "}");
}

}  // namespace embank
