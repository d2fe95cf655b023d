// embank write-table: all rows of a table in files that numpy and PyTorch read.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/inspect/json_text.h"
#include "store/scan/scan.h"
#include "tools/byte_size.h"
#include "tools/npy_files.h"
#include "tools/opened_table.h"
#include "tools/output_files.h"
#include "tools/progress_text.h"
#include "tools/safetensors_files.h"
#include "tools/stop_signals.h"
#include "tools/table_command.h"
#include "tools/text_table.h"

namespace embank {
namespace {

struct WrittenTable {
  uint64_t rows = 0;
  uint64_t bytes = 0;
  std::vector<std::string> files;
};

Status OpenFiles(const PlannedFiles& planned, OutputFiles* files) {
  for (const auto& [path, text] : planned.texts) {
    EMBANK_RETURN_IF_ERROR(files->Open(path));
    EMBANK_RETURN_IF_ERROR(files->file(path)->Write(text));
  }
  return OkStatus();
}

// Writes rows of the buffer to their places in a part, after `done` rows.
Status WriteRows(const FilePart& part, uint64_t done, RowBuffer* buffer, size_t rows,
                 OutputFiles* files) {
  for (const RowColumn which : kRowColumns) {
    const std::optional<FileColumn>& column = part[static_cast<size_t>(which)];
    if (!column.has_value()) continue;
    EMBANK_RETURN_IF_ERROR(
        files->file(column->path)
            ->WriteAt(column->offset + done * column->row_bytes(), buffer->Bytes(which, rows)));
  }
  return OkStatus();
}

// Checks the files that would be replaced or removed.
Status CheckReplaced(const TableCommand& command, const PlannedFiles& planned) {
  std::vector<std::string> replaced = planned.stale;
  for (const auto& [path, text] : planned.texts) replaced.push_back(path);
  for (const std::string& path : replaced) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    if (!std::filesystem::is_regular_file(path, error)) {
      return InvalidArgumentError(StrCat("--out: ", path, " is no regular file"));
    }
    if (!command.overwrite) {
      return AlreadyExistsError(StrCat("--out: ", path, " exists; --overwrite replaces it"));
    }
  }
  return OkStatus();
}

StatusOr<PlannedFiles> Plan(const TableCommand& command, const Table& table,
                            const RowBuffer& buffer) {
  if (command.format == "npy") return PlanNpy(table, buffer, command.out);
  EMBANK_ASSIGN_OR_RETURN(const uint64_t shard_bytes,
                          ParseByteSize("--shard-bytes", command.shard_bytes));
  return PlanSafetensors(table, buffer, command.out, shard_bytes);
}

StatusOr<WrittenTable> WriteTable(const TableCommand& command) {
  EMBANK_ASSIGN_OR_RETURN(const OpenedTable opened, OpenToRead(command));
  Table* const table = opened.table;
  const bool has_state = table->layout().state_floats > 0 && !command.no_state;
  RowBuffer buffer(table->layout(), has_state, !command.no_heat);
  EMBANK_ASSIGN_OR_RETURN(const PlannedFiles planned, Plan(command, *table, buffer));
  if (IsWithin(command.out, command.directory)) {
    return InvalidArgumentError(StrCat("--out: ", command.out, " is within ", command.directory,
                                       ", which has no other files than the store's"));
  }
  EMBANK_RETURN_IF_ERROR(CheckReplaced(command, planned));
  const StopSignals signals;
  OutputFiles files;
  EMBANK_RETURN_IF_ERROR(OpenFiles(planned, &files));
  const bool is_watched = command.progress || isatty(STDERR_FILENO) != 0;
  ProgressLines lines("rows written");
  WrittenTable written;
  Scan scan(table);
  for (const FilePart& part : planned.table.parts) {
    const uint64_t rows = part[0]->rows;
    for (uint64_t done = 0; done < rows;) {
      const size_t wanted = std::min<uint64_t>(buffer.rows(), rows - done);
      EMBANK_ASSIGN_OR_RETURN(const uint64_t count, scan.Next(buffer.Scanned(wanted), wanted));
      if (count == 0) {
        return DataLossError(StrCat("table ", table->name(), " has ", table->rows(),
                                    " rows, and only ", written.rows, " of them were found"));
      }
      EMBANK_RETURN_IF_ERROR(WriteRows(part, done, &buffer, count, &files));
      done += count;
      written.rows += count;
      if (is_watched) {
        lines.Show(static_cast<double>(written.rows) / static_cast<double>(table->rows()),
                   written.rows);
      }
      if (signals.received() != nullptr) {
        return CancelledError(StrCat(signals.received(), ": --out was not written"));
      }
    }
  }
  EMBANK_RETURN_IF_ERROR(files.Finish(planned.head, planned.stale));
  for (const auto& [path, text] : planned.texts) {
    std::error_code error;
    written.files.push_back(path);
    written.bytes += std::filesystem::file_size(path, error);
  }
  return written;
}

}  // namespace

ExitCode RunWriteTable(const TableCommand& command) {
  const StatusOr<WrittenTable> written = WriteTable(command);
  if (!written.ok()) return Fail(written.status());
  std::string text;
  if (command.json) {
    text = StrCat("{\"table\":", JsonString(command.table), ",\"rows\":", written->rows,
                  ",\"bytes\":", written->bytes, ",\"files\":", JsonStrings(written->files), "}\n");
  } else {
    text = StrCat(Printable(command.table), ": ", written->rows, " rows, ",
                  BytesText(written->bytes), "\n");
    for (const std::string& file : written->files) StrAppend(&text, "  ", Printable(file), "\n");
  }
  std::fputs(text.c_str(), stdout);
  return ExitCode::kClean;
}

}  // namespace embank
