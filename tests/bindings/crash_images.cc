#include "tests/bindings/crash_images.h"

#include <memory>
#include <utility>

#include "tests/bindings/kept_checkpoint.h"
#include "tests/support/simulated_executor.h"

namespace embank::test {
namespace {

// The ten images of a crash; those that are drawn differ by their seeds.
constexpr Persistence kImages[] = {
    Persistence::kNone, Persistence::kAll,  Persistence::kAllButOne, Persistence::kAllButOne,
    Persistence::kSome, Persistence::kSome, Persistence::kSome,      Persistence::kTorn,
    Persistence::kTorn, Persistence::kTorn};

constexpr uint64_t kDepthMax = 3;
constexpr uint64_t kImagesPerScan = 10;
constexpr uint64_t kImagesPerSecondCrash = 16;
constexpr uint64_t kCrashesOfAnOpening = 2;

constexpr const char* kScanned = "scanned, and not only looked up";
constexpr const char* kFoundLast = "found the last checkpoint";
constexpr const char* kFoundUnderWay = "found the one under way";
constexpr const char* kFoundNone = "found none, before the first";

std::string DepthName(uint64_t depth) {
  return "recoveries crashed " + std::to_string(depth) + " deep";
}

}  // namespace

void CrashImages::ExpectAll(Events* events) {
  for (const char* name :
       {"before a write", "before a growth", "before a sync", "before a name", "before a rename",
        "before a sync of a directory", "before a removal", "behind the last", kCrashImages,
        kRecoveriesCrashed, kScanned, kFoundLast, kFoundUnderWay, kFoundNone}) {
    events->Expect(name);
  }
  for (uint64_t depth = 1; depth <= kDepthMax; ++depth) events->Expect(DepthName(depth));
}

std::string CrashImages::Try(size_t stride) {
  const SimulatedDisk& disk = *workload_.disk;
  for (size_t change = random_.Below(stride); change <= disk.changes(); change += stride) {
    const Candidates candidates = CandidatesAt(change);
    const bool is_last = change == disk.changes();
    const std::string before = is_last ? "behind the last" : "before a " + disk.ChangeName(change);
    events_->Count(before);
    for (size_t i = 0; i < std::size(kImages); ++i) {
      const std::unique_ptr<SimulatedDisk> image =
          disk.AfterCrash(change, kImages[i], random_.Bits());
      events_->Count(kCrashImages);
      const uint64_t depth =
          random_.OneIn(kImagesPerSecondCrash) ? random_.Between(1, kDepthMax) : 0;
      if (depth > 0) events_->Count(DepthName(depth));
      const std::string wrong = TryImage(image.get(), candidates, depth);
      if (wrong.empty()) continue;
      return "a crash before change " + std::to_string(change) + " (" + before + "), image " +
             std::to_string(i) + ": " + wrong;
    }
  }
  return "";
}

CrashImages::Candidates CrashImages::CandidatesAt(size_t change) const {
  Candidates candidates;
  for (const auto& checkpoint : workload_.checkpoints) {
    if (checkpoint->end <= change) candidates = {checkpoint.get()};
    if (checkpoint->end > change && checkpoint->begin < change) {
      candidates.push_back(checkpoint.get());
    }
  }
  return candidates;
}

std::string CrashImages::TryImage(SimulatedDisk* image, const Candidates& candidates,
                                  uint64_t depth) {
  StoreEnvironment environment;
  environment.executor = std::make_unique<SimulatedExecutor>(workload_.plan.seed);
  environment.files = image;
  environment.log = CrashedLog();
  StorePtr store;
  const Status opened = OpenOnDisk(workload_.plan.store, std::move(environment), &store);
  if (!opened.ok()) return "it does not open: " + opened.ToString();
  const FindRows how = random_.OneIn(kImagesPerScan) ? FindRows::kByScan : FindRows::kByKey;
  if (how == FindRows::kByScan) events_->Count(kScanned);
  size_t found = 0;
  std::string wrong = DifferenceFrom(store.get(), *candidates.front(), how);
  if (!wrong.empty() && candidates.size() > 1) {
    found = 1;
    wrong += "; " + DifferenceFrom(store.get(), *candidates.back(), how);
    if (wrong.ends_with("; ")) wrong = "";
  }
  if (!wrong.empty()) return wrong;
  events_->Count(found == 1                   ? kFoundUnderWay
                 : candidates.front()->exists ? kFoundLast
                                              : kFoundNone);
  store.reset();
  if (depth == 0) return "";
  for (uint64_t i = 0; i < kCrashesOfAnOpening; ++i) {
    const size_t change = random_.Below(image->changes() + 1);
    const Persistence persistence = kImages[random_.Below(std::size(kImages))];
    const std::unique_ptr<SimulatedDisk> again =
        image->AfterCrash(change, persistence, random_.Bits());
    events_->Count(kRecoveriesCrashed);
    wrong = TryImage(again.get(), {candidates[found]}, depth - 1);
    if (!wrong.empty())
      return "crashed again before change " + std::to_string(change) + ": " + wrong;
  }
  return "";
}

}  // namespace embank::test
