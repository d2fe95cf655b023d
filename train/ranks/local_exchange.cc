// A call has three pieces. All ranks come, each with its source; each copies what the others send
// to it; and nobody leaves before all have copied, since then the sources may change.
#include "train/ranks/local_exchange.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/seeded_bug.h"
#include "base/str_cat.h"
#include "base/thread_annotations.h"
#include "base/threads/mutex.h"
#include "base/threads/spin_wait.h"
#include "train/ranks/exchange_checks.h"

namespace embank {
namespace {

// They take 0.2 ms where nobody else wants the core: the time of a few exchanges.
constexpr uint32_t kLooks = 6400;

// The place where the ranks meet. Thread-safe.
class Meeting {
 public:
  Meeting(uint32_t ranks, const LocalExchangeOptions& options)
      : options_(options), has_come_(ranks, false), sources_(ranks) {}

  uint32_t ranks() const { return static_cast<uint32_t>(sources_.size()); }

  // Waits until all ranks have come. OK: Leave must follow, and the sources stand until then.
  Status Come(uint32_t rank, const ExchangeSource& source) {
    const MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    EMBANK_CHECK(!has_come_[rank]);
    sources_[rank] = source;
    has_come_[rank] = true;
    if (std::find(has_come_.begin(), has_come_.end(), false) == has_come_.end()) {
      BeginCopies();
      return OkStatus();
    }
    return WaitForOthers(rank);
  }

  // Between Come and Leave alone.
  const ExchangeSource& source(uint32_t rank) const { return sources_[rank]; }

  // Waits until all ranks have copied. `copied` says whether this one could. The wait has no limit:
  // nobody who copies waits for anything.
  Status Leave(const Status& copied) {
    const MutexLock lock(&mutex_);
    failure_.Update(copied);
    if (--copying_ == 0) {
      // A rank that is gone by the time that the others wake has not failed this call.
      round_status_ = failure_;
      Change();
    }
    if (copying_ != 0) LookForChange();
    while (copying_ != 0) changed_.Wait(&mutex_);
    return round_status_;
  }

  // Returns the meeting of the exchanges that are the ranks' `number`th duplicates of these.
  std::shared_ptr<Meeting> Duplicate(size_t number) {
    const MutexLock lock(&mutex_);
    EMBANK_CHECK(number <= duplicates_.size());
    if (number == duplicates_.size()) {
      duplicates_.push_back(std::make_shared<Meeting>(ranks(), options_));
      if (!failure_.ok()) duplicates_.back()->Fail(failure_);
    }
    return duplicates_[number];
  }

  // Does what Fail does here and in all duplicates.
  void FailAll(const Status& failure) {
    Fail(failure);
    const MutexLock lock(&mutex_);
    for (const std::shared_ptr<Meeting>& duplicate : duplicates_) duplicate->FailAll(failure);
  }

  // Makes all calls that have not been met by all ranks fail; the first failure is kept.
  void Fail(const Status& failure) {
    const MutexLock lock(&mutex_);
    failure_.Update(failure);
    Change();
  }

 private:
  void BeginCopies() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    has_come_.assign(ranks(), false);
    copying_ = ranks();
    ++round_;
    Change();
  }

  Status WaitForOthers(uint32_t rank) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t round = round_;
    const uint64_t begin_ns = options_.clock->NowNs();
    LookForChange();
    while (round_ == round && failure_.ok()) {
      const uint64_t waited_ns = options_.clock->NowNs() - begin_ns;
      if (waited_ns >= options_.time_limit_ns) {
        failure_ = RanksAreLate(rank, LateRanks(), options_.time_limit_ns);
        Change();
      } else {
        changed_.WaitFor(&mutex_, options_.time_limit_ns - waited_ns);
      }
    }
    return round_ == round ? failure_ : OkStatus();
  }

  void Change() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    changes_.fetch_add(1, std::memory_order_relaxed);
    changed_.NotifyAll();
  }

  // Waits a little for a change, without sleep: to wake takes longer than most exchanges.
  void LookForChange() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint32_t before = changes_.load(std::memory_order_relaxed);
    mutex_.Unlock();
    SpinWait wait;
    for (uint32_t look = 0; look < kLooks; ++look) {
      if (changes_.load(std::memory_order_relaxed) != before) break;
      wait.Pause();
    }
    mutex_.Lock();
  }

  std::vector<uint32_t> LateRanks() const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<uint32_t> late;
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      if (!has_come_[rank]) late.push_back(rank);
    }
    return late;
  }

  const LocalExchangeOptions options_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::atomic<uint32_t> changes_{0};
  std::vector<bool> has_come_ EMBANK_GUARDED_BY(mutex_);
  uint64_t round_ EMBANK_GUARDED_BY(mutex_) = 0;  // counts calls to which all ranks came
  uint32_t copying_ EMBANK_GUARDED_BY(mutex_) = 0;
  Status failure_ EMBANK_GUARDED_BY(mutex_);
  Status round_status_ EMBANK_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Meeting>> duplicates_ EMBANK_GUARDED_BY(mutex_);
  // Written under the lock before all have come, read without it while ranks copy.
  std::vector<ExchangeSource> sources_;
};

bool SendsNothing(const ExchangeSource& source) {
  return std::ranges::all_of(source.parts, [](const auto& part) { return part.bytes == 0; });
}

class LocalExchange final : public Exchange {
 public:
  // `original` is the meeting of the exchange of which this one is a duplicate; nullptr: of none.
  LocalExchange(uint32_t rank, std::shared_ptr<Meeting> meeting,
                std::shared_ptr<Meeting> original = nullptr)
      : Exchange(rank, meeting->ranks()),
        meeting_(std::move(meeting)),
        original_(std::move(original)),
        nothing_(ranks()) {}
  ~LocalExchange() override { meeting_->Fail(FailureOf("the rank ended")); }

  Status Run(const ExchangeSource& source, const ExchangeTarget& target) override {
    CheckParts(ranks(), source, target);
    if (Seeded(SeededBug::kEmptyPartSkipped) && rank() == 1 && SendsNothing(source)) {
      return OkStatus();
    }
    if (Status come = meeting_->Come(rank(), source); !come.ok()) return come;
    return meeting_->Leave(Copy(target));
  }

  Status Barrier() override { return Run({nullptr, nothing_}, {nullptr, nothing_}); }

  std::unique_ptr<Exchange> Duplicate() override {
    EMBANK_CHECK(original_ == nullptr);
    return std::make_unique<LocalExchange>(rank(), meeting_->Duplicate(duplicates_++), meeting_);
  }

  void Abort(std::string_view reason) override {
    (original_ != nullptr ? original_ : meeting_)->FailAll(FailureOf(reason));
  }

 private:
  Status FailureOf(std::string_view reason) const {
    return CancelledError(StrCat("rank ", rank(), ": ", reason));
  }

  // Begins with the next rank's part, so that ranks read different buffers.
  Status Copy(const ExchangeTarget& target) const {
    for (uint32_t i = 1; i <= ranks(); ++i) {
      const uint32_t sender = (rank() + i) % ranks();
      const ExchangeSource& source = meeting_->source(sender);
      const ExchangePart& from = source.parts[rank()];
      const ExchangePart& to = target.parts[sender];
      if (from.bytes != to.bytes) {
        return PartsDiffer(sender, StrCat(from.bytes), rank(), to.bytes);
      }
      if (to.bytes == 0) continue;
      std::memcpy(target.buffer + to.begin, source.buffer + from.begin, to.bytes);
    }
    return OkStatus();
  }

  const std::shared_ptr<Meeting> meeting_;
  const std::shared_ptr<Meeting> original_;
  const std::vector<ExchangePart> nothing_;
  size_t duplicates_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Exchange>> MakeLocalExchanges(uint32_t ranks,
                                                          const LocalExchangeOptions& options) {
  EMBANK_CHECK(ranks >= 1 && ranks <= kOwnersMax);
  const auto meeting = std::make_shared<Meeting>(ranks, options);
  std::vector<std::unique_ptr<Exchange>> exchanges;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    exchanges.push_back(std::make_unique<LocalExchange>(rank, meeting));
  }
  return exchanges;
}

}  // namespace embank
