#include "base/uring.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/spin_wait.h"

namespace embank {
namespace {

// As many as an SSD's queue takes; more only wait in it.
constexpr uint32_t kInFlightMax = 128;
// A system call for so many: each costs 0.3 us, and the device shall not wait for the last.
constexpr uint32_t kSubmittedAtOnce = 32;

class KernelRing final : public IoRing {
 public:
  KernelRing() = default;
  ~KernelRing() override {
    if (is_set_up_) io_uring_queue_exit(&ring_);
  }
  KernelRing(const KernelRing&) = delete;
  KernelRing& operator=(const KernelRing&) = delete;

  // 0, or the system's error number.
  int SetUp() {
    const int error = -io_uring_queue_init(kInFlightMax, &ring_, 0);
    is_set_up_ = error == 0;
    // The flag came with the two operations: an older kernel would refuse each.
    if (is_set_up_ && (ring_.features & IORING_FEAT_RW_CUR_POS) == 0) return EOPNOTSUPP;
    return error;
  }

  bool Run(std::span<IoOperation> operations) override {
    size_t next = 0;
    in_flight_ = 0;
    while (next < operations.size() || in_flight_ > 0) {
      const size_t left = operations.size() - next;
      const size_t room = kInFlightMax - in_flight_;
      const size_t added = std::min({left, room, size_t{kSubmittedAtOnce}});
      for (size_t i = 0; i < added; ++i) Add(&operations[next + i], next + i);
      next += added;
      // While there is more to submit only what frees room for it is waited for.
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
  void Add(IoOperation* operation, uint64_t number) {
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
    EMBANK_CHECK(sqe != nullptr);
    if (operation->writes) {
      io_uring_prep_write(sqe, operation->descriptor, operation->data, operation->bytes,
                          operation->offset);
    } else {
      io_uring_prep_read(sqe, operation->descriptor, operation->data, operation->bytes,
                         operation->offset);
    }
    io_uring_sqe_set_data64(sqe, number);
    ++in_flight_;
  }

  // Hands over what was added, and waits for so many completions. False: the ring is broken.
  bool Submit(uint32_t awaited) {
    SpinWait wait;
    while (true) {
      const int result = io_uring_submit_and_wait(&ring_, awaited);
      if (result >= 0 && io_uring_sq_ready(&ring_) == 0) return true;
      // A part, or a moment without memory or room: what is on its way makes some, if anything is.
      const bool again = result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY;
      if (!again) return false;
      if (io_uring_cq_ready(&ring_) > 0) return true;
      const bool nothing_on_its_way = in_flight_ == io_uring_sq_ready(&ring_);
      if (nothing_on_its_way && result != -EINTR) return false;
      if (!nothing_on_its_way) wait.Pause();
    }
  }

  void Reap(std::span<IoOperation> operations) {
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      operations[io_uring_cqe_get_data64(cqe)].result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      --in_flight_;
    }
  }

  // Waits for what the kernel has taken: it writes into the callers' memory.
  void Abandon(std::span<IoOperation> operations) {
    in_flight_ -= io_uring_sq_ready(&ring_);
    SpinWait wait;
    while (in_flight_ > 0) {
      Reap(operations);
      wait.Pause();
    }
  }

  io_uring ring_ = {};
  bool is_set_up_ = false;
  uint32_t in_flight_ = 0;  // added, completions not seen
};

}  // namespace

std::unique_ptr<IoRing> MakeIoRing(int* error) {
  auto ring = std::make_unique<KernelRing>();
  *error = ring->SetUp();
  if (*error != 0) return nullptr;
  return ring;
}

}  // namespace embank
