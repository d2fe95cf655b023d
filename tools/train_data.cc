#include "tools/train_data.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tools/hot_cold_data.h"
#include "tools/rank_output.h"
#include "train/bytes/byte_source.h"
#include "train/bytes/line_reader.h"
#include "train/bytes/text_source.h"
#include "train/data/click_files.h"
#include "train/data/column_file.h"
#include "train/model_text.h"

namespace embank {
namespace {

// The beginning of a log tells it from another one. Lines may be appended to a log of this size.
constexpr size_t kHeadBytes = 64 * 1024;
constexpr size_t kHeadBytesMax = LineReader::kLineBytesMax;

StatusOr<std::string> ReadText(const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenTextSource(path));
  std::string text;
  std::array<char, 4096> part;
  size_t size = part.size();
  while (size == part.size()) {
    EMBANK_ASSIGN_OR_RETURN(size, source->Read(std::as_writable_bytes(std::span(part))));
    text.append(part.data(), size);
  }
  return text;
}

// Returns the columns of CSV, libsvm or libffm; nothing: the lines have Criteo's format.
StatusOr<std::optional<ColumnFile>> ReadColumns(const TrainCommand& command, bool has_labels) {
  const std::string& text = command.format;
  const bool is_criteo = text.empty() || text.ends_with(kCriteoFormat);
  if (command.columns.empty() && is_criteo) return std::optional<ColumnFile>();
  StatusOr<ColumnFile> columns = ParseColumnFile(text, has_labels);
  if (!columns.ok()) {
    const std::string file = command.columns.empty() ? "the checkpoint" : command.columns;
    return Status(columns.status().code(), StrCat(file, ": ", columns.status().message()));
  }
  columns->rules = std::min(columns->rules, command.rules);
  return std::optional(*std::move(columns));
}

// All days may have one header, so that a long one is followed by lines.
size_t SizeOfHead(std::span<const std::byte> text) {
  const std::string_view characters(reinterpret_cast<const char*>(text.data()), text.size());
  const size_t header = std::min(characters.find_first_of("\r\n"), text.size());
  const size_t bytes = header <= kHeadBytes / 2 ? kHeadBytes : header + kHeadBytes;
  return std::min({bytes, text.size(), kHeadBytesMax});
}

// A file that was shorter at the checkpoint keeps its head, so that lines may be appended to it. So
// does one with a long header, of which older checkpoints have kHeadBytes.
FileHead HeadOfText(std::span<const std::byte> text, const FileHead* trained, bool is_last) {
  const std::span<const std::byte> head = text.first(SizeOfHead(text));
  const bool may_be = trained != nullptr && trained->bytes > 0 && trained->bytes < head.size() &&
                      (is_last || trained->bytes == kHeadBytes);
  if (!may_be) return HeadOf(head);
  const FileHead before = HeadOf(head.first(trained->bytes));
  return before.crc32c == trained->crc32c ? before : HeadOf(head);
}

// It is read as the lines are, so that a packed file and a pipe have the head of the file.
StatusOr<FileHead> HeadOfFile(const std::string& file, const FileHead* trained, bool is_last) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenTextSource(file));
  std::vector<std::byte> bytes(kHeadBytesMax);
  EMBANK_ASSIGN_OR_RETURN(const size_t size, source->Read(bytes));
  FileHead head = HeadOfText(std::span(bytes).first(size), trained, is_last);
  std::error_code error;
  const uintmax_t file_bytes = std::filesystem::file_size(file, error);
  if (!error) head.file_bytes = file_bytes;
  return head;
}

std::string DifferenceOf(const char* kind, const std::vector<std::string>& of_log,
                         const std::vector<std::string>& of_model) {
  if (of_log.size() != of_model.size()) {
    return StrCat("have ", of_log.size(), " ", kind, " features, and the model ", of_model.size());
  }
  for (size_t i = 0; i < of_log.size(); ++i) {
    if (of_log[i] == of_model[i]) continue;
    return StrCat("have the ", kind, " feature \"", of_log[i], "\" where the model has \"",
                  of_model[i], "\"");
  }
  return "";
}

// The values of a column do not depend on the rest of its statement.
DenseColumn WhatIsRead(const DenseColumn& dense) { return {dense.name, dense.is_log, false}; }
IdColumn WhatIsRead(IdColumn id) {
  if (id.format == IdFormat::kHex) id.format = IdFormat::kDecimal;
  id.missing.clear();
  id.table.clear();
  return id;
}

template <typename Column>
std::string DifferenceOfColumns(const std::vector<Column>& of_log,
                                const std::vector<Column>& of_model) {
  for (const Column& ours : of_log) {
    const auto theirs = std::ranges::find(of_model, ours.name, &Column::name);
    if (theirs == of_model.end() || WhatIsRead(ours) == WhatIsRead(*theirs)) continue;
    return StrCat("have '", TextOf(ours), "' where the model has '", TextOf(*theirs), "'");
  }
  return "";
}

// Without a column file, columns have Criteo's format.
ColumnFile ColumnsOfFormat(const ClickColumns& features) {
  if (!features.format.ends_with(kCriteoFormat)) {
    return ParseColumnFile(features.format, /*needs_label=*/false).value_or(ColumnFile());
  }
  ColumnFile columns;
  for (const std::string& name : features.dense) columns.dense.push_back({name, true});
  for (const std::string& name : features.ids) columns.ids.push_back({name, IdFormat::kHex});
  return columns;
}

Status Of(const char* option, const Status& status) {
  return status.ok() ? status : Status(status.code(), StrCat(option, ": ", status.message()));
}

}  // namespace

StatusOr<std::unique_ptr<ClickReader>> OpenLog(const TrainCommand& command, const char* option,
                                               std::span<const std::string> files,
                                               bool has_labels) {
  EMBANK_RETURN_IF_ERROR(CheckIsLog(option, files));
  StatusOr<std::optional<ColumnFile>> columns = ReadColumns(command, has_labels);
  if (!columns.ok()) return Of("--columns", InvalidArgumentError(columns.status().message()));
  StatusOr<std::unique_ptr<ClickReader>> log = ClickReader::Open(
      {files.begin(), files.end()},
      {.columns = *std::move(columns), .rules = command.rules, .has_labels = has_labels},
      command.broken_share);
  if (!log.ok()) return Of(option, OfData(log.status()));
  return log;
}

Status OfData(const Status& status) {
  return IsInvalidArgument(status) ? DataLossError(status.message()) : status;
}

Status TakeColumns(TrainCommand* command) {
  if (command->columns.empty()) return OkStatus();
  StatusOr<std::string> text = ReadText(command->columns);
  if (!text.ok()) return Of("--columns", InvalidArgumentError(text.status().message()));
  command->format = *std::move(text);
  return OkStatus();
}

Status TakeFiles(TrainCommand* command) {
  if (!(command->broken_share >= 0.0 && command->broken_share <= 1.0)) {
    return InvalidArgumentError(
        StrCat("--broken-share is ", command->broken_share, "; it must be 0 to 1"));
  }
  const auto take = [](const char* option, std::vector<std::string>* words) {
    StatusOr<std::vector<std::string>> files = FilesOf(*words);
    if (!files.ok()) return Of(option, files.status());
    *words = *std::move(files);
    return OkStatus();
  };
  EMBANK_RETURN_IF_ERROR(take("--data", &command->data));
  return take("--eval", &command->eval);
}

bool AreReadOnce(std::span<const std::string> files) {
  return std::ranges::any_of(files, IsReadOnce);
}

std::string FileOfBoth(const TrainCommand& command) {
  std::set<std::filesystem::path> data;
  std::error_code error;
  for (const std::string& file : command.data) {
    if (!IsReadOnce(file)) data.insert(std::filesystem::canonical(file, error));
  }
  for (const std::string& file : command.eval) {
    if (!IsReadOnce(file) && data.contains(std::filesystem::canonical(file, error))) return file;
  }
  return "";
}

StatusOr<DataName> NameOfData(const TrainCommand& command, ClickReader* log) {
  if (command.hot_cold != nullptr) return NameOfHotColdData(command);
  // A position counts samples in their order.
  DataName name = {.shuffle = command.shuffle};
  if (log == nullptr) {
    // Stores from before there was a divisor of fields have no such words in the name of their
    // data.
    const std::string fields = command.scale.field_divisor == 1
                                   ? std::string()
                                   : StrCat(", field divisor ", command.scale.field_divisor);
    name.words = StrCat("generated by ", command.generate, ", divisor ", command.scale.divisor,
                        fields, ", copies ", command.scale.copies);
    return name;
  }
  name.words = "a log";
  const std::vector<FileHead>& trained = command.trained_data.files;
  for (const std::string& file : command.data) {
    const size_t number = name.files.size();
    const FileHead* const before = number < trained.size() ? &trained[number] : nullptr;
    // Lines may be appended to the last file of a checkpoint.
    const bool is_last = number + 1 == trained.size();
    FileHead head;
    if (!IsReadOnce(file)) {
      EMBANK_ASSIGN_OR_RETURN(head, HeadOfFile(file, before, is_last));
      if (head.bytes == 0) continue;
    } else if (file == log->file()) {
      head = HeadOfText(log->Head(kHeadBytesMax), before, is_last);
    }
    name.files.push_back(head);
  }
  return name;
}

StatusOr<std::string> FormatOfData(const TrainCommand& command, bool has_labels) {
  if (!command.generate.empty()) return std::string();
  EMBANK_ASSIGN_OR_RETURN(const std::optional<ColumnFile> columns,
                          ReadColumns(command, has_labels));
  std::string format = columns ? TextOf(*columns) : CriteoFormat(command.rules);
  if (format.ends_with('\n')) format.pop_back();
  return format;
}

StatusOr<std::unique_ptr<ClickGenerator>> OpenGenerator(const TrainCommand& command,
                                                        uint64_t samples) {
  EMBANK_ASSIGN_OR_RETURN(const ClickSchema schema,
                          MakeClickSchema(command.generate, command.scale));
  ClickGeneratorOptions options;
  options.ids.seed = command.trainer.seed;
  options.samples = samples;
  return ClickGenerator::Create(schema, options, nullptr);
}

void PrintBroken(const BrokenLines& broken) {
  if (broken.count == 0) return;
  std::fprintf(Err(), "%llu broken lines were left out; the first of each kind:\n",
               static_cast<unsigned long long>(broken.count));
  for (const std::string& text : TextsOf(broken)) std::fprintf(Err(), "  %s\n", text.c_str());
}

Status NoSample(const char* option, std::span<const std::string> words, const char* of) {
  return DataLossError(StrCat(option, ": ", words.empty() ? "" : StrCat(words[0], ": "),
                              "the data of the ", of,
                              " have no sample; give a log with lines behind its header"));
}

std::string TextOfFiles(std::span<const std::string> files) {
  const std::string first = files[0] == kStandardInput ? "standard input" : files[0];
  return files.size() == 1 ? first : StrCat(first, " and ", files.size() - 1, " more");
}

Status CheckOrder(const TrainCommand& command, const DataName& data) {
  DataName in_their_order = data;
  in_their_order.shuffle = command.trained_data.shuffle;
  if (data == in_their_order || !BeginWith(in_their_order, command.trained_data)) return OkStatus();
  return InvalidArgumentError(StrCat("--shuffle is ", command.shuffle,
                                     ", and the checkpoint is in the same data with --shuffle ",
                                     in_their_order.shuffle, ": leave it out, or give other data"));
}

std::string DifferenceOf(const ClickColumns& of_log, const ClickColumns& of_model) {
  std::string difference = DifferenceOf("dense", of_log.dense, of_model.dense);
  if (difference.empty()) difference = DifferenceOf("id", of_log.ids, of_model.ids);
  if (!difference.empty() || of_log.format.empty() || of_model.format.empty()) return difference;
  const ColumnFile ours = ColumnsOfFormat(of_log);
  const ColumnFile theirs = ColumnsOfFormat(of_model);
  difference = DifferenceOfColumns(ours.dense, theirs.dense);
  return difference.empty() ? DifferenceOfColumns(ours.ids, theirs.ids) : difference;
}

}  // namespace embank
