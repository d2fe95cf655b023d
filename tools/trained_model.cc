#include "tools/trained_model.h"

#include <memory>
#include <utility>

#include "base/files/posix_file_system.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/inspect/survey.h"
#include "train/models/model_table.h"

namespace embank {

StatusOr<TrainedModel> ReadTrainedModel(const std::string& path) {
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  StatusOr<Manifest> read = ReadNewestManifest(files.get(), path);
  if (IsNotFound(read.status())) {
    return NotFoundError(StrCat("--path: there is no model in ", path, ", which is no store"));
  }
  EMBANK_ASSIGN_OR_RETURN(const Manifest manifest, std::move(read));
  if (manifest.checkpoint == 0) {
    return NotFoundError(StrCat("--path: there is no model in ", path, " yet: no checkpoint"));
  }
  TrainedModel model;
  EMBANK_ASSIGN_OR_RETURN(
      model.text,
      ParseModelText({reinterpret_cast<const char*>(manifest.blob.data()), manifest.blob.size()}));
  StatusOr<ClickModel> found = FindModel(model.text.options.model.name);
  if (!found.ok()) {
    return FailedPreconditionError(StrCat("--path: ", path, " was trained by another program: its ",
                                          found.status().message()));
  }
  model.text.options.model = *std::move(found);
  model.text.options.store.seed = manifest.seed;
  model.text.options.store.path = path;
  model.pmem_path = manifest.pmem_path;
  return model;
}

}  // namespace embank
