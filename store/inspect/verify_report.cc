#include "store/inspect/verify_report.h"

#include "base/str_cat.h"
#include "store/inspect/json_text.h"

namespace embank {
namespace {

const char* Bool(bool value) { return value ? "true" : "false"; }

std::string FormatVerifiedTable(const VerifiedTable& table) {
  return StrCat("{\"table\":", JsonString(table.name), ",\"rows\":", table.rows,
                ",\"rows_lost\":", table.rows_lost, "}");
}

std::string FormatCheckpoint(const VerifiedCheckpoint& checkpoint) {
  const std::string front =
      StrCat("{\"checkpoint\":", checkpoint.checkpoint, ",\"role\":\"",
             checkpoint.is_newest ? "newest" : "previous", "\",\"opens\":", Bool(checkpoint.opens),
             ",\"readable\":", Bool(checkpoint.is_readable));
  if (!checkpoint.is_readable) {
    return StrCat(front, ",\"segments\":null,\"rows\":null,\"rows_lost\":null,\"tables\":null}");
  }
  return StrCat(front, ",\"segments\":", checkpoint.segments, ",\"rows\":", checkpoint.rows,
                ",\"rows_lost\":", checkpoint.rows_lost,
                ",\"tables\":", JsonArray(checkpoint.tables, FormatVerifiedTable), "}");
}

std::string FormatLost(const LostRows& lost) {
  return StrCat("{\"checkpoint\":", lost.checkpoint,
                ",\"table\":", lost.table.empty() ? "null" : JsonString(lost.table),
                ",\"rows\":", lost.rows, ",\"keys\":[", StrJoin(lost.keys, ","), "]}");
}

std::string FormatDamage(const Damage& damage) {
  std::string json =
      StrCat("{\"file\":", JsonString(damage.file), ",\"part\":\"", PartName(damage.part), "\"");
  if (damage.slots > 0) {
    StrAppend(&json, ",\"first_slot\":", damage.first_slot, ",\"slots\":", damage.slots);
  }
  return StrCat(json, ",\"what\":", JsonString(damage.what),
                ",\"lost\":", JsonArray(damage.lost, FormatLost), "}");
}

std::string FormatFiles(const NamedFiles& files) {
  return StrCat("{\"count\":", files.count, ",\"files\":", JsonStrings(files.names), "}");
}

}  // namespace

const char* PartName(DamagedPart part) {
  static constexpr const char* kNames[] = {"manifest", "file",    "header",
                                           "footer",   "records", "heat"};
  return kNames[static_cast<uint32_t>(part)];
}

std::string FormatVerifyReport(const VerifyReport& report) {
  return StrCat("{\"directory\":", JsonString(report.directory),
                ",\"clean\":", Bool(report.clean()),
                ",\"checkpoints\":", JsonArray(report.checkpoints, FormatCheckpoint),
                ",\"damage_count\":", report.damage_count,
                ",\"damage\":", JsonArray(report.damage, FormatDamage),
                ",\"orphans\":", FormatFiles(report.orphans),
                ",\"undecided\":", FormatFiles(report.undecided), ",\"segments\":", report.segments,
                ",\"read_bytes\":", report.read_bytes, "}");
}

}  // namespace embank
