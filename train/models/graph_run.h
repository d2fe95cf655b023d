// Passes of one slice through a graph: the memory of its nodes, forward and backward.
#ifndef EMBANK_TRAIN_MODELS_GRAPH_RUN_H_
#define EMBANK_TRAIN_MODELS_GRAPH_RUN_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "train/dense/tensor.h"
#include "train/models/layer_graph.h"

namespace embank {

// The samples of a slice, as the caller has them.
struct SliceInput {
  ConstMatrix dense;
  std::span<const ConstMatrix> features;  // one for each id feature
};

// One thread at a time; several runs of one graph may go on at once. The bits of a slice depend on
// its samples and the weights alone.
class GraphRun {
 public:
  // Makes a run for slices of up to `samples_max` samples; the graph outlives it.
  GraphRun(const LayerGraph* graph, uint32_t samples_max);

  // Computes all nodes and returns the last one, which is valid until the next call.
  ConstMatrix Forward(const SliceInput& input, std::span<const float> weights);

  // The gradients that Backward overwrites.
  struct Gradients {
    std::span<float> weights;
    std::span<const Matrix> features;
  };
  // Tells that the gradients of all weights from this one on are there.
  using WeightsDone = std::function<void(uint64_t first)>;
  // Computes gradients from that of the last node, for the slice of the last Forward. It uses
  // `output_gradient` as memory. It calls `done` for each layer, from the last one on.
  void Backward(const SliceInput& input, std::span<const float> weights, Matrix output_gradient,
                const Gradients& gradients, const WeightsDone& done = nullptr);

 private:
  void ComputeNode(const GraphNode& node, const SliceInput& input, std::span<const float> weights,
                   NodeId id);
  void BackwardNode(const GraphNode& node, std::span<const float> weights, NodeId id,
                    std::span<float> weight_gradients);
  void BackwardLinear(const GraphNode& node, std::span<const float> weights, NodeId id,
                      std::span<float> weight_gradients);
  std::vector<ConstMatrix> ValuesOf(std::span<const NodeId> nodes) const;
  // The place for a gradient of a node: its own at first, then memory beside it.
  Matrix BeginGradient(NodeId id);
  // Adds the memory beside it to the node's own gradient, where BeginGradient gave it.
  void EndGradient(NodeId id, ConstMatrix gradient);

  struct NodeMemory {
    std::vector<float> value, gradient, beside, gate_weights;
    ConstMatrix view;
    Matrix gradient_view;
    bool has_gradient = false;
  };

  const LayerGraph* const graph_;
  const uint32_t samples_max_;
  uint32_t samples_ = 0;
  std::vector<NodeMemory> memory_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_GRAPH_RUN_H_
