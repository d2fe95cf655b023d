// embank repair: makes a new store of all rows of a damaged store that can be read.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/files/posix_file_system.h"
#include "base/str_cat.h"
#include "store/inspect/repair.h"
#include "tools/command.h"
#include "tools/text_table.h"

namespace embank {
namespace {

constexpr const char* kRepairColumns =
    "  saved: rows in the new store; lost: rows of the checkpoint that are not in it\n";

std::string LossText(const RepairLoss& loss) {
  std::string text =
      StrCat("  ", loss.file, ": ", Printable(loss.what), ": ", loss.rows, " rows of ",
             loss.table.empty() ? "an unknown table" : StrCat("table ", Printable(loss.table)));
  if (loss.keys.empty()) return text + ", whose keys are not known\n";
  for (size_t i = 0; i < loss.keys.size(); ++i) {
    StrAppend(&text, i == 0 ? ": keys " : ", ", loss.keys[i]);
  }
  return text + "\n";
}

std::string ReportText(const RepairReport& report) {
  std::string text =
      StrCat(Printable(report.target), ": a store of checkpoint ", report.checkpoint,
             report.is_newest ? " (newest)" : " (previous)", " of ", Printable(report.directory),
             "; ", BytesText(report.written_bytes), " written\n", report.rows_saved,
             " rows saved, ", report.rows_lost, " rows lost\n");
  if (!report.newest_lost.empty()) {
    StrAppend(&text, "the newest checkpoint was not saved: ", Printable(report.newest_lost), "\n");
  }
  if (!report.heat_lost.empty()) {
    StrAppend(&text, "the heat that rows gained since they were written is lost: ",
              Printable(report.heat_lost), "\n");
  }
  TextTable tables({"table", "saved", "lost"});
  for (const RepairedTable& table : report.tables) {
    tables.Add({Printable(table.name), StrCat(table.rows_saved), StrCat(table.rows_lost)});
  }
  if (!report.tables.empty()) StrAppend(&text, tables.Text(), kRepairColumns);
  for (const RepairLoss& loss : report.losses) text += LossText(loss);
  if (report.losses.size() < report.loss_count) text += "  ...\n";
  return text;
}

}  // namespace

ExitCode RunRepair(const RepairCommand& command) {
  const RepairOptions options = {.directory = command.directory,
                                 .target = command.target,
                                 .previous = command.previous,
                                 .pmem_path = command.pmem_path};
  if (IsWithin(options.target, options.directory)) {
    Fail(
        InvalidArgumentError(StrCat("--to: ", options.target, " is within ", options.directory,
                                    ", which repair does not change; name a directory elsewhere")));
    return ExitCode::kUnusable;
  }
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  const bool is_watched = isatty(STDERR_FILENO) != 0;
  const StatusOr<RepairReport> report =
      RepairStore(files.get(), options, [&](uint64_t done, uint64_t total) {
        if (is_watched) {
          std::fprintf(stderr, "\r%llu of %llu segments%s", static_cast<unsigned long long>(done),
                       static_cast<unsigned long long>(total), done == total ? "\n" : "");
        }
        return true;
      });
  if (!report.ok()) {
    Fail(report.status());
    return ExitCode::kUnusable;
  }
  const std::string text = command.json ? FormatRepairReport(*report) + "\n" : ReportText(*report);
  std::fputs(text.c_str(), stdout);
  return report->is_whole() ? ExitCode::kClean : ExitCode::kDamaged;
}

}  // namespace embank
