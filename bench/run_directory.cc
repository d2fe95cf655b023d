#include "bench/run_directory.h"

#include <stdlib.h>

#include <filesystem>
#include <system_error>

#include "base/str_cat.h"

namespace embank {

RunDirectory::RunDirectory(const char* option, const std::string& parent)
    : path_(parent + "/embank-bench-XXXXXX") {
  if (mkdtemp(path_.data()) != nullptr) return;
  status_ =
      InvalidArgumentError(StrCat(option, ": ", parent, ": a directory cannot be made there"));
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  if (status_.ok()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace embank
