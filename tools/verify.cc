// embank verify: reports the damage of a store and the rows that it costs.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/files/posix_file_system.h"
#include "base/str_cat.h"
#include "store/inspect/verify.h"
#include "tools/command.h"
#include "tools/text_table.h"

namespace embank {
namespace {

constexpr const char* kVerifyColumns =
    "  rows: in this checkpoint; lost: of these, rows whose records are damaged\n";

std::string CheckpointLine(const VerifiedCheckpoint& checkpoint) {
  const std::string front = StrCat("checkpoint ", checkpoint.checkpoint,
                                   checkpoint.is_newest ? " (newest)" : " (previous)");
  if (!checkpoint.is_readable) return StrCat(front, ": cannot be read\n");
  return StrCat(front, ": ", checkpoint.opens ? "can be opened" : "CANNOT BE OPENED", ", ",
                checkpoint.rows_lost, " of ", checkpoint.rows, " rows lost\n");
}

std::string LostText(const LostRows& lost) {
  std::string text =
      StrCat("    ", lost.rows, " rows of ",
             lost.table.empty() ? "an unknown table" : StrCat("table ", Printable(lost.table)),
             " in checkpoint ", lost.checkpoint);
  for (size_t i = 0; i < lost.keys.size(); ++i) {
    StrAppend(&text, i == 0 ? ": keys " : ", ", lost.keys[i]);
  }
  if (!lost.keys.empty() && lost.keys.size() < lost.rows) StrAppend(&text, ", ...");
  return text + "\n";
}

std::string DamageText(const Damage& damage) {
  std::string text = StrCat("  ", damage.file, ": ", PartName(damage.part));
  if (damage.slots > 0) {
    StrAppend(&text, " ", damage.first_slot);
    if (damage.slots > 1) StrAppend(&text, " to ", damage.first_slot + damage.slots - 1);
  }
  StrAppend(&text, ": ", Printable(damage.what), damage.lost.empty() ? "; no row lost\n" : "\n");
  for (const LostRows& lost : damage.lost) text += LostText(lost);
  return text;
}

std::string ReportText(const VerifyReport& report) {
  std::string text =
      StrCat(Printable(report.directory), ": ", report.clean() ? "clean" : "DAMAGED", "; ",
             report.segments, " segments, ", BytesText(report.read_bytes), " read\n");
  for (const VerifiedCheckpoint& checkpoint : report.checkpoints)
    text += CheckpointLine(checkpoint);
  for (const VerifiedCheckpoint& checkpoint : report.checkpoints) {
    if (checkpoint.tables.empty()) continue;
    TextTable tables({"table", "rows", "lost"});
    for (const VerifiedTable& table : checkpoint.tables) {
      tables.Add({Printable(table.name), StrCat(table.rows), StrCat(table.rows_lost)});
    }
    StrAppend(&text, "tables of checkpoint ", checkpoint.checkpoint, "\n", tables.Text(),
              kVerifyColumns);
  }
  if (!report.clean()) StrAppend(&text, report.damage_count, " damaged parts\n");
  for (const Damage& damage : report.damage) text += DamageText(damage);
  if (report.damage.size() < report.damage_count) text += "  ...\n";
  if (report.undecided.count > 0) {
    StrAppend(&text, report.undecided.count,
              " segments that a damaged manifest may have: nothing removes them\n");
  }
  if (report.orphans.count > 0) {
    StrAppend(&text, report.orphans.count,
              " files of no checkpoint: the next opening removes them\n");
  }
  return text;
}

}  // namespace

ExitCode RunVerify(const LookOptions& options) {
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  const bool is_watched = isatty(STDERR_FILENO) != 0;
  const auto tell = [&](uint64_t done, uint64_t total) {
    if (is_watched) {
      std::fprintf(stderr, "\r%llu of %llu segments%s", static_cast<unsigned long long>(done),
                   static_cast<unsigned long long>(total), done == total ? "\n" : "");
    }
    return true;
  };
  const StatusOr<VerifyReport> report =
      VerifyStore(files.get(), options.directory, tell, options.pmem_path);
  if (!report.ok()) return Fail(report.status());
  const std::string text = options.json ? FormatVerifyReport(*report) + "\n" : ReportText(*report);
  std::fputs(text.c_str(), stdout);
  return report->clean() ? ExitCode::kClean : ExitCode::kDamaged;
}

}  // namespace embank
