// The call from a program into the module that uses MPI. Both have C++ objects in common, so they
// must be of the same build: the module compares a text before it touches anything else.
#ifndef EMBANK_TRAIN_RANKS_MPI_MODULE_CALL_H_
#define EMBANK_TRAIN_RANKS_MPI_MODULE_CALL_H_

#include <cstdint>
#include <memory>

#include "base/status_or.h"
#include "train/ranks/exchange.h"
#include "train/ranks/mpi_module.h"

namespace embank {

// The number grows with each change of this file or of exchange.h.
inline constexpr char kMpiModuleBuild[] = "exchange 1 of embank " EMBANK_VERSION " by " __VERSION__;

struct MpiModuleCall {
  // These two never change, so that builds of any two versions can compare.
  const char* program_build = kMpiModuleBuild;
  const char* module_build = nullptr;  // set by the module; static
  // The rest is touched if the builds are equal.
  MpiExchangeOptions options;
  StatusOr<std::unique_ptr<Exchange>> exchange;
};

inline constexpr const char* kMpiModuleFunction = "embank_mpi_open";
using MpiModuleFunction = void (*)(MpiModuleCall* call);

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_MPI_MODULE_CALL_H_
