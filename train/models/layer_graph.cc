#include "train/models/layer_graph.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/str_cat.h"
#include "train/dense/interaction.h"
#include "train/dense/linear.h"

namespace embank {

LayerGraph::LayerGraph(ModelInputs inputs) : inputs_(std::move(inputs)) {}

NodeId LayerGraph::Add(GraphNode node) {
  const auto id = static_cast<NodeId>(nodes_.size());
  for (const NodeId input : node.inputs) EMBANK_CHECK(input < id);
  if (node.kind != NodeKind::kDense && node.kind != NodeKind::kFeature) {
    // The gradients of one node's inputs are computed at once, so that none is there twice.
    std::vector<NodeId> sorted = node.inputs;
    std::ranges::sort(sorted);
    EMBANK_CHECK(!sorted.empty() && std::ranges::adjacent_find(sorted) == sorted.end());
    node.needs_gradient =
        node.kind == NodeKind::kLinear ||
        std::ranges::any_of(sorted, [&](NodeId i) { return nodes_[i].needs_gradient; });
  }
  nodes_.push_back(std::move(node));
  return id;
}

NodeId LayerGraph::Dense() {
  EMBANK_CHECK(inputs_.dense > 0);
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].kind == NodeKind::kDense) return id;
  }
  return Add({.kind = NodeKind::kDense, .columns = inputs_.dense, .needs_gradient = false});
}

NodeId LayerGraph::Feature(uint32_t feature) {
  EMBANK_CHECK(feature < inputs_.feature_dims.size());
  // A second node of a feature would overwrite the gradient of the first.
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].kind == NodeKind::kFeature && nodes_[id].feature == feature) return id;
  }
  return Add(
      {.kind = NodeKind::kFeature, .columns = inputs_.feature_dims[feature], .feature = feature});
}

std::vector<NodeId> LayerGraph::Features() {
  std::vector<NodeId> nodes;
  for (uint32_t f = 0; f < inputs_.feature_dims.size(); ++f) nodes.push_back(Feature(f));
  return nodes;
}

NodeId LayerGraph::AddLinear(NodeId input, uint32_t outputs, bool has_relu) {
  const uint64_t first = parameters_;
  const uint64_t parameters = uint64_t{outputs} * (ColumnsOf(input) + 1);
  parameters_ += parameters;
  return Add({.kind = NodeKind::kLinear,
              .columns = outputs,
              .inputs = {input},
              .first_parameter = first,
              .parameters = parameters,
              .has_relu = has_relu});
}

NodeId LayerGraph::Linear(NodeId input, uint32_t outputs) {
  return AddLinear(input, outputs, false);
}

NodeId LayerGraph::LinearRelu(NodeId input, uint32_t outputs) {
  return AddLinear(input, outputs, true);
}

NodeId LayerGraph::Layers(NodeId input, std::span<const uint32_t> widths) {
  for (const uint32_t width : widths) input = LinearRelu(input, width);
  return input;
}

NodeId LayerGraph::Concat(std::vector<NodeId> inputs) {
  uint32_t columns = 0;
  for (const NodeId input : inputs) columns += ColumnsOf(input);
  return Add({.kind = NodeKind::kConcat, .columns = columns, .inputs = std::move(inputs)});
}

NodeId LayerGraph::Sum(std::vector<NodeId> inputs) {
  CheckWidths(inputs);
  const uint32_t columns = ColumnsOf(inputs[0]);
  return Add({.kind = NodeKind::kSum, .columns = columns, .inputs = std::move(inputs)});
}

NodeId LayerGraph::DotInteraction(std::vector<NodeId> inputs) {
  CheckWidths(inputs);
  const uint32_t columns = PairCount(static_cast<uint32_t>(inputs.size()));
  return Add({.kind = NodeKind::kDotInteraction, .columns = columns, .inputs = std::move(inputs)});
}

NodeId LayerGraph::Fm(std::vector<NodeId> inputs) {
  CheckWidths(inputs);
  return Add({.kind = NodeKind::kFm, .columns = 1, .inputs = std::move(inputs)});
}

NodeId LayerGraph::Gate(NodeId logits, const std::vector<NodeId>& experts) {
  CheckWidths(experts);
  EMBANK_CHECK(ColumnsOf(logits) == experts.size());
  std::vector<NodeId> inputs = {logits};
  inputs.insert(inputs.end(), experts.begin(), experts.end());
  const uint32_t columns = ColumnsOf(experts[0]);
  return Add({.kind = NodeKind::kGate, .columns = columns, .inputs = std::move(inputs)});
}

uint32_t LayerGraph::ColumnsOf(NodeId node) const {
  EMBANK_CHECK(node < nodes_.size());
  return nodes_[node].columns;
}

void LayerGraph::CheckWidths(std::span<const NodeId> nodes) const {
  EMBANK_CHECK(!nodes.empty());
  for (const NodeId node : nodes) EMBANK_CHECK(ColumnsOf(node) == ColumnsOf(nodes[0]));
}

void LayerGraph::Initialize(uint64_t seed, std::span<float> weights) const {
  EMBANK_CHECK(weights.size() == parameters_);
  for (const GraphNode& node : nodes_) {
    if (node.kind != NodeKind::kLinear) continue;
    const uint32_t inputs = ColumnsOf(node.inputs[0]);
    const uint64_t count = uint64_t{node.columns} * inputs;
    InitializeLinear(Mix(seed + kGoldenRatio) ^ node.first_parameter,
                     {weights.data() + node.first_parameter, node.columns, inputs},
                     weights.subspan(node.first_parameter + count, node.columns));
  }
}

const char* NameOf(NodeKind kind) {
  constexpr std::array<const char*, 8> kNames = {"dense", "feature",         "linear", "concat",
                                                 "sum",   "dot interaction", "fm",     "gate"};
  return kNames[static_cast<size_t>(kind)];
}

std::string TextOf(const LayerGraph& graph) {
  std::string text;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const GraphNode& node = graph.nodes()[id];
    StrAppend(&text, "node ", id, " ", NameOf(node.kind));
    if (node.kind == NodeKind::kFeature) StrAppend(&text, " ", node.feature);
    StrAppend(&text, node.has_relu ? " relu" : "", " width ", node.columns);
    for (const NodeId input : node.inputs) StrAppend(&text, " ", input);
    StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace embank
