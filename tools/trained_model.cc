#include "tools/trained_model.h"

#include <filesystem>
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
  if (IsNotFound(read.status()) && std::filesystem::is_directory(path + "/rank-0")) {
    return FailedPreconditionError(
        StrCat("--path: ", path,
               " has the directories of several ranks: start as many, or join "
               "them with embank reshard ",
               path, " --to 1 --out NEW"));
  }
  if (IsNotFound(read.status())) {
    return NotFoundError(StrCat("--path: there is no model in ", path,
                                ", which is no store; give the directory of a training"));
  }
  EMBANK_ASSIGN_OR_RETURN(const Manifest manifest, std::move(read));
  if (manifest.checkpoint == 0) {
    return NotFoundError(
        StrCat("--path: there is no model in ", path, " yet: no checkpoint; train it first"));
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
  model.store_id = manifest.store_id;
  model.pmem_path = manifest.directories[Tier::kPmem].path;
  return model;
}

StatusOr<std::unique_ptr<Trainer>> OpenToPredict(const TrainCommand& command, TrainedModel model,
                                                 Exchange* exchange) {
  TrainerOptions options = std::move(model.text.options);
  options.hybrid = {};
  options.threads = command.trainer.threads;
  options.store.worker_threads = command.trainer.threads;
  const std::string& pmem_path = command.trainer.store.pmem_path;
  options.store.pmem_path =
      pmem_path.empty() || model.pmem_path.empty() ? model.pmem_path : pmem_path;
  EMBANK_ASSIGN_OR_RETURN(options.store.dram_bytes, DramBytes(command));
  options.store.read_only = true;
  StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Open(options, model.text.columns, exchange);
  if (!IsUnavailable(trainer.status())) return trainer;
  return UnavailableError(StrCat("--", trainer.status().message(),
                                 ": wait for the end of its training, or use an export"));
}

}  // namespace embank
