// embank dump: all rows of a table as lines of text.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <system_error>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/scan/scan.h"
#include "tools/opened_table.h"
#include "tools/output_file.h"
#include "tools/progress_text.h"
#include "tools/row_text.h"
#include "tools/stop_signals.h"
#include "tools/table_command.h"

namespace embank {
namespace {

// A file, or the standard output, whose reader may have enough before the end.
class DumpOutput {
 public:
  Status Open(const std::string& path) {
    if (path.empty()) {
      std::signal(SIGPIPE, SIG_IGN);
      return OkStatus();
    }
    signals_.emplace();
    file_ = std::make_unique<OutputFile>(path);
    return file_->Open();
  }

  bool has_reader() const { return has_reader_; }

  // kCancelled: a signal came, and the file is not written.
  Status Write(std::string_view text) {
    if (signals_ && signals_->received() != nullptr) {
      return CancelledError(StrCat(signals_->received(), ": --out was not written"));
    }
    if (file_ != nullptr) return file_->Write(text);
    while (!text.empty()) {
      const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      has_reader_ = count >= 0 || errno != EPIPE;
      if (!has_reader_) return OkStatus();
      if (count < 0) {
        return UnavailableError(
            StrCat("the output could not be written: ", std::generic_category().message(errno)));
      }
      text.remove_prefix(static_cast<size_t>(count));
    }
    return OkStatus();
  }

  Status Finish() { return file_ == nullptr ? OkStatus() : file_->Finish(); }

 private:
  std::optional<StopSignals> signals_;  // of a file, which a signal must not leave begun
  std::unique_ptr<OutputFile> file_;
  bool has_reader_ = true;
};

std::string CsvTitles(const TableCommand& command, const RowLayout& layout) {
  std::string titles = "key";
  for (uint32_t i = 0; i < layout.dim; ++i) StrAppend(&titles, ",value_", i);
  for (uint32_t i = 0; command.state && i < layout.state_floats; ++i) {
    StrAppend(&titles, ",state_", i);
  }
  return StrCat(titles, command.heat ? ",heat\n" : "\n");
}

std::string TextOf(const TableCommand& command, const RowLayout& layout, RowBuffer* buffer,
                   size_t row) {
  std::string text;
  if (command.json) {
    text = "{";
    AppendJsonFields(layout, buffer, row, &text);
    return text + "}\n";
  }
  text = StrCat(buffer->keys()[row]);
  AppendValues(layout, buffer->values().Row(row), ",", NumberStyle::kPlain, &text);
  if (command.state) {
    AppendState(layout, buffer->states().Row(row), ",", NumberStyle::kPlain, &text);
  }
  if (command.heat) StrAppend(&text, ",", buffer->heats()[row]);
  return text + "\n";
}

Status Dump(const TableCommand& command) {
  EMBANK_ASSIGN_OR_RETURN(const OpenedTable opened, OpenToRead(command));
  const RowLayout& layout = opened.table->layout();
  if (command.state) EMBANK_RETURN_IF_ERROR(CheckStatesOf(*opened.table, "--state"));
  DumpOutput output;
  EMBANK_RETURN_IF_ERROR(output.Open(command.out));
  if (!command.json) EMBANK_RETURN_IF_ERROR(output.Write(CsvTitles(command, layout)));
  const uint64_t total = std::min(command.limit, opened.table->rows());
  RowBuffer buffer(layout, command.state, command.heat);
  ProgressLines lines("rows");
  Scan scan(opened.table);
  uint64_t done = 0;
  while (done < total && output.has_reader()) {
    const size_t wanted = std::min<uint64_t>(buffer.rows(), total - done);
    EMBANK_ASSIGN_OR_RETURN(const uint64_t count, scan.Next(buffer.Scanned(wanted), wanted));
    if (count == 0) break;
    std::string text;
    for (size_t row = 0; row < count && output.has_reader(); ++row) {
      text += TextOf(command, layout, &buffer, row);
      constexpr size_t kTextBytes = 64 << 10;
      if (text.size() < kTextBytes && row + 1 < count) continue;
      EMBANK_RETURN_IF_ERROR(output.Write(text));
      text.clear();
    }
    done += count;
    if (command.progress) {
      lines.Show(static_cast<double>(done) / static_cast<double>(total), done);
    }
  }
  return output.Finish();
}

}  // namespace

ExitCode RunDump(const TableCommand& command) {
  const Status dumped = Dump(command);
  return dumped.ok() ? ExitCode::kClean : Fail(dumped);
}

}  // namespace embank
