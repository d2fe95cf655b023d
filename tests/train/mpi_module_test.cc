// The module that uses MPI, where it is missing or of another build, and the environment of mpirun.
#include "train/ranks/mpi_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace embank::test::mpi_module_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MpiModule, NamesThePackagesWhereItIsMissing) {
  const Status status = OpenMpiExchange({}, "libembank_none.so").status();
  EXPECT_TRUE(IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("MPI needs libembank_none.so"), HasSubstr("libopenmpi-dev"),
                    HasSubstr("openmpi-bin"),
                    HasSubstr("cannot open shared object file: No such file or directory")));
}

TEST(MpiModule, IsNoOtherLibrary) {
  const Status status = OpenMpiExchange({}, "libm.so.6").status();
  EXPECT_TRUE(IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("embank_mpi_open"));
}

TEST(MpiModule, AnotherBuildIsRefused) {
  const char* const file = std::getenv("EMBANK_OTHER_MPI_MODULE");
  ASSERT_NE(file, nullptr) << "ctest sets it";
  const Status status = OpenMpiExchange({}, file).status();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(file), HasSubstr(" is exchange 0 of another house, and this program "
                                               "is exchange 1 of embank ")));
}

TEST(MpiModule, KnowsTheEnvironmentOfMpirun) {
  const auto is_under = [](const char* variable) {
    const std::array<const char*, 3> environment = {"HOME=/", variable, nullptr};
    return IsUnderMpi(environment.data());
  };
  EXPECT_TRUE(is_under("OMPI_COMM_WORLD_SIZE=1"));
  EXPECT_TRUE(is_under("PMIX_RANK=0"));
  EXPECT_TRUE(is_under("PMI_RANK=3"));
  EXPECT_FALSE(is_under("PMI_RANKS=3"));
  EXPECT_FALSE(is_under("OMPI_MCA_mpi_yield_when_idle=1"));
  EXPECT_FALSE(is_under(nullptr));
}

}  // namespace
}  // namespace embank::test::mpi_module_test
