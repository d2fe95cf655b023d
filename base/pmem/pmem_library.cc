#include "base/pmem/pmem_library.h"

#include <dlfcn.h>

#include "base/status.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// The reason of the last failure of the loader in this thread.
const char* LoaderReason() {
  // The C library keeps it for each thread.
  const char* const reason = dlerror();  // NOLINT(concurrency-mt-unsafe)
  return reason != nullptr ? reason : "unknown reason";
}

Status CannotLoad(const char* file) {
  return UnavailableError(StrCat("persistent memory needs ", file, " (package ",
                                 kPmemLibraryPackage, "): ", LoaderReason()));
}

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

StatusOr<PmemLibrary> LoadPmemLibrary(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return CannotLoad(file);
  PmemLibrary found;
  const bool has_all =
      Find(library, "pmem_map_file", &found.map_file) &&
      Find(library, "pmem_unmap", &found.unmap) && Find(library, "pmem_memcpy", &found.copy) &&
      Find(library, "pmem_drain", &found.drain) && Find(library, "pmem_msync", &found.msync) &&
      Find(library, "pmem_errormsg", &found.error_message);
  if (has_all) return found;
  Status missing = CannotLoad(file);
  dlclose(library);
  return missing;
}

const char* PmemState() {
  static const bool is_there = LoadPmemLibrary().ok();
  return is_there ? "libpmem: drains on persistent memory, msync on other mapped files" : nullptr;
}

}  // namespace embank
