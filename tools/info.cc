// embank info: the identity of a store, and its tables.
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

const char* TypeName(ValueType type) {
  static constexpr const char* kNames[] = {"f32", "f16", "bf16"};
  return kNames[static_cast<int32_t>(type)];
}

constexpr const char* kColumns =
    "  rows: in the newest checkpoint; dim: values of a row; type: of one value;\n"
    "  optimizer: how gradients change a row; row bytes: of one row in memory (header,\n"
    "  values, optimizer state). Above, segments: the files that hold rows, and their\n"
    "  size; blob: bytes that the program kept in the checkpoint\n";

std::string IdText(uint64_t id) { return StrCat(Hex(id, 16)); }

std::string InfoText(const Survey& survey) {
  std::string text = StrCat(
      Printable(survey.directory), "\nstore id     ", IdText(survey.store_id), "\nseed         ",
      survey.seed, "\nformat       ", kManifestFormatVersion, "\nsegments     ", survey.segments,
      ", ", BytesText(survey.segment_bytes), "\nblob         ", BytesText(survey.blob_bytes), "\n");
  for (const SurveyedCheckpoint& checkpoint : survey.checkpoints) {
    StrAppend(&text, "checkpoint   ", checkpoint.checkpoint, ": ");
    if (checkpoint.unreadable.empty()) {
      StrAppend(&text, checkpoint.rows, " rows in ", checkpoint.segments, " segments\n");
    } else {
      StrAppend(&text, "CANNOT BE READ: ", Printable(checkpoint.unreadable), "\n");
    }
  }
  TextTable tables({"table", "rows", "dim", "type", "optimizer", "row bytes"});
  for (const SurveyedTable& table : survey.tables) {
    const TableOptions& options = table.table.options;
    tables.Add({Printable(table.table.name), StrCat(table.rows), StrCat(options.dim),
                TypeName(options.value_type), NameOf(options.optimizer),
                StrCat(survey.classes[table.row_class].row_bytes)});
  }
  StrAppend(&text, tables.Text(), kColumns);
  if (survey.unknown_rows > 0) {
    StrAppend(&text, survey.unknown_rows,
              " more rows in segments that do not say whose they are: embank verify\n");
  }
  return text;
}

std::string InfoJson(const Survey& survey) {
  std::string json =
      StrCat("{\"directory\":", JsonString(survey.directory), ",\"store_id\":\"",
             IdText(survey.store_id), "\",\"seed\":", survey.seed,
             ",\"format_version\":", kManifestFormatVersion, ",\"segments\":", survey.segments,
             ",\"segment_bytes\":", survey.segment_bytes, ",\"blob_bytes\":", survey.blob_bytes,
             ",\"unknown_rows\":", survey.unknown_rows, ",\"checkpoints\":[");
  const char* comma = "";
  for (const SurveyedCheckpoint& checkpoint : survey.checkpoints) {
    const bool readable = checkpoint.unreadable.empty();
    StrAppend(&json, comma, "{\"checkpoint\":", checkpoint.checkpoint,
              ",\"readable\":", readable ? "true" : "false", ",\"rows\":", checkpoint.rows,
              ",\"segments\":", checkpoint.segments, "}");
    comma = ",";
  }
  json += "],\"tables\":[";
  comma = "";
  for (const SurveyedTable& table : survey.tables) {
    const TableOptions& options = table.table.options;
    StrAppend(&json, comma, "{\"table\":", JsonString(table.table.name), ",\"rows\":", table.rows,
              ",\"dim\":", options.dim, ",\"value_type\":\"", TypeName(options.value_type),
              "\",\"optimizer\":\"", NameOf(options.optimizer),
              "\",\"row_bytes\":", survey.classes[table.row_class].row_bytes, "}");
    comma = ",";
  }
  return json + "]}\n";
}

}  // namespace

ExitCode RunInfo(const LookOptions& options) {
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  const StatusOr<Survey> survey = SurveyStore(files.get(), options.directory);
  if (!survey.ok()) return Fail(survey.status());
  std::fputs((options.json ? InfoJson(*survey) : InfoText(*survey)).c_str(), stdout);
  return ExitCode::kClean;
}

}  // namespace embank
