#include "train/ranks/rank_team.h"

#include <new>
#include <utility>

#include "base/no_throw_status.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "train/ranks/gathered_texts.h"

namespace embank {

void RankTeam::Keep(const Status& status) {
  MutexLock lock(&mutex_);
  kept_.Update(status);
}

OperationBody RankTeam::Kept(OperationBody body) {
  return [this, body = std::move(body)](uint32_t part, uint32_t thread) {
    try {
      Keep(body(part, thread));
    } catch (const std::bad_alloc&) {
      Keep(NoThrowStatus(StatusCode::kResourceExhausted,
                         [] { return std::string("no memory for an operation of a step"); }));
    }
    return OkStatus();
  };
}

OperationBody KeptBy(RankTeam* team, OperationBody body) {
  return team == nullptr ? std::move(body) : team->Kept(std::move(body));
}

StatusOr<Verdict> RankTeam::Vote(Ballot ballot, const BatchResults& results, SliceRange own) {
  {
    MutexLock lock(&mutex_);
    ballot.status = kept_;
  }
  ballot.wants_end = wants_end_;
  if (Seeded(SeededBug::kVoteLeftOut)) return verdict_;
  EMBANK_ASSIGN_OR_RETURN(verdict_, vote_.Run(ballot, own, results));
  return verdict_;
}

Status RankTeam::AgreeOnSuccess() {
  Status kept;
  {
    MutexLock lock(&mutex_);
    kept = kept_;
  }
  return Agree(exchange_, kept);
}

Status RankTeam::SumDense(std::span<float> sums, const std::atomic<uint32_t>& slices_left) {
  const bool is_early = slices_left.load(std::memory_order_relaxed) > 0;
  const uint64_t before = sums_.bytes_sent();
  EMBANK_RETURN_IF_ERROR(sums_.Run(sums));
  const uint64_t sent = sums_.bytes_sent() - before;
  dense_bytes_.all += sent;
  if (is_early) dense_bytes_.early += sent;
  return OkStatus();
}

}  // namespace embank
