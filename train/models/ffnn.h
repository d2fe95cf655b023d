// A feed-forward network over all features beside each other.
#ifndef EMBANK_TRAIN_MODELS_FFNN_H_
#define EMBANK_TRAIN_MODELS_FFNN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "train/models/layer_graph.h"

namespace embank {

// Returns the widths of Persia's network.
inline std::vector<uint32_t> PersiaWidths() { return {4096, 2048, 1024, 512, 256}; }

// Puts the dense features, if there are any, and the id features of more than one dim beside each
// other.
inline NodeId ConcatFeatures(LayerGraph* graph) {
  std::vector<NodeId> nodes;
  if (graph->inputs().dense > 0) nodes.push_back(graph->Dense());
  for (const NodeId feature : graph->Features()) {
    if (graph->ColumnsOf(feature) > 1) nodes.push_back(feature);
  }
  return graph->Concat(nodes);
}

// Makes the graph of a network, whose last node has so many logits.
inline LayerGraph MakeFfnn(const ModelInputs& inputs, std::span<const uint32_t> widths,
                           uint32_t logits = 1) {
  LayerGraph graph(inputs);
  graph.Linear(graph.Layers(ConcatFeatures(&graph), widths), logits);
  return graph;
}

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_FFNN_H_
