// DLRM (Naumov et al. 2019): dense features through bottom layers, inner products of all pairs of
// vectors, top layers.
#ifndef EMBANK_TRAIN_MODELS_DLRM_H_
#define EMBANK_TRAIN_MODELS_DLRM_H_

#include <cstdint>
#include <vector>

#include "train/models/layer_graph.h"

namespace embank {

// The widths of layers. The last of `bottom` is the dim of all id features.
struct DlrmLayers {
  std::vector<uint32_t> bottom;
  std::vector<uint32_t> top;  // without the last layer, which has one output
};

// Returns the layers of RMC2: Criteo's Kaggle set, dim 16.
inline DlrmLayers Rmc2Layers() { return {{512, 256, 64, 16}, {512, 256}}; }
// Returns the layers of RMC3: Criteo's 1 TB set, dim 64.
inline DlrmLayers Rmc3Layers() { return {{512, 256, 64}, {512, 512, 256}}; }
// Returns the layers of RMC4: the Avazu set, dim 16.
inline DlrmLayers Rmc4Layers() { return {{512, 256, 64, 16}, {512, 256}}; }

// Returns the layers of a synthetic model: Criteo's 1 TB set, dim 64 (Adnan et al. 2021).
inline DlrmLayers SynM1Layers() { return {{64}, {512}}; }
inline DlrmLayers SynM2Layers() { return {{512, 64}, {512, 256}}; }
inline DlrmLayers SynM3Layers() { return {{1024, 512, 64}, {512, 1024, 256}}; }
inline DlrmLayers SynM4Layers() { return {{1024, 512, 256, 64}, {512, 1024, 512, 256}}; }

// Makes the graph of a DLRM, whose last node is one logit.
inline LayerGraph MakeDlrm(const ModelInputs& inputs, const DlrmLayers& layers) {
  LayerGraph graph(inputs);
  const NodeId dense = graph.Layers(graph.Dense(), layers.bottom);
  std::vector<NodeId> vectors = {dense};
  for (const NodeId feature : graph.Features()) vectors.push_back(feature);
  const NodeId pairs = graph.DotInteraction(vectors);
  graph.Linear(graph.Layers(graph.Concat({dense, pairs}), layers.top), 1);
  return graph;
}

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_DLRM_H_
