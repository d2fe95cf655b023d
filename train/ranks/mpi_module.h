// Exchanges whose ranks are processes that MPI connects. What uses MPI is a module of its own,
// loaded by name, so that a program without MPI does not need it.
#ifndef EMBANK_TRAIN_RANKS_MPI_MODULE_H_
#define EMBANK_TRAIN_RANKS_MPI_MODULE_H_

#include <cstdint>
#include <memory>

#include "base/status_or.h"
#include "train/ranks/exchange.h"

namespace embank {

inline constexpr const char* kMpiModuleFile = "libembank_mpi.so";
// MPI counts units in an int.
inline constexpr uint64_t kMpiMessageBytesMax = 0x7FFFFFFF * kExchangeUnitBytes;

struct MpiExchangeOptions {
  uint64_t time_limit_ns = kExchangeTimeLimitNs;
  // A part goes in messages of at most so many bytes: a multiple of kExchangeUnitBytes.
  uint64_t message_bytes_max = kMpiMessageBytesMax;
};

// Whether an environment ("NAME=value" texts, then nullptr) is one that mpirun or its like made.
bool IsUnderMpi(const char* const* environment);

// The build of this program: ranks of another one may have other bits.
const char* BuildOfRank();

// Makes this process a rank of the job that mpirun started. The module is looked for beside the
// program, then in ../lib of there, then where the loader looks; it stays loaded. MPI ends with the
// exchange, and a process has one in its life. Blocks until all ranks are here.
// UNAVAILABLE: the module or MPI is missing; the message names the packages and the loader's
// reason. FAILED_PRECONDITION: the module is of another build, MPI offers no threads, or MPI has
// ended.
StatusOr<std::unique_ptr<Exchange>> OpenMpiExchange(const MpiExchangeOptions& options = {},
                                                    const char* file = kMpiModuleFile);

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_MPI_MODULE_H_
