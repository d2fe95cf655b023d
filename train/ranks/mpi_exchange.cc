// Messages in place of MPI_Ialltoallv: as fast, and they tell which rank is late, and that two
// ranks disagree about the bytes of a part. Each part has at least one message, and its last one is
// shorter than the longest:
//
//   message_bytes_max 32    0 bytes [0]    16 bytes [16]    32 bytes [32][0]    48 bytes [32][16]
//
// So a receiver that expects fewer bytes gets a message that is too long, and one that expects more
// gets one that is too short. And each call waits for all ranks.
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/thread_annotations.h"
#include "base/threads/clock.h"
#include "base/threads/mutex.h"
#include "train/ranks/exchange_checks.h"
#include "train/ranks/mpi_module_call.h"

namespace embank {
namespace {

// Messages of an exchange; its duplicates have the tags after it.
constexpr int kFirstTag = 1;

Status MpiStatus(const char* what, int error) {
  if (error == MPI_SUCCESS) return OkStatus();
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  if (MPI_Error_string(error, text.data(), &length) != MPI_SUCCESS) length = 0;
  return UnavailableError(
      StrCat(what, ": ", std::string_view(text.data(), static_cast<size_t>(length))));
}

// A thread pauses between two looks at its messages: MPI has no event to wait for.
class Pauses {
 public:
  // Pauses longer the more often it was called.
  void Pause() {
    ++pauses_;
    if (pauses_ <= kShort) return;
    if (pauses_ <= kShort + kYields) {
      sched_yield();
      return;
    }
    const timespec nap = {0, kNapNs};
    ppoll(nullptr, 0, &nap, nullptr);
  }

 private:
  // A look takes 0.1 us, a message between two cores 1 us.
  static constexpr uint32_t kShort = 64;
  // Then other ranks on the same cores go on: 0.3 ms and more. A rank that is later than this is at
  // work, and the naps leave the cores to it.
  static constexpr uint32_t kYields = 1000;
  static constexpr long kNapNs = 20'000;

  uint32_t pauses_ = 0;
};

// An exchange and its duplicates share it. One thread at a time is inside of MPI
// (MPI_THREAD_SERIALIZED).
struct MpiJob {
  Mutex mutex;
  std::atomic<bool> has_failed{false};
  MPI_Comm comm EMBANK_GUARDED_BY(mutex) = MPI_COMM_NULL;
  MPI_Datatype unit EMBANK_GUARDED_BY(mutex) = MPI_DATATYPE_NULL;
};

class MpiExchange final : public Exchange {
 public:
  // `ends_mpi`: MPI ends with it.
  MpiExchange(uint32_t rank, uint32_t ranks, const MpiExchangeOptions& options, bool ends_mpi,
              std::shared_ptr<MpiJob> job, int tag)
      : Exchange(rank, ranks),
        options_(options),
        nothing_(ranks),
        ends_mpi_(ends_mpi),
        job_(std::move(job)),
        tag_(tag) {}
  ~MpiExchange() override;

  Status Run(const ExchangeSource& source, const ExchangeTarget& target) override;
  std::unique_ptr<Exchange> Duplicate() override;
  Status Barrier() override { return Run({nullptr, nothing_}, {nullptr, nothing_}); }
  void Abort(std::string_view reason) override;

 private:
  struct Message {
    uint32_t peer;
    bool is_received;
    uint64_t begin;  // in its part
    uint64_t bytes;
    uint64_t part_bytes;
  };

  Status Post(const ExchangeSource& source, const ExchangeTarget& target);
  template <typename PostOne>
  Status PostPart(uint32_t peer, bool is_received, uint64_t part_bytes, PostOne post);
  Status Wait();
  Status CheckAll() const;
  Status CheckDone(const Message& message, const MPI_Status& status) const;
  Status GiveUp();

  const MpiExchangeOptions options_;
  const std::vector<ExchangePart> nothing_;
  const bool ends_mpi_;
  const std::shared_ptr<MpiJob> job_;
  const int tag_;
  int duplicates_ = 0;
  Status failure_;
  // The messages of the call under way, and what MPI says of each.
  std::vector<Message> messages_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
};

MpiExchange::~MpiExchange() {
  // After a failure messages may be under way, for which MPI_Finalize would wait. A process that
  // ends without it ends the job.
  if (tag_ != kFirstTag || job_->has_failed || !Barrier().ok()) return;
  const MutexLock lock(&job_->mutex);
  MPI_Type_free(&job_->unit);
  MPI_Comm_free(&job_->comm);
  if (ends_mpi_) MPI_Finalize();
}

// The tags of messages keep the exchanges apart.
std::unique_ptr<Exchange> MpiExchange::Duplicate() {
  EMBANK_CHECK(tag_ == kFirstTag);
  return std::make_unique<MpiExchange>(rank(), ranks(), options_, /*ends_mpi=*/false, job_,
                                       kFirstTag + ++duplicates_);
}

Status MpiExchange::Run(const ExchangeSource& source, const ExchangeTarget& target) {
  CheckParts(ranks(), source, target);
  if (!failure_.ok()) return failure_;
  failure_ = Post(source, target);
  const ExchangePart& from = source.parts[rank()];
  const ExchangePart& to = target.parts[rank()];
  if (from.bytes != to.bytes) {
    failure_.Update(PartsDiffer(rank(), StrCat(from.bytes), rank(), to.bytes));
  } else if (to.bytes != 0) {
    std::memcpy(target.buffer + to.begin, source.buffer + from.begin, to.bytes);
  }
  if (failure_.ok()) failure_ = Wait();
  if (!failure_.ok()) job_->has_failed = true;
  return failure_;
}

// Posts the messages of one part: post(begin, units, request) of each.
template <typename PostOne>
Status MpiExchange::PostPart(uint32_t peer, bool is_received, uint64_t part_bytes, PostOne post) {
  for (uint64_t begin = 0;; begin += options_.message_bytes_max) {
    const uint64_t bytes = std::min(part_bytes - begin, options_.message_bytes_max);
    messages_.push_back({peer, is_received, begin, bytes, part_bytes});
    requests_.push_back(MPI_REQUEST_NULL);
    const int error = post(begin, static_cast<int>(bytes / kExchangeUnitBytes), &requests_.back());
    if (error != MPI_SUCCESS) return MpiStatus("a message of an exchange", error);
    if (bytes < options_.message_bytes_max) return OkStatus();
  }
}

// Receives first, so that what arrives has a place; then sends. Each rank begins with another peer.
Status MpiExchange::Post(const ExchangeSource& source, const ExchangeTarget& target) {
  const MutexLock lock(&job_->mutex);
  MPI_Comm const comm = job_->comm;
  MPI_Datatype const unit = job_->unit;
  messages_.clear();
  requests_.clear();
  for (uint32_t i = 1; i < ranks(); ++i) {
    const uint32_t peer = (rank() + ranks() - i) % ranks();
    const ExchangePart part = target.parts[peer];
    std::byte* const bytes = target.buffer + part.begin;
    EMBANK_RETURN_IF_ERROR(
        PostPart(peer, true, part.bytes, [&](uint64_t begin, int units, MPI_Request* request) {
          return MPI_Irecv(bytes + begin, units, unit, static_cast<int>(peer), tag_, comm, request);
        }));
  }
  for (uint32_t i = 1; i < ranks(); ++i) {
    const uint32_t peer = (rank() + i) % ranks();
    const ExchangePart part = source.parts[peer];
    const std::byte* const bytes = source.buffer + part.begin;
    EMBANK_RETURN_IF_ERROR(
        PostPart(peer, false, part.bytes, [&](uint64_t begin, int units, MPI_Request* request) {
          return MPI_Isend(bytes + begin, units, unit, static_cast<int>(peer), tag_, comm, request);
        }));
  }
  return OkStatus();
}

Status MpiExchange::Wait() {
  MPI_Status success = {};
  success.MPI_ERROR = MPI_SUCCESS;
  statuses_.assign(requests_.size(), success);
  const Clock* const clock = SteadyClock();
  const uint64_t begin_ns = clock->NowNs();
  for (Pauses pauses;; pauses.Pause()) {
    {
      const MutexLock lock(&job_->mutex);
      int done = 0;
      const int error = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                                    statuses_.data());
      // The messages' own errors are in their statuses.
      if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS) {
        return MpiStatus("MPI_Testall", error);
      }
      if (done != 0 || error != MPI_SUCCESS) return CheckAll();
    }
    if (clock->NowNs() - begin_ns >= options_.time_limit_ns) return GiveUp();
  }
}

// With the lock of the job, as CheckDone.
Status MpiExchange::CheckAll() const {
  for (size_t i = 0; i < messages_.size(); ++i) {
    EMBANK_RETURN_IF_ERROR(CheckDone(messages_[i], statuses_[i]));
  }
  return OkStatus();
}

Status MpiExchange::CheckDone(const Message& message, const MPI_Status& status) const {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(status.MPI_ERROR, &error_class);
  if (error_class == MPI_ERR_TRUNCATE) {
    return PartsDiffer(message.peer, StrCat("more than ", message.part_bytes), rank(),
                       message.part_bytes);
  }
  EMBANK_RETURN_IF_ERROR(MpiStatus("a message of an exchange", status.MPI_ERROR));
  if (!message.is_received) return OkStatus();
  MPI_Count bytes = 0;
  MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  if (static_cast<uint64_t>(bytes) == message.bytes) return OkStatus();
  // It was the sender's last one.
  return PartsDiffer(message.peer, StrCat(message.begin + static_cast<uint64_t>(bytes)), rank(),
                     message.part_bytes);
}

// Says why messages are not done, and takes back what nobody has answered.
Status MpiExchange::GiveUp() {
  const MutexLock lock(&job_->mutex);
  std::vector<uint32_t> late;
  Status different;
  for (size_t i = 0; i < messages_.size(); ++i) {
    int done = 0;
    MPI_Request_get_status(requests_[i], &done, &statuses_[i]);
    if (done != 0) {
      different.Update(CheckDone(messages_[i], statuses_[i]));
      continue;
    }
    late.push_back(messages_[i].peer);
    if (messages_[i].is_received) MPI_Cancel(&requests_[i]);
  }
  if (!different.ok()) return different;
  std::ranges::sort(late);
  late.erase(std::unique(late.begin(), late.end()), late.end());
  return RanksAreLate(rank(), late, options_.time_limit_ns);
}

void MpiExchange::Abort(std::string_view reason) {
  const MutexLock lock(&job_->mutex);
  const std::string line = StrCat("rank ", rank(), ": ", reason, "\n");
  // The process has no later moment to say it.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  MPI_Abort(job_->comm, 1);
}

// Sets whether MPI is to be ended by the exchange.
Status BeginMpi(bool* ends_mpi) {
  int has_ended = 0;
  int has_begun = 0;
  MPI_Finalized(&has_ended);
  if (has_ended != 0) return FailedPreconditionError("MPI has ended in this process");
  MPI_Initialized(&has_begun);
  *ends_mpi = has_begun == 0;
  int threads = MPI_THREAD_SINGLE;
  if (has_begun != 0) {
    MPI_Query_thread(&threads);
  } else {
    EMBANK_RETURN_IF_ERROR(MpiStatus(
        "MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads)));
  }
  if (threads >= MPI_THREAD_SERIALIZED) return OkStatus();
  return FailedPreconditionError("MPI does not offer MPI_THREAD_SERIALIZED");
}

StatusOr<std::unique_ptr<Exchange>> MakeMpiExchange(const MpiExchangeOptions& options) {
  bool ends_mpi = false;
  EMBANK_RETURN_IF_ERROR(BeginMpi(&ends_mpi));
  int rank = 0;
  int ranks = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Datatype unit = MPI_DATATYPE_NULL;
  EMBANK_RETURN_IF_ERROR(MpiStatus("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &comm)));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  if (ranks > static_cast<int>(kOwnersMax)) {
    return InvalidArgumentError(
        StrCat("the job has ", ranks, " ranks; it must have 1 to ", kOwnersMax));
  }
  EMBANK_RETURN_IF_ERROR(
      MpiStatus("MPI_Type_contiguous", MPI_Type_contiguous(kExchangeUnitBytes, MPI_BYTE, &unit)));
  EMBANK_RETURN_IF_ERROR(MpiStatus("MPI_Type_commit", MPI_Type_commit(&unit)));
  auto job = std::make_shared<MpiJob>();
  {
    const MutexLock lock(&job->mutex);
    job->comm = comm;
    job->unit = unit;
  }
  return std::unique_ptr<Exchange>(
      std::make_unique<MpiExchange>(static_cast<uint32_t>(rank), static_cast<uint32_t>(ranks),
                                    options, ends_mpi, std::move(job), kFirstTag));
}

}  // namespace
}  // namespace embank

extern "C" __attribute__((visibility("default"))) void embank_mpi_open(
    embank::MpiModuleCall* call) {
  call->module_build = embank::kMpiModuleBuild;
  if (std::strcmp(call->program_build, call->module_build) != 0) return;
  call->exchange = embank::MakeMpiExchange(call->options);
}
