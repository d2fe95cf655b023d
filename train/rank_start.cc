#include "train/rank_start.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
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

// A checkpoint that a store keeps.
struct KeptText {
  size_t place;                   // 0: the newest one
  std::optional<ModelText> text;  // nothing: that of a store without a step
};

// Returns those that can be read, the newest first. A damaged one has its place, too.
StatusOr<std::vector<KeptText>> ReadKeptTexts(const std::string& path) {
  std::vector<KeptText> texts;
  if (path.empty()) return texts;
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  const auto kept = ReadKeptManifests(files.get(), path);
  if (IsNotFound(kept.status())) return texts;
  EMBANK_RETURN_IF_ERROR(kept.status());
  for (size_t place = 0; place < kept->size(); ++place) {
    const StatusOr<Manifest>& manifest = (*kept)[place];
    if (!manifest.ok()) continue;
    texts.push_back({place, std::nullopt});
    if (manifest->checkpoint == 0) continue;
    EMBANK_ASSIGN_OR_RETURN(texts.back().text,
                            ParseModelText({reinterpret_cast<const char*>(manifest->blob.data()),
                                            manifest->blob.size()}));
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
Status CheckReplicated(std::vector<std::string> kept, std::vector<std::string> now) {
  std::ranges::sort(kept);
  std::ranges::sort(now);
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

// A step that has a checkpoint. Another start of a job may have made another step of this number:
// a rank that was killed before its checkpoint was durable still has that of the start before.
struct KeptStep {
  uint64_t step;
  uint64_t start;
  uint64_t job;

  bool operator==(const KeptStep&) const = default;
};

KeptStep StepOf(const KeptText& kept) {
  if (!kept.text) return {};
  return {kept.text->steps, kept.text->rank.start, kept.text->rank.job};
}

// A line of numbers.
std::string StepsText(const std::vector<KeptText>& all) {
  std::string line;
  for (const KeptText& kept : all) {
    const KeptStep of = StepOf(kept);
    StrAppend(&line, of.step, " ", of.start, " ", of.job, " ");
  }
  return line;
}

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
    KeptStep step = {};
    step.step = take();
    step.start = take();
    step.job = take();
    steps.push_back(step);
  }
  return steps;
}

// A rank without a step is of any job.
Status CheckJobs(const std::vector<std::vector<KeptStep>>& of_ranks) {
  std::optional<size_t> first;
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank][0].job == 0) continue;
    if (!first) first = rank;
    if (of_ranks[rank][0].job == of_ranks[*first][0].job) continue;
    return FailedPreconditionError(StrCat("the checkpoints of rank ", rank,
                                          " are of another job than those of rank ", *first));
  }
  return OkStatus();
}

// Returns the newest one that all ranks have; nothing: no rank has any.
StatusOr<std::optional<KeptStep>> NewestCommon(const std::vector<std::string>& of_ranks) {
  std::vector<std::vector<KeptStep>> steps;
  steps.reserve(of_ranks.size());
  for (const std::string& line : of_ranks) steps.push_back(StepsIn(line));
  const auto none = std::ranges::find_if(steps, [](const auto& some) { return some.empty(); });
  const auto some = std::ranges::find_if(
      steps, [](const std::vector<KeptStep>& any) { return !any.empty() && any[0].step > 0; });
  if (some == steps.end()) return std::optional<KeptStep>();
  if (none != steps.end()) {
    return FailedPreconditionError(
        StrCat("rank ", none - steps.begin(), " has no checkpoint, and rank ", some - steps.begin(),
               " one of step ", (*some)[0].step, ": a directory is missing, or is another one"));
  }
  EMBANK_RETURN_IF_ERROR(CheckJobs(steps));
  std::optional<KeptStep> newest;
  for (const KeptStep& step : steps[0]) {
    const bool is_common = std::ranges::all_of(steps, [&](const auto& of_rank) {
      return std::ranges::find(of_rank, step) != of_rank.end();
    });
    if (is_common && (!newest || step.step > newest->step)) newest = step;
  }
  if (newest) return newest;
  return FailedPreconditionError(
      StrCat("the ranks have no checkpoint of one step: rank 0 has step ", steps[0][0].step,
             ", and rank ", steps.size() - 1, " step ", steps.back()[0].step));
}

Status CheckNewest(const std::vector<KeptText>& all, const Exchange& exchange,
                   const ModelText& trainer, const std::string& path) {
  const auto newest =
      std::ranges::find_if(all, [](const KeptText& kept) { return kept.text.has_value(); });
  if (newest == all.end()) return OkStatus();
  EMBANK_RETURN_IF_ERROR(CheckRank(newest->text->rank, exchange, path));
  return CheckReplicated(newest->text->options.ranks.replicated, trainer.options.ranks.replicated);
}

// Two starts are not in one nanosecond on one directory.
uint64_t NewNumber() { return Mix(static_cast<uint64_t>(SystemWallClock()->UnixNs())) | 1; }

}  // namespace

Status CheckRanks(uint32_t slices, uint32_t ranks) {
  if (slices % ranks == 0 && std::has_single_bit(slices / ranks)) return OkStatus();
  return InvalidArgumentError(StrCat("slices is ", slices, ", and there are ", ranks,
                                     " ranks: slices / ranks must be 1, 2, 4 or another power of "
                                     "two, so that sums have the bits of one rank"));
}

Status CompareSettings(Exchange* exchange, const std::string& own) {
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> settings, GatherTexts(exchange, own));
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

StatusOr<RankStart> AgreeOnStart(Exchange* exchange, const ModelText& text, const std::string& how,
                                 const std::string& path) {
  const StatusOr<std::vector<KeptText>> read = ReadKeptTexts(path);
  Status status = read.status();
  if (status.ok()) status = CheckNewest(*read, *exchange, text, path);
  EMBANK_RETURN_IF_ERROR(Agree(exchange, status));
  EMBANK_RETURN_IF_ERROR(CompareSettings(exchange, StrCat(WriteModelText(text), how)));
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> steps,
                          GatherTexts(exchange, StepsText(*read)));
  EMBANK_ASSIGN_OR_RETURN(const std::optional<KeptStep> common, NewestCommon(steps));
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> numbers,
                          GatherTexts(exchange, StrCat(NewNumber())));
  RankStart start;
  std::from_chars(numbers[0].data(), numbers[0].data() + numbers[0].size(), start.start);
  start.job = common && common->job != 0 ? common->job : start.start;
  if (!common || Seeded(SeededBug::kNewestBySequence)) return start;
  const auto own = std::ranges::find(*read, *common, StepOf);
  EMBANK_CHECK(own != read->end());
  start.previous = own->place > 0;
  return start;
}

}  // namespace embank
