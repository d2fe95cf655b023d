// embank reshard: makes a checkpoint of a training with one number of ranks into a checkpoint with
// another number.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/files/posix_file_system.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "store/inspect/json_text.h"
#include "store/inspect/reshard.h"
#include "tools/command.h"
#include "tools/job_sources.h"
#include "tools/progress_text.h"
#include "tools/text_table.h"
#include "tools/unfinished_directory.h"
#include "train/dense_rows.h"

namespace embank {
namespace {

constexpr const char* kReshardColumns =
    "  rows: of all ranks together; on: each row is on the rank that owns its key, or on all\n";

struct MadeJob {
  uint64_t steps = 0;
  size_t source_ranks = 0;
  double rows_per_second = 0.0;
  ReshardReport report;
};

// Each store takes some descriptors.
void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Status CheckTarget(const ReshardCommand& command, std::span<const std::string> directories) {
  for (const auto& all : {std::span<const std::string>(command.sources), directories}) {
    for (const std::string& source : all) {
      if (!IsWithin(command.target, source)) continue;
      return InvalidArgumentError(StrCat("--out: ", command.target, " is within ", source,
                                         ", which reshard does not change; name a directory "
                                         "elsewhere"));
    }
  }
  return OkStatus();
}

// The tables of vectors and wide weights of these features, and the dense parameters.
std::vector<std::string> ReplicatedTables(const JobSources& job) {
  std::set<std::string> names = {DenseRows::kTable};
  for (const std::string& feature : job.text.replicated) {
    names.insert({StrCat("id ", feature), StrCat("wide ", feature)});
  }
  std::vector<std::string> found;
  for (const ManifestTable& table : job.ranks[0]->manifest().tables) {
    if (names.contains(table.name)) found.push_back(table.name);
  }
  return found;
}

std::vector<ReshardTarget> TargetsOf(const ReshardCommand& command, const JobSources& job,
                                     const std::string& directory) {
  std::vector<ReshardTarget> targets;
  for (uint32_t rank = 0; rank < command.ranks; ++rank) {
    targets.push_back(
        {.directory = command.ranks == 1 ? directory : StrCat(directory, "/", RankName(rank)),
         .blob = BlobOfRank(job.text, rank, command.ranks, job.job)});
  }
  return targets;
}

StatusOr<MadeJob> MakeJob(FileSystem* files, const ReshardCommand& command) {
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> directories,
                          RankDirectories(files, command.sources));
  EMBANK_RETURN_IF_ERROR(CheckTarget(command, directories));
  EMBANK_ASSIGN_OR_RETURN(const JobSources job, OpenJob(files, directories));
  for (const std::string& warning : job.warnings) {
    std::fprintf(stderr, "embank: %s\n", Printable(warning).c_str());
  }
  if (!command.any_ranks) {
    EMBANK_RETURN_IF_ERROR(CheckSlices(job.text.slices, command.ranks));
  }
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<UnfinishedDirectory> unfinished,
                          UnfinishedDirectory::Make(files, command.target));
  const std::string& directory = unfinished->path();
  if (command.ranks > 1) EMBANK_RETURN_IF_ERROR(files->CreateDirectory(directory));
  const std::vector<ReshardTarget> targets = TargetsOf(command, job, directory);
  const ReshardOptions options = {.replicated = ReplicatedTables(job),
                                  .now_ns = static_cast<uint64_t>(SystemWallClock()->UnixNs())};
  const bool is_watched = command.progress || isatty(STDERR_FILENO) != 0;
  ProgressLines lines("rows read");
  uint64_t rows = 0;  // of all sources
  const auto show = [&](uint64_t done, uint64_t total) {
    rows = total;
    if (is_watched && total > 0) {
      lines.Show(static_cast<double>(done) / static_cast<double>(total), done);
    }
    return true;
  };
  MadeJob made;
  made.steps = job.text.steps;
  made.source_ranks = job.ranks.size();
  EMBANK_ASSIGN_OR_RETURN(made.report, ReshardStores(files, job.ranks, targets, options, show));
  EMBANK_RETURN_IF_ERROR(unfinished->Finish());
  made.rows_per_second = lines.PerSecond(rows);
  return made;
}

std::string TextOf(const ReshardCommand& command, const MadeJob& made) {
  const ReshardReport& report = made.report;
  std::string text =
      StrCat(Printable(command.target), ": a checkpoint of ", command.ranks,
             command.ranks == 1 ? " rank" : " ranks", " at step ", made.steps, ", made of ",
             made.source_ranks, "; ", BytesText(report.written_bytes), " written\n", report.rows,
             " rows, ", DecimalText(made.rows_per_second, 0), " per second\n");
  for (const std::string& lost : report.heat_lost) {
    StrAppend(&text, "the heat that rows gained since they were written is lost: ", Printable(lost),
              "\n");
  }
  TextTable tables({"table", "rows", "on"});
  for (const ReshardedTable& table : report.tables) {
    tables.Add({Printable(table.name), StrCat(table.rows), table.is_replicated ? "all" : "owner"});
  }
  return report.tables.empty() ? text : StrCat(text, tables.Text(), kReshardColumns);
}

std::string JsonOf(const ReshardCommand& command, const MadeJob& made) {
  const ReshardReport& report = made.report;
  return StrCat("{\"target\":", JsonString(command.target), ",\"ranks\":", command.ranks,
                ",\"source_ranks\":", made.source_ranks, ",\"step\":", made.steps,
                ",\"rows\":", report.rows, ",\"written_bytes\":", report.written_bytes,
                ",\"heat_lost\":", JsonStrings(report.heat_lost), ",\"tables\":",
                JsonArray(report.tables,
                          [](const ReshardedTable& table) {
                            return StrCat("{\"table\":", JsonString(table.name), ",\"replicated\":",
                                          table.is_replicated ? "true" : "false",
                                          ",\"rows\":", table.rows, "}");
                          }),
                "}\n");
}

}  // namespace

ExitCode RunReshard(const ReshardCommand& command) {
  RaiseDescriptorLimit();
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  const StatusOr<MadeJob> made = MakeJob(files.get(), command);
  if (!made.ok()) return Fail(made.status());
  const std::string text = command.json ? JsonOf(command, *made) : TextOf(command, *made);
  std::fputs(text.c_str(), stdout);
  return made->report.heat_lost.empty() ? ExitCode::kClean : ExitCode::kDamaged;
}

}  // namespace embank
