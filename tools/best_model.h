// The directory that keeps the best model of a training, beside --path. At each moment one of its
// first two names has it whole:
//
//   PATH.best       the best model
//   PATH.best.old   the one before it, while a better one takes its place
//   PATH.best.new   the better one, while it is made
#ifndef EMBANK_TOOLS_BEST_MODEL_H_
#define EMBANK_TOOLS_BEST_MODEL_H_

#include <string>

#include "base/status.h"
#include "store/store.h"

namespace embank {

// One thread.
class BestModel {
 public:
  // `path` is the directory of the training.
  explicit BestModel(const std::string& path);

  const std::string& directory() const { return directory_; }
  bool exists() const;

  // Ends a replacement that was interrupted. UNAVAILABLE names the directory and the error.
  Status Recover() const;
  // Replaces the model by the last checkpoint of a store. The statuses of Checkpoints::Export, and
  // UNAVAILABLE.
  Status Replace(const Store& store) const;

 private:
  const std::string directory_;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_BEST_MODEL_H_
