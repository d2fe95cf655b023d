// Makes the system refuse further memory to threads.
#ifndef EMBANK_TESTS_SUPPORT_REFUSED_MAPPINGS_H_
#define EMBANK_TESTS_SUPPORT_REFUSED_MAPPINGS_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace embank::test {

// The threads of the process that are refused.
enum class Threads { kThisOne, kAll };

// From now on mmap, mremap and brk fail with ENOMEM for good, also in threads that these start.
// False: the system has no such filters.
inline bool RefuseMappings(Threads threads) {
  const auto refuse = [](uint32_t number, uint8_t to_the_end) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, to_the_end, 0);
  };
  std::array<sock_filter, 6> filter = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      refuse(SYS_mmap, 3),
      refuse(SYS_mremap, 2),
      refuse(SYS_brk, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
  };
  const sock_fprog program = {.len = static_cast<unsigned short>(filter.size()),
                              .filter = filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  const unsigned flags = threads == Threads::kAll ? SECCOMP_FILTER_FLAG_TSYNC : 0;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_REFUSED_MAPPINGS_H_
