// DeepFM (Guo et al. 2017): a linear model whose weights are id features of dim 1, a factorization
// machine and a network over the others.
#ifndef EMBANK_TRAIN_MODELS_DEEP_FM_H_
#define EMBANK_TRAIN_MODELS_DEEP_FM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "train/models/ffnn.h"
#include "train/models/layer_graph.h"
#include "train/models/wide_deep.h"

namespace embank {

// Makes the graph, whose last node is one logit: the sum of the three parts.
inline LayerGraph MakeDeepFm(const ModelInputs& inputs, std::span<const uint32_t> widths) {
  LayerGraph graph(inputs);
  const NodeId deep = graph.Linear(graph.Layers(ConcatFeatures(&graph), widths), 1);
  std::vector<NodeId> vectors;
  for (const NodeId feature : graph.Features()) {
    if (graph.ColumnsOf(feature) > 1) vectors.push_back(feature);
  }
  std::vector<NodeId> parts = WideFeatures(&graph);
  parts.push_back(graph.Fm(vectors));
  parts.push_back(deep);
  graph.Sum(parts);
  return graph;
}

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_DEEP_FM_H_
