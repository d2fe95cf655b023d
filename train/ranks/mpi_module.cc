#include "train/ranks/mpi_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/check.h"
#include "base/str_cat.h"
#include "train/ranks/mpi_module_call.h"

namespace embank {
namespace {

// The reason of the last failure of the loader in this thread.
const char* LoaderReason() {
  // The C library keeps it for each thread.
  const char* const reason = dlerror();  // NOLINT(concurrency-mt-unsafe)
  return reason != nullptr ? reason : "unknown reason";
}

Status CannotLoad(const char* file) {
  return UnavailableError(StrCat(
      "MPI needs ", file, ", which is built where the package libopenmpi-dev is, and at run ",
      "time the package openmpi-bin: ", LoaderReason()));
}

// A path of the module, or its name alone, which the loader looks for.
std::string PathOf(const char* file) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const char* const folder : {".", "../lib"}) {
    const std::filesystem::path path = program.parent_path() / folder / file;
    if (!error && access(path.c_str(), F_OK) == 0) return path.string();
  }
  return file;
}

}  // namespace

bool IsUnderMpi(const char* const* environment) {
  // Open MPI sets the first two, and Slurm and MPICH the others.
  constexpr std::string_view kNames[] = {"OMPI_COMM_WORLD_SIZE=", "PMIX_RANK=", "PMI_RANK="};
  for (; *environment != nullptr; ++environment) {
    for (const std::string_view name : kNames) {
      if (std::string_view(*environment).starts_with(name)) return true;
    }
  }
  return false;
}

const char* BuildOfRank() { return kMpiModuleBuild; }

StatusOr<std::unique_ptr<Exchange>> OpenMpiExchange(const MpiExchangeOptions& options,
                                                    const char* file) {
  EMBANK_CHECK(options.message_bytes_max >= kExchangeUnitBytes &&
               options.message_bytes_max <= kMpiMessageBytesMax &&
               options.message_bytes_max % kExchangeUnitBytes == 0);
  // It is never unloaded, because statuses have code of the module in them.
  void* const module = dlopen(PathOf(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return CannotLoad(file);
  const auto open = reinterpret_cast<MpiModuleFunction>(dlsym(module, kMpiModuleFunction));
  if (open == nullptr) return CannotLoad(file);
  MpiModuleCall call;
  call.options = options;
  open(&call);
  if (std::strcmp(call.module_build, kMpiModuleBuild) != 0) {
    return FailedPreconditionError(
        StrCat(file, " is ", call.module_build, ", and this program is ", kMpiModuleBuild));
  }
  return std::move(call.exchange);
}

}  // namespace embank
