// embank read-table: writes the rows of files into a table, and makes a checkpoint.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/files/posix_file_system.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/write.h"
#include "store/inspect/json_text.h"
#include "store/inspect/survey.h"
#include "tools/npy_files.h"
#include "tools/opened_table.h"
#include "tools/progress_text.h"
#include "tools/safetensors_files.h"
#include "tools/stop_signals.h"
#include "tools/table_command.h"
#include "tools/text_table.h"

namespace embank {
namespace {

struct AddedRows {
  uint64_t rows = 0;
  uint64_t created = 0;
  uint32_t checkpoint = 0;
  bool is_new_table = false;
};

StatusOr<TableFiles> ReadFiles(const TableCommand& command) {
  if (command.format == "npy" && command.in.size() != 1) {
    return InvalidArgumentError(StrCat("--in has ", command.in.size(),
                                       " names; of npy files it must have one, as NAME of "
                                       "NAME.keys.npy"));
  }
  EMBANK_ASSIGN_OR_RETURN(TableFiles files, command.format == "npy" ? ReadNpy(command.in[0])
                                                                    : ReadSafetensors(command.in));
  if (command.no_state) files.Drop(RowColumn::kState);
  if (command.no_heat) files.Drop(RowColumn::kHeat);
  return files;
}

StatusOr<Optimizer> ParseOptimizer(const std::string& of, const std::string& text) {
  for (int32_t number = 0; number <= static_cast<int32_t>(Optimizer::kFtrl); ++number) {
    const auto optimizer = static_cast<Optimizer>(number);
    if (text == NameOf(optimizer)) return optimizer;
  }
  return InvalidArgumentError(StrCat(of, " is ", text, "; it must be none, sgd, adagrad, ",
                                     "rowwise_adagrad, adam or ftrl"));
}

// The options of a table that is made for the files.
StatusOr<TableOptions> OptionsOf(const TableCommand& command, const TableFiles& files) {
  const FileColumn& values = *files.First(RowColumn::kValues);
  if (values.width > kDimMax) {
    return InvalidArgumentError(
        StrCat(values.path, ": dim is ", values.width, "; it must be 1 to ", kDimMax));
  }
  TableOptions options;
  options.dim = static_cast<uint32_t>(values.width);
  for (const ValueType type : {ValueType::kF16, ValueType::kBf16}) {
    if (TypeOfValues(type).name == values.type->name) options.value_type = type;
  }
  const bool is_given = !command.optimizer.empty();
  if (!is_given && files.optimizer.empty() && files.Has(RowColumn::kState)) {
    return InvalidArgumentError(StrCat(values.path, ": there are states, and the files do not say ",
                                       "of which optimizer: give --optimizer"));
  }
  if (is_given || !files.optimizer.empty()) {
    EMBANK_ASSIGN_OR_RETURN(
        options.optimizer,
        is_given ? ParseOptimizer("--optimizer", command.optimizer)
                 : ParseOptimizer(StrCat(values.path, ": optimizer"), files.optimizer));
  }
  if (command.learning_rate) options.rule.learning_rate = *command.learning_rate;
  EMBANK_RETURN_IF_ERROR(Validate(options));
  return options;
}

// The options of the table that is there, or of a new one; refuses files that do not fit.
StatusOr<TableOptions> CheckTable(const TableCommand& command, const TableFiles& files,
                                  const Manifest& manifest, bool* is_new) {
  const auto found = std::ranges::find(manifest.tables, command.table, &ManifestTable::name);
  *is_new = found == manifest.tables.end();
  TableOptions options;
  if (*is_new) {
    EMBANK_RETURN_IF_ERROR(ValidateNewTableName(command.table));
    EMBANK_ASSIGN_OR_RETURN(options, OptionsOf(command, files));
  } else {
    options = found->options;
    if (command.learning_rate) {
      return InvalidArgumentError(StrCat("--learning-rate is for a new table; table ",
                                         command.table, " is there, and keeps its own"));
    }
    if (!command.optimizer.empty() && command.optimizer != NameOf(options.optimizer)) {
      return InvalidArgumentError(StrCat("--optimizer is ", command.optimizer, "; table ",
                                         command.table, " has optimizer ",
                                         NameOf(options.optimizer)));
    }
  }
  EMBANK_RETURN_IF_ERROR(CheckFits(files, command.table, options));
  return options;
}

// Reads rows of a part from their places, after `done` rows.
Status ReadRows(const std::map<std::string, InputFile>& open, const FilePart& part, uint64_t done,
                RowBuffer* buffer, size_t rows) {
  for (const RowColumn which : kRowColumns) {
    const std::optional<FileColumn>& column = part[static_cast<size_t>(which)];
    if (!column.has_value()) continue;
    EMBANK_RETURN_IF_ERROR(
        open.at(column->path)
            .Read(column->offset + done * column->row_bytes(), buffer->Bytes(which, rows)));
  }
  return OkStatus();
}

Status CheckOutcomes(const Table& table, KeySpan keys, std::span<const uint8_t> outcomes,
                     AddedRows* added) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto outcome = static_cast<Outcome>(outcomes[i]);
    if (outcome == Outcome::kCreated) ++added->created;
    if (outcome <= Outcome::kCreated) continue;
    const std::string row = StrCat("table ", table.name(), ": the row of key ", keys[i]);
    return outcome == Outcome::kRefused
               ? ResourceExhaustedError(StrCat(row, " has no space; --dram-bytes is a limit"))
               : UnavailableError(StrCat(row, " of the store cannot be read: embank verify"));
  }
  added->rows += keys.size();
  return OkStatus();
}

Status AddRows(const TableCommand& command, const TableFiles& files, Table* table,
               AddedRows* added) {
  RowBuffer buffer(table->layout(), files.Has(RowColumn::kState), files.Has(RowColumn::kHeat));
  const bool is_watched = command.progress || isatty(STDERR_FILENO) != 0;
  const StopSignals signals;
  ProgressLines lines("rows read");
  const uint64_t total = files.rows();
  std::vector<uint8_t> outcomes(buffer.rows());
  for (const FilePart& part : files.parts) {
    std::map<std::string, InputFile> open;
    for (const std::optional<FileColumn>& column : part) {
      if (!column.has_value() || open.contains(column->path)) continue;
      EMBANK_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(column->path));
      open.emplace(column->path, std::move(file));
    }
    for (uint64_t done = 0; done < part[0]->rows;) {
      const size_t count = std::min<uint64_t>(buffer.rows(), part[0]->rows - done);
      EMBANK_RETURN_IF_ERROR(ReadRows(open, part, done, &buffer, count));
      const KeySpan keys = KeySpan(buffer.keys()).first(count);
      EMBANK_RETURN_IF_ERROR(
          Upsert(table, keys, buffer.ToWrite(), std::span(outcomes).first(count)));
      EMBANK_RETURN_IF_ERROR(CheckOutcomes(*table, keys, outcomes, added));
      done += count;
      if (is_watched) {
        lines.Show(static_cast<double>(added->rows) / static_cast<double>(total), added->rows);
      }
      if (signals.received() != nullptr) {
        return CancelledError(StrCat(signals.received(), ": the store is as it was"));
      }
    }
  }
  return OkStatus();
}

StatusOr<AddedRows> ReadTable(const TableCommand& command) {
  EMBANK_ASSIGN_OR_RETURN(const TableFiles files, ReadFiles(command));
  const std::unique_ptr<FileSystem> system = MakePosixFileSystem({});
  EMBANK_ASSIGN_OR_RETURN(const Manifest manifest,
                          ReadNewestManifest(system.get(), command.directory));
  AddedRows added;
  EMBANK_ASSIGN_OR_RETURN(const TableOptions options,
                          CheckTable(command, files, manifest, &added.is_new_table));
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                          OpenToChange(system.get(), command, manifest));
  EMBANK_ASSIGN_OR_RETURN(Table* const table, added.is_new_table
                                                  ? store->CreateTable(command.table, options)
                                                  : store->catalog().Open(command.table));
  // Another process may have made the table anew before this one had the lock.
  EMBANK_RETURN_IF_ERROR(CheckFits(files, command.table, table->options()));
  EMBANK_RETURN_IF_ERROR(AddRows(command, files, table, &added));
  // A checkpoint replaces the blob, which is the state of a program, such as a training.
  const StatusOr<std::vector<std::byte>> blob = store->checkpoints()->Blob();
  if (!blob.ok() && !IsNotFound(blob.status())) return blob.status();
  EMBANK_ASSIGN_OR_RETURN(
      added.checkpoint,
      store->checkpoints()->Make(blob.ok() ? std::span(*blob) : std::span<const std::byte>()));
  return added;
}

}  // namespace

ExitCode RunReadTable(const TableCommand& command) {
  const StatusOr<AddedRows> added = ReadTable(command);
  if (!added.ok()) return Fail(added.status());
  const std::string text =
      command.json ? StrCat("{\"table\":", JsonString(command.table),
                            ",\"table_created\":", added->is_new_table ? "true" : "false",
                            ",\"rows\":", added->rows, ",\"rows_created\":", added->created,
                            ",\"checkpoint\":", added->checkpoint, "}\n")
                   : StrCat(Printable(command.table), added->is_new_table ? " (a new table)" : "",
                            ": ", added->rows, " rows written, of which ", added->created,
                            " are new; checkpoint ", added->checkpoint, "\n");
  std::fputs(text.c_str(), stdout);
  return ExitCode::kClean;
}

}  // namespace embank
