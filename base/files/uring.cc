#include "base/files/uring.h"

#include <liburing.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "base/check.h"
#include "base/str_cat.h"
#include "base/threads/spin_wait.h"

namespace embank {
namespace {

// An SSD's queue takes so many; more would only wait in it.
constexpr uint32_t kInFlightMax = 128;
// One system call submits so many: each call costs 0.3 us, and the device should not wait for the
// last operation.
constexpr uint32_t kSubmittedAtOnce = 32;

// A different number for each thread; ended threads' numbers are not used again.
uint64_t ThisThread() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

// Rings that have ended. A new ring may get the memory of one that another thread ended. The kernel
// orders the two; this tells the language and its tools, which do not see the system's mappings.
std::atomic<uint64_t> rings_ended{0};

constexpr std::array kCompletions = {IoCompletions::kDeferred, IoCompletions::kCooperative,
                                     IoCompletions::kInterrupting};

unsigned FlagsOf(IoCompletions completions) {
  switch (completions) {
    case IoCompletions::kDeferred:
      return IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    case IoCompletions::kCooperative:
      return IORING_SETUP_COOP_TASKRUN;
    case IoCompletions::kInterrupting:
      break;
  }
  return 0;
}

const char* NameOf(IoCompletions completions) {
  switch (completions) {
    case IoCompletions::kDeferred:
      return "deferred completions";
    case IoCompletions::kCooperative:
      return "cooperative completions";
    case IoCompletions::kInterrupting:
      break;
  }
  return "interrupting completions";
}

class KernelRing final : public IoRing {
 public:
  KernelRing() = default;
  ~KernelRing() override {
    if (!is_set_up_) return;
    rings_ended.fetch_add(1, std::memory_order_release);
    io_uring_queue_exit(&ring_);
  }
  KernelRing(const KernelRing&) = delete;
  KernelRing& operator=(const KernelRing&) = delete;

  // 0, or the system's error number.
  int SetUp(IoCompletions completions) {
    int error = EINVAL;
    // Kernels that do not know a flag say EINVAL.
    for (size_t i = static_cast<size_t>(completions); i < kCompletions.size(); ++i) {
      completions_ = kCompletions[i];
      error = -io_uring_queue_init(kInFlightMax, &ring_, FlagsOf(completions_));
      if (error != EINVAL) break;
    }
    is_set_up_ = error == 0;
    if (!is_set_up_) return error;
    (void)rings_ended.load(std::memory_order_acquire);
    // The flag came with the two operations: an older kernel would refuse each.
    if ((ring_.features & IORING_FEAT_RW_CUR_POS) == 0) return EOPNOTSUPP;
    refusals_.files = -io_uring_register_files_sparse(&ring_, kRingFilesMax);
    refusals_.memory = -io_uring_register_buffers_sparse(&ring_, kRingMemoryMax);
    return 0;
  }

  bool IsForThisThread() const override {
    return completions_ != IoCompletions::kDeferred || thread_ == ThisThread();
  }
  IoRefusals refusals() const override { return refusals_; }
  std::string About() const override {
    return StrCat(NameOf(completions_), refusals_.files == 0 ? ", registered files" : "",
                  refusals_.memory == 0 ? ", registered memory" : "");
  }

  bool Run(std::span<IoOperation> operations, const IoMemory& memory) override {
    const std::span<std::byte> registered =
        Register(memory) ? memory.bytes : std::span<std::byte>();
    EMBANK_CHECK(IsForThisThread() && in_flight_ == 0);
    size_t next = 0;
    while (next < operations.size() || in_flight_ > 0) {
      const size_t left = operations.size() - next;
      const size_t space = kInFlightMax - in_flight_;
      const size_t added = std::min({left, space, size_t{kSubmittedAtOnce}});
      for (size_t i = 0; i < added; ++i) {
        io_uring_sqe* const sqe = Add(operations[next + i], memory.number, registered);
        io_uring_sqe_set_data64(sqe, next + i);
      }
      next += added;
      // While there is more to submit, it waits only until the queue has space.
      const bool full = in_flight_ == kInFlightMax;
      const uint32_t awaited = next == operations.size() ? in_flight_ : full ? kSubmittedAtOnce : 0;
      if (!Submit(awaited)) {
        Abandon(operations);
        return false;
      }
      Reap(operations);
    }
    return true;
  }

 private:
  // Whether the kernel has the file or memory under its number.
  bool Register(const IoMemory& memory) {
    if (memory.number == kNoRingNumber) return false;
    EMBANK_CHECK(memory.number < memory_.size());
    if (memory_[memory.number] || refusals_.memory != 0) return memory_[memory.number];
    const iovec piece = {memory.bytes.data(), memory.bytes.size()};
    const __u64 tag = 0;
    const int result = io_uring_register_buffers_update_tag(&ring_, memory.number, &piece, &tag, 1);
    return IsTaken(result, &refusals_.memory, &memory_[memory.number]);
  }
  bool RegisterFile(const IoOperation& operation) {
    if (operation.file == kNoRingNumber) return false;
    EMBANK_CHECK(operation.file < files_.size());
    if (files_[operation.file] || refusals_.files != 0) return files_[operation.file];
    const int result =
        io_uring_register_files_update(&ring_, operation.file, &operation.descriptor, 1);
    return IsTaken(result, &refusals_.files, &files_[operation.file]);
  }
  // A registration that was refused is not tried again.
  static bool IsTaken(int result, int* refusal, bool* taken) {
    *taken = result == 1;
    if (!*taken) *refusal = result < 0 ? -result : EINVAL;
    return *taken;
  }

  io_uring_sqe* Add(const IoOperation& operation, uint32_t number,
                    std::span<std::byte> registered) {
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
    EMBANK_CHECK(sqe != nullptr);
    const bool has_file = RegisterFile(operation);
    const int file = has_file ? static_cast<int>(operation.file) : operation.descriptor;
    const bool is_fixed = IsWithin(registered, operation);
    const int opcode = operation.writes ? (is_fixed ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE)
                                        : (is_fixed ? IORING_OP_READ_FIXED : IORING_OP_READ);
    io_uring_prep_rw(opcode, sqe, file, operation.data, operation.bytes, operation.offset);
    if (has_file) sqe->flags |= IOSQE_FIXED_FILE;
    if (is_fixed) sqe->buf_index = static_cast<__u16>(number);
    ++in_flight_;
    return sqe;
  }

  static bool IsWithin(std::span<const std::byte> all, const IoOperation& operation) {
    const auto begin = reinterpret_cast<uintptr_t>(all.data());
    const auto at = reinterpret_cast<uintptr_t>(operation.data);
    return begin <= at && at + operation.bytes <= begin + all.size();
  }

  // Submits the added operations, and waits for so many completions. False: the ring is broken.
  bool Submit(uint32_t awaited) {
    SpinWait wait;
    while (true) {
      const int result = io_uring_submit_and_wait(&ring_, awaited);
      if (result >= 0 && io_uring_sq_ready(&ring_) == 0) return true;
      // The kernel did a part, or has no memory or no space in its queue for a moment. Operations
      // in flight free some, if there are any.
      const bool again = result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY;
      if (!again) return false;
      if (io_uring_cq_ready(&ring_) > 0) return true;
      const bool nothing_on_its_way = in_flight_ == io_uring_sq_ready(&ring_);
      if (nothing_on_its_way && result != -EINTR) return false;
      if (nothing_on_its_way) continue;
      io_uring_get_events(&ring_);
      wait.Pause();
    }
  }

  void Reap(std::span<IoOperation> operations) {
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const uint64_t i = io_uring_cqe_get_data64(cqe);
      EMBANK_CHECK(in_flight_ > 0 && i < operations.size());
      EMBANK_CHECK(operations[i].result == IoOperation::kNotDone);
      operations[i].result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      --in_flight_;
    }
  }

  // Waits for all operations in flight: the kernel writes into the callers' memory.
  void Abandon(std::span<IoOperation> operations) {
    in_flight_ -= io_uring_sq_ready(&ring_);
    SpinWait wait;
    while (true) {
      Reap(operations);
      if (in_flight_ == 0) return;
      const int result = io_uring_get_events(&ring_);
      // Deferred completions come no other way: another part of the process closed our descriptor.
      EMBANK_CHECK(result >= 0 || result == -EINTR || result == -EAGAIN ||
                   completions_ != IoCompletions::kDeferred);
      wait.Pause();
    }
  }

  const uint64_t thread_ = ThisThread();
  io_uring ring_ = {};
  bool is_set_up_ = false;
  IoCompletions completions_ = IoCompletions::kInterrupting;
  IoRefusals refusals_;
  std::array<bool, kRingFilesMax> files_ = {};  // which numbers the kernel has
  std::array<bool, kRingMemoryMax> memory_ = {};
  uint32_t in_flight_ = 0;  // added, completions not seen
};

}  // namespace

std::unique_ptr<IoRing> MakeIoRing(IoCompletions completions, int* error) {
  auto ring = std::make_unique<KernelRing>();
  *error = ring->SetUp(completions);
  if (*error != 0) return nullptr;
  return ring;
}

}  // namespace embank
