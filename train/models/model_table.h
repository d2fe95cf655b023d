// The models of this folder by name.
#ifndef EMBANK_TRAIN_MODELS_MODEL_TABLE_H_
#define EMBANK_TRAIN_MODELS_MODEL_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status_or.h"
#include "train/models/click_model.h"

namespace embank {

// Returns all models, in the order in which their names are shown.
std::vector<ClickModel> AllModels();

// Returns their names: "dlrm, rmc2, ... or mmoe".
std::string ModelNames();

// INVALID_ARGUMENT: there is no such model; the message has all names.
StatusOr<ClickModel> FindModel(std::string_view name);

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_MODEL_TABLE_H_
