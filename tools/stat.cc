// embank stat: living and dead records in the segments of a store, by class of rows.
#include <cstdio>
#include <memory>

#include "base/files/posix_file_system.h"
#include "base/str_cat.h"
#include "store/inspect/json_text.h"
#include "store/inspect/survey.h"
#include "tools/command.h"
#include "tools/text_table.h"

namespace embank {
namespace {

constexpr const char* kStatColumns =
    "  class: rows of one size share files (below); rows: in the newest checkpoint;\n"
    "  live: bytes of these rows on disk\n";
constexpr const char* kSpaceLines =
    "  on disk, in PMem: files with segments of both checkpoints; kept: records that one of them\n"
    "  has, or both, in either;\n"
    "  an export would copy: segments of the newest checkpoint that it cannot link\n";
constexpr const char* kClassColumns =
    "  record bytes: one row on disk; segments: files of the class, and their bytes;\n"
    "  live: rows of the checkpoint; dead: rows that were overwritten, erased or left\n"
    "  out: compaction gives their space back; utilisation: live / bytes\n";

uint64_t LiveBytes(const Survey& survey, const SurveyedTable& table) {
  return table.rows * survey.classes[table.row_class].record_bytes;
}

std::string StatText(const Survey& survey) {
  TextTable tables({"table", "class", "rows", "live"});
  for (const SurveyedTable& table : survey.tables) {
    tables.Add({Printable(table.table.name), StrCat(table.row_class), StrCat(table.rows),
                BytesText(LiveBytes(survey, table))});
  }
  TextTable classes({"class", "record bytes", "segments", "bytes", "live", "dead", "utilisation"});
  for (size_t i = 0; i < survey.classes.size(); ++i) {
    const SurveyedClass& of_class = survey.classes[i];
    classes.Add({StrCat(i), StrCat(of_class.record_bytes), StrCat(of_class.segments),
                 BytesText(of_class.segment_bytes), BytesText(of_class.live_bytes()),
                 BytesText(of_class.dead_bytes()),
                 StrCat(DecimalText(of_class.utilisation() * 100, 1), " %")});
  }
  std::string text =
      StrCat(Printable(survey.directory), ": checkpoint ", survey.checkpoints[0].checkpoint, "\n",
             tables.Text(), kStatColumns, classes.Text(), kClassColumns, "on disk ",
             BytesText(survey.taken_bytes[Tier::kSsd]), ", in PMem ",
             BytesText(survey.taken_bytes[Tier::kPmem]), ", kept ", BytesText(survey.kept_bytes),
             "; an export would copy ", BytesText(survey.export_bytes), "\n", kSpaceLines);
  if (survey.unknown_rows > 0) {
    StrAppend(&text, survey.unknown_rows,
              " more rows in segments that do not say whose they are: embank verify\n");
  }
  if (survey.rows_lost > 0) {
    StrAppend(&text, survey.rows_lost,
              " rows were lost before this checkpoint: a repair, or a checkpoint after PMem was "
              "removed,\n  could not read them\n");
  }
  return text;
}

std::string StatJson(const Survey& survey) {
  std::string json = StrCat(
      "{\"directory\":", JsonString(survey.directory),
      ",\"checkpoint\":", survey.checkpoints[0].checkpoint,
      ",\"unknown_rows\":", survey.unknown_rows, ",\"rows_lost\":", survey.rows_lost,
      ",\"disk_bytes\":", survey.taken_bytes[Tier::kSsd],
      ",\"pmem_bytes\":", survey.taken_bytes[Tier::kPmem], ",\"kept_bytes\":", survey.kept_bytes,
      ",\"export_bytes\":", survey.export_bytes, ",\"tables\":[");
  const char* comma = "";
  for (const SurveyedTable& table : survey.tables) {
    StrAppend(&json, comma, "{\"table\":", JsonString(table.table.name),
              ",\"class\":", table.row_class, ",\"rows\":", table.rows,
              ",\"live_bytes\":", LiveBytes(survey, table), "}");
    comma = ",";
  }
  json += "],\"classes\":[";
  comma = "";
  for (size_t i = 0; i < survey.classes.size(); ++i) {
    const SurveyedClass& of_class = survey.classes[i];
    StrAppend(&json, comma, "{\"class\":", i, ",\"row_bytes\":", of_class.row_bytes,
              ",\"record_bytes\":", of_class.record_bytes, ",\"segments\":", of_class.segments,
              ",\"segment_bytes\":", of_class.segment_bytes, ",\"live_rows\":", of_class.live_rows,
              ",\"dead_rows\":", of_class.dead_rows, ",\"live_bytes\":", of_class.live_bytes(),
              ",\"dead_bytes\":", of_class.dead_bytes(),
              ",\"utilisation\":", DecimalText(of_class.utilisation(), 6), "}");
    comma = ",";
  }
  return json + "]}\n";
}

}  // namespace

ExitCode RunStat(const LookOptions& options) {
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  const StatusOr<Survey> survey = SurveyStore(files.get(), options.directory);
  if (!survey.ok()) return Fail(survey.status());
  std::fputs((options.json ? StatJson(*survey) : StatText(*survey)).c_str(), stdout);
  return ExitCode::kClean;
}

}  // namespace embank
