// Wide and deep (Cheng et al. 2016): id features of dim 1 are the weights of a linear model, and a
// network sees the others.
#ifndef EMBANK_TRAIN_MODELS_WIDE_DEEP_H_
#define EMBANK_TRAIN_MODELS_WIDE_DEEP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "train/models/ffnn.h"
#include "train/models/layer_graph.h"

namespace embank {

// Returns the id features of dim 1.
inline std::vector<NodeId> WideFeatures(LayerGraph* graph) {
  std::vector<NodeId> nodes;
  for (const NodeId feature : graph->Features()) {
    if (graph->ColumnsOf(feature) == 1) nodes.push_back(feature);
  }
  return nodes;
}

// Makes the graph, whose last node is one logit: the sum of both parts.
inline LayerGraph MakeWideDeep(const ModelInputs& inputs, std::span<const uint32_t> widths) {
  LayerGraph graph(inputs);
  const NodeId deep = graph.Linear(graph.Layers(ConcatFeatures(&graph), widths), 1);
  std::vector<NodeId> parts = WideFeatures(&graph);
  parts.push_back(deep);
  graph.Sum(parts);
  return graph;
}

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_WIDE_DEEP_H_
