#include "tools/job_sources.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/inspect/reshard.h"

namespace embank {
namespace {

constexpr std::string_view kRankPrefix = "rank-";

// A checkpoint of a rank's store.
struct RankCheckpoint {
  size_t place;  // in CheckpointRows::kept
  JobText text;
};

struct RankStore {
  std::unique_ptr<CheckpointRows> rows;
  std::vector<RankCheckpoint> checkpoints;  // the newest first, all of one rank

  const std::string& path() const { return rows->path(); }
  const JobText& newest() const { return checkpoints[0].text; }
  // Another start of the job may have made other steps with these numbers.
  const RankCheckpoint* Of(uint64_t steps, uint64_t start) const {
    const auto found = std::ranges::find_if(checkpoints, [&](const RankCheckpoint& checkpoint) {
      return checkpoint.text.steps == steps && checkpoint.text.start == start;
    });
    return found == checkpoints.end() ? nullptr : &*found;
  }
};

std::optional<uint64_t> RankIn(std::string_view name) {
  if (!name.starts_with(kRankPrefix)) return std::nullopt;
  name.remove_prefix(kRankPrefix.size());
  uint64_t rank = 0;
  const auto result = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (result.ec != std::errc() || result.ptr != name.data() + name.size()) return std::nullopt;
  return rank;
}

Status At(const std::string& path, const Status& status) {
  return Status(status.code(), StrCat(path, ": ", status.message()));
}

Status OtherJob(const std::string& what) { return FailedPreconditionError(what); }

StatusOr<RankStore> OpenRank(FileSystem* files, const std::string& directory,
                             std::vector<std::string>* warnings) {
  RankStore store;
  EMBANK_ASSIGN_OR_RETURN(store.rows, CheckpointRows::Open(files, directory));
  const std::span<const KeptCheckpoint> kept = store.rows->kept();
  Status unread;
  for (size_t place = 0; place < kept.size(); ++place) {
    const StatusOr<Manifest>& manifest = kept[place].manifest;
    if (!manifest.ok()) {
      warnings->push_back(manifest.status().ToString());
      unread.Update(manifest.status());
      continue;
    }
    if (manifest->checkpoint == 0) continue;
    const std::string_view blob(reinterpret_cast<const char*>(manifest->blob.data()),
                                manifest->blob.size());
    StatusOr<JobText> text = ReadJobText(blob);
    if (!text.ok()) return At(directory, text.status());
    store.checkpoints.push_back({place, *std::move(text)});
  }
  if (!store.checkpoints.empty()) return store;
  EMBANK_RETURN_IF_ERROR(unread);
  return NotFoundError(StrCat(directory, " has no checkpoint yet: train it first"));
}

// The stores are all ranks of one job, each once; sorts them by rank.
Status CheckRanks(std::vector<RankStore>* stores) {
  std::ranges::stable_sort(*stores, {}, [](const RankStore& one) { return one.newest().rank; });
  const RankStore& first = stores->front();
  for (const RankStore& one : *stores) {
    const JobText& text = one.newest();
    if (text.ranks != first.newest().ranks) {
      return OtherJob(StrCat(first.path(), " is of a training with ", first.newest().ranks,
                             " ranks, and ", one.path(), " of one with ", text.ranks));
    }
    if (text.job != first.newest().job) {
      return OtherJob(StrCat(first.path(), " is of job ", first.newest().job, ", and ", one.path(),
                             " of job ", text.job));
    }
  }
  for (size_t i = 1; i < stores->size(); ++i) {
    const RankStore& before = (*stores)[i - 1];
    const RankStore& one = (*stores)[i];
    if (before.newest().rank != one.newest().rank) continue;
    return OtherJob(
        StrCat(before.path(), " and ", one.path(), " are both rank ", one.newest().rank));
  }
  for (uint32_t rank = 0; rank < first.newest().ranks; ++rank) {
    if (rank < stores->size() && (*stores)[rank].newest().rank == rank) continue;
    return OtherJob(StrCat("the training has ", first.newest().ranks, " ranks, and rank ", rank,
                           " is missing: give the directory of the job, or those of all ranks"));
  }
  return OkStatus();
}

// By steps, since a rank that once went back to its previous checkpoint numbers its checkpoints
// otherwise than the others.
StatusOr<JobText> NewestCommon(std::span<const RankStore> stores) {
  const JobText* newest = nullptr;
  for (const RankCheckpoint& checkpoint : stores[0].checkpoints) {
    const JobText& text = checkpoint.text;
    const bool is_common = std::ranges::all_of(
        stores, [&](const RankStore& one) { return one.Of(text.steps, text.start) != nullptr; });
    if (is_common && (newest == nullptr || text.steps > newest->steps)) newest = &text;
  }
  if (newest != nullptr) return *newest;
  std::string all;
  for (const RankStore& one : stores) {
    StrAppend(&all, all.empty() ? "" : "; ", one.path(), ": ");
    for (const RankCheckpoint& checkpoint : one.checkpoints) {
      StrAppend(&all, &checkpoint == one.checkpoints.data() ? "" : " and ", checkpoint.text.steps);
    }
  }
  return FailedPreconditionError(
      StrCat("there is no step of which all ranks have a checkpoint; their steps are ", all));
}

}  // namespace

std::string RankName(uint32_t rank) { return StrCat(kRankPrefix, rank); }

StatusOr<std::vector<std::string>> RankDirectories(FileSystem* files,
                                                   std::span<const std::string> given) {
  std::vector<std::string> directories(given.begin(), given.end());
  if (given.size() != 1) return directories;
  const auto opened = files->OpenDirectory(given[0]);
  if (!opened.ok()) return At(given[0], opened.status());
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, (*opened)->List());
  std::vector<std::string> ranks;
  for (const std::string& name : names) {
    if (RankIn(name).has_value()) ranks.push_back(StrCat(given[0], "/", name));
  }
  std::ranges::sort(ranks);
  return ranks.empty() ? directories : ranks;
}

StatusOr<JobSources> OpenJob(FileSystem* files, std::span<const std::string> directories) {
  JobSources job;
  std::vector<RankStore> stores;
  for (const std::string& directory : directories) {
    EMBANK_ASSIGN_OR_RETURN(RankStore store, OpenRank(files, directory, &job.warnings));
    stores.push_back(std::move(store));
  }
  EMBANK_RETURN_IF_ERROR(CheckRanks(&stores));
  EMBANK_ASSIGN_OR_RETURN(job.text, NewestCommon(stores));
  std::vector<size_t> places;
  for (RankStore& store : stores) {
    const RankCheckpoint& checkpoint = *store.Of(job.text.steps, job.text.start);
    places.push_back(checkpoint.place);
    const Status same = CheckSameTraining(job.text, checkpoint.text);
    if (!same.ok()) {
      return OtherJob(StrCat(job.ranks[0]->path(), " and ", store.path(),
                             " are of other models: ", same.message()));
    }
    job.ranks.push_back(std::move(store.rows));
  }
  EMBANK_RETURN_IF_ERROR(ChooseCheckpoints(job.ranks, places));
  job.job =
      job.text.ranks > 1 ? job.text.job : std::max<uint64_t>(job.ranks[0]->manifest().store_id, 1);
  return job;
}

}  // namespace embank
