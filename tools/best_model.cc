#include "tools/best_model.h"

#include <filesystem>
#include <system_error>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// The name beside the directory of a path like "run/" or ".", too.
std::string BesidePath(const std::string& path) {
  std::filesystem::path whole(path);
  if (!whole.has_filename()) whole = whole.parent_path();
  if (whole.filename() == "." || whole.filename() == "..") {
    std::error_code error;
    whole = std::filesystem::weakly_canonical(whole, error);
  }
  return whole.string() + ".best";
}

std::string OldOf(const std::string& directory) { return directory + ".old"; }
std::string NewOf(const std::string& directory) { return directory + ".new"; }

Status Failed(const char* what, const std::string& directory, const std::error_code& error) {
  return UnavailableError(StrCat("cannot ", what, " ", directory, ": ", error.message()));
}

Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  return error ? Failed("rename", from, error) : OkStatus();
}

Status Remove(const std::string& directory) {
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  return error ? Failed("remove", directory, error) : OkStatus();
}

}  // namespace

BestModel::BestModel(const std::string& path) : directory_(BesidePath(path)) {}

bool BestModel::exists() const {
  std::error_code error;
  return std::filesystem::exists(directory_, error);
}

Status BestModel::Recover() const {
  std::error_code error;
  if (!exists() && std::filesystem::exists(OldOf(directory_), error)) {
    EMBANK_RETURN_IF_ERROR(Rename(OldOf(directory_), directory_));
  }
  EMBANK_RETURN_IF_ERROR(Remove(OldOf(directory_)));
  return Remove(NewOf(directory_));
}

Status BestModel::Replace(const Store& store) const {
  EMBANK_RETURN_IF_ERROR(Recover());
  EMBANK_RETURN_IF_ERROR(
      store.checkpoints()->Export(NewOf(directory_), [](uint64_t, uint64_t) { return true; }));
  if (exists()) EMBANK_RETURN_IF_ERROR(Rename(directory_, OldOf(directory_)));
  EMBANK_RETURN_IF_ERROR(Rename(NewOf(directory_), directory_));
  return Remove(OldOf(directory_));
}

}  // namespace embank
