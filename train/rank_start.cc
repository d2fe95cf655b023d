#include "train/rank_start.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/files/posix_file_system.h"
#include "base/hash.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "store/inspect/survey.h"
#include "train/ranks/gathered_texts.h"

namespace embank {
namespace {

// Returns the texts of the checkpoints that a store keeps, the newest first.
StatusOr<std::vector<ModelText>> ReadKeptTexts(const std::string& path) {
  std::vector<ModelText> texts;
  if (path.empty()) return texts;
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  StatusOr<std::vector<Manifest>> kept = ReadKeptManifests(files.get(), path);
  if (IsNotFound(kept.status())) return texts;
  EMBANK_RETURN_IF_ERROR(kept.status());
  for (const Manifest& manifest : *kept) {
    if (manifest.checkpoint == 0) continue;
    EMBANK_ASSIGN_OR_RETURN(ModelText text,
                            ParseModelText({reinterpret_cast<const char*>(manifest.blob.data()),
                                            manifest.blob.size()}));
    texts.push_back(std::move(text));
  }
  return texts;
}

Status CheckRank(const RankOfJob& kept, const Exchange& exchange, const std::string& path) {
  if (kept.ranks != exchange.ranks()) {
    return FailedPreconditionError(StrCat(
        "path: ", path, " has a checkpoint of a job of ", kept.ranks, " ranks, and this one has ",
        exchange.ranks(), ": start as many, or make a directory for these with embank reshard"));
  }
  if (kept.rank == exchange.rank()) return OkStatus();
  return FailedPreconditionError(StrCat("path: ", path, " has the checkpoint of rank ", kept.rank,
                                        "; each rank needs its own directory"));
}

std::string NamesOf(const std::vector<std::string>& tables) {
  std::string names;
  for (const std::string& table : tables) {
    StrAppend(&names, names.empty() ? "\"" : ", \"", table, "\"");
  }
  return names.empty() ? "none" : names;
}

// A rank has rows of others in replicated tables alone.
Status CheckReplicated(const std::vector<std::string>& kept, const std::vector<std::string>& now) {
  if (kept == now) return OkStatus();
  return FailedPreconditionError(
      StrCat("replicate: the checkpoint has these tables on all ranks: ", NamesOf(kept),
             "; this start asks for: ", NamesOf(now), "; a training keeps those it began with"));
}

std::string_view NextLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

// Compares the settings of all ranks with those of the first.
Status CompareSettings(const std::vector<std::string>& settings) {
  for (size_t rank = 1; rank < settings.size(); ++rank) {
    std::string_view first = settings[0];
    std::string_view other = settings[rank];
    while (!first.empty() || !other.empty()) {
      const std::string_view of_first = NextLine(&first);
      const std::string_view of_other = NextLine(&other);
      if (of_first == of_other) continue;
      return FailedPreconditionError(StrCat("rank ", rank, " has \"", of_other, "\", and rank 0 \"",
                                            of_first, "\": all ranks need the same"));
    }
  }
  return OkStatus();
}

// The steps and the job of a rank's checkpoints, as a line of numbers.
std::string StepsText(const std::vector<ModelText>& kept) {
  std::string line;
  for (const ModelText& text : kept) StrAppend(&line, text.steps, " ", text.rank.job, " ");
  return line;
}

struct KeptStep {
  uint64_t step;
  uint64_t job;

  bool operator==(const KeptStep&) const = default;
};

std::vector<KeptStep> StepsIn(std::string_view line) {
  std::vector<KeptStep> steps;
  const auto take = [&] {
    uint64_t number = 0;
    const char* const end = line.data() + line.size();
    const auto result = std::from_chars(line.data(), end, number);
    line.remove_prefix(static_cast<size_t>(result.ptr - line.data()) + 1);
    return number;
  };
  while (!line.empty()) {
    const uint64_t step = take();
    steps.push_back({step, take()});
  }
  return steps;
}

// Returns the newest one that all ranks have; nothing: no rank has any.
StatusOr<std::optional<KeptStep>> NewestCommon(const std::vector<std::string>& of_ranks) {
  std::vector<std::vector<KeptStep>> steps;
  steps.reserve(of_ranks.size());
  for (const std::string& line : of_ranks) steps.push_back(StepsIn(line));
  const auto none = std::ranges::find_if(steps, [](const auto& some) { return some.empty(); });
  const auto some = std::ranges::find_if(steps, [](const auto& any) { return !any.empty(); });
  if (some == steps.end()) return std::optional<KeptStep>();
  if (none != steps.end()) {
    return FailedPreconditionError(
        StrCat("rank ", none - steps.begin(), " has no checkpoint, and rank ", some - steps.begin(),
               " one of step ", (*some)[0].step, ": a directory is missing, or is another one"));
  }
  std::optional<KeptStep> newest;
  for (const KeptStep& step : steps[0]) {
    const bool is_common = std::ranges::all_of(steps, [&](const auto& of_rank) {
      return std::ranges::find(of_rank, step) != of_rank.end();
    });
    if (is_common && (!newest || step.step > newest->step)) newest = step;
  }
  if (newest) return newest;
  for (size_t rank = 1; rank < steps.size(); ++rank) {
    if (steps[rank][0].job == steps[0][0].job) continue;
    return FailedPreconditionError(
        StrCat("the checkpoints of rank ", rank, " are of another job than those of rank 0"));
  }
  return FailedPreconditionError(
      StrCat("the ranks have no checkpoint of one step: rank 0 has step ", steps[0][0].step,
             ", and rank ", steps.size() - 1, " step ", steps.back()[0].step));
}

// Two jobs do not begin in one nanosecond on one directory.
uint64_t NewJob() { return Mix(static_cast<uint64_t>(SystemWallClock()->UnixNs())) | 1; }

}  // namespace

Status CheckRanks(uint32_t slices, uint32_t ranks) {
  if (slices % ranks == 0 && std::has_single_bit(slices / ranks)) return OkStatus();
  return InvalidArgumentError(StrCat("slices is ", slices, ", and there are ", ranks,
                                     " ranks: slices / ranks must be 1, 2, 4 or another power of "
                                     "two, so that sums have the bits of one rank"));
}

StatusOr<RankStart> AgreeOnStart(Exchange* exchange, const ModelText& text, const std::string& how,
                                 const std::string& path) {
  const StatusOr<std::vector<ModelText>> read = ReadKeptTexts(path);
  Status status = read.status();
  if (status.ok() && !read->empty()) status = CheckRank(read->front().rank, *exchange, path);
  if (status.ok() && !read->empty()) {
    status = CheckReplicated(read->front().rank.replicated, text.rank.replicated);
  }
  EMBANK_RETURN_IF_ERROR(Agree(exchange, status));
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> settings,
                          GatherTexts(exchange, StrCat(WriteModelText(text), how)));
  EMBANK_RETURN_IF_ERROR(CompareSettings(settings));
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> steps,
                          GatherTexts(exchange, StepsText(*read)));
  EMBANK_ASSIGN_OR_RETURN(const std::optional<KeptStep> common, NewestCommon(steps));
  if (common) {
    const bool is_newest =
        read->front().steps == common->step || Seeded(SeededBug::kNewestBySequence);
    return RankStart{.previous = !is_newest, .job = common->job};
  }
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> jobs,
                          GatherTexts(exchange, StrCat(NewJob())));
  RankStart start;
  std::from_chars(jobs[0].data(), jobs[0].data() + jobs[0].size(), start.job);
  return start;
}

}  // namespace embank
