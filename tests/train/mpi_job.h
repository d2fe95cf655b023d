// Programs under mpirun. Without MPI their tests are skipped, unless EMBANK_TEST_NEED_MPI is set,
// as
// ./test.sh does, which has installed the packages.
#ifndef EMBANK_TESTS_TRAIN_MPI_JOB_H_
#define EMBANK_TESTS_TRAIN_MPI_JOB_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/str_cat.h"
#include "tests/support/program.h"

namespace embank::test {

// Runs a job of a program and its arguments. Ranks have no core of their own: more ranks than cores
// must yield, and root may be the user.
inline Ended RunMpiJob(uint32_t ranks, const std::string& program_and_arguments) {
  for (const char* const name :
       {"OMPI_MCA_mpi_yield_when_idle", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"}) {
    setenv(name, "1", 1);
  }
  return RunProgram(
      "EMBANK_MPIRUN",
      StrCat("-n ", ranks, " --timeout 60 --oversubscribe --bind-to none ", program_and_arguments));
}

class MpiTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const needed = std::getenv("EMBANK_TEST_NEED_MPI");
    const std::string missing = Missing();
    if (missing.empty()) return;
    if (needed != nullptr) FAIL() << missing;
    GTEST_SKIP() << missing;
  }

 private:
  // Why there is no MPI, or "".
  static std::string Missing() {
    if (std::getenv("EMBANK_MPI_MODULE") == nullptr) {
      return "libembank_mpi.so is not built: libopenmpi-dev was not installed when the build was "
             "configured";
    }
    const char* const mpirun = std::getenv("EMBANK_MPIRUN");
    if (mpirun == nullptr || !std::filesystem::exists(mpirun)) {
      return "there is no mpirun: the package openmpi-bin is not installed";
    }
    return "";
  }
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_MPI_JOB_H_
