// MMoE (Ma et al. 2018): experts that several tasks share, each task with a gate and a tower.
#ifndef EMBANK_TRAIN_MODELS_MMOE_H_
#define EMBANK_TRAIN_MODELS_MMOE_H_

#include <cstdint>
#include <vector>

#include "train/models/ffnn.h"
#include "train/models/layer_graph.h"

namespace embank {

struct MmoeLayers {
  uint32_t experts = 4;
  uint32_t tasks = 2;
  std::vector<uint32_t> expert;  // widths of an expert
  std::vector<uint32_t> tower;   // widths of a tower, without its last layer
};

// Makes the graph, whose last node has a logit for each task.
inline LayerGraph MakeMmoe(const ModelInputs& inputs, const MmoeLayers& layers) {
  LayerGraph graph(inputs);
  const NodeId features = ConcatFeatures(&graph);
  std::vector<NodeId> experts;
  for (uint32_t e = 0; e < layers.experts; ++e) {
    experts.push_back(graph.Layers(features, layers.expert));
  }
  std::vector<NodeId> logits;
  for (uint32_t task = 0; task < layers.tasks; ++task) {
    const NodeId mixed = graph.Gate(graph.Linear(features, layers.experts), experts);
    logits.push_back(graph.Linear(graph.Layers(mixed, layers.tower), 1));
  }
  graph.Concat(logits);
  return graph;
}

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_MMOE_H_
