// A model as a graph of layers: each node is a matrix with a row for each sample, made from nodes
// before it. The last node has the logits. A model is a function that adds nodes to a graph.
#ifndef EMBANK_TRAIN_MODELS_LAYER_GRAPH_H_
#define EMBANK_TRAIN_MODELS_LAYER_GRAPH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace embank {

// The number of a node in its graph.
using NodeId = uint32_t;

// The matrices that a model is given: dense features, and a vector of each id feature, which a
// lookup made.
struct ModelInputs {
  uint32_t dense = 0;
  std::vector<uint32_t> feature_dims;
};

enum class NodeKind { kDense, kFeature, kLinear, kConcat, kSum, kDotInteraction, kFm, kGate };

// The word for a kind in texts: "linear". Thread-safe.
const char* NameOf(NodeKind kind);

struct GraphNode {
  NodeKind kind;
  uint32_t columns;
  std::vector<NodeId> inputs = {};
  uint64_t first_parameter = 0;  // linear: weights, then biases
  uint64_t parameters = 0;       // linear: the number of both
  uint32_t feature = 0;          // feature: its number
  bool has_relu = false;         // linear
  bool needs_gradient = true;    // an id feature is before it, or a parameter
};

// Built by one thread, then constant.
class LayerGraph {
 public:
  explicit LayerGraph(ModelInputs inputs);

  // Returns the node of all dense features, or of one id feature, or those of all of them.
  NodeId Dense();
  NodeId Feature(uint32_t feature);
  std::vector<NodeId> Features();
  // Adds a linear layer. ReLU is a part of it, if it has one.
  NodeId Linear(NodeId input, uint32_t outputs);
  NodeId LinearRelu(NodeId input, uint32_t outputs);
  // Adds linear layers with ReLU of these widths, one behind the other.
  NodeId Layers(NodeId input, std::span<const uint32_t> widths);
  // Puts the columns of nodes beside each other.
  NodeId Concat(std::vector<NodeId> inputs);
  // Adds nodes of equal width, value by value.
  NodeId Sum(std::vector<NodeId> inputs);
  // Adds an interaction of nodes of equal width (train/dense/interaction.h, fm.h).
  NodeId DotInteraction(std::vector<NodeId> inputs);
  NodeId Fm(std::vector<NodeId> inputs);
  // Adds a gate: `logits` has a column for each expert.
  NodeId Gate(NodeId logits, const std::vector<NodeId>& experts);

  const ModelInputs& inputs() const { return inputs_; }
  std::span<const GraphNode> nodes() const { return nodes_; }
  // Returns the width of a node.
  uint32_t ColumnsOf(NodeId node) const;
  // The number of floats of dense parameters.
  uint64_t parameters() const { return parameters_; }

  // Draws the first weights. Equal seeds give equal bits.
  void Initialize(uint64_t seed, std::span<float> weights) const;

 private:
  NodeId Add(GraphNode node);
  NodeId AddLinear(NodeId input, uint32_t outputs, bool has_relu);
  void CheckWidths(std::span<const NodeId> nodes) const;

  const ModelInputs inputs_;
  std::vector<GraphNode> nodes_;
  uint64_t parameters_ = 0;
};

// Returns a line for each node: all that the dense parameters of a graph depend on.
std::string TextOf(const LayerGraph& graph);

}  // namespace embank

#endif  // EMBANK_TRAIN_MODELS_LAYER_GRAPH_H_
