// A click model as a value, which a trainer takes: a function that makes the graph, and what the
// graph needs of the features. A program can have models of its own; those of this folder are in
// model_table.h.
#ifndef EMBANK_TRAIN_MODELS_CLICK_MODEL_H_
#define EMBANK_TRAIN_MODELS_CLICK_MODEL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "train/models/layer_graph.h"

namespace embank {

struct ClickModel {
  std::string name;  // one line; checkpoints know the model by it and by its graph
  // Makes a graph whose last node is one logit. The features are vectors of all id features and,
  // behind them, the weights of the linear part, if there is one.
  std::function<LayerGraph(const ModelInputs&)> make = {};
  bool has_linear_part = false;  // a weight of each id: a feature of dim 1 beside each vector
  bool needs_dense = false;      // dense features
  bool needs_one_dim = false;    // the same dim for all id features
  uint32_t dim_min = 1;          // of id features; 2 where dim 1 means a weight
  uint32_t dim = 0;              // the only dim of id features; 0: any
};

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_CLICK_MODEL_H_
