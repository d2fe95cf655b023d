#include "train/models/graph_run.h"

#include <algorithm>

#include "base/check.h"
#include "train/dense/activation.h"
#include "train/dense/fm.h"
#include "train/dense/interaction.h"
#include "train/dense/linear.h"
#include "train/dense/softmax_gate.h"

namespace embank {
namespace {

bool IsInput(const GraphNode& node) {
  return node.kind == NodeKind::kDense || node.kind == NodeKind::kFeature;
}

void Zero(Matrix matrix) {
  for (uint32_t i = 0; i < matrix.rows; ++i) std::ranges::fill(matrix.Row(i), 0.0f);
}

void Copy(ConstMatrix from, Matrix to) {
  EMBANK_CHECK(from.HasShapeOf(to));
  for (uint32_t i = 0; i < from.rows; ++i) std::ranges::copy(from.Row(i), to.Row(i).begin());
}

void AddTo(ConstMatrix from, Matrix to) {
  EMBANK_CHECK(from.HasShapeOf(to));
  for (uint32_t i = 0; i < from.rows; ++i) {
    const float* const x = from.Row(i).data();
    float* const sum = to.Row(i).data();
    for (uint32_t j = 0; j < from.columns; ++j) sum[j] += x[j];
  }
}

}  // namespace

GraphRun::GraphRun(const LayerGraph* graph, uint32_t samples_max)
    : graph_(graph), samples_max_(samples_max), memory_(graph->nodes().size()) {
  std::vector<uint32_t> uses(memory_.size());
  for (NodeId id = 0; id < memory_.size(); ++id) {
    const GraphNode& node = graph->nodes()[id];
    for (const NodeId input : node.inputs) ++uses[input];
    const uint64_t floats = uint64_t{samples_max} * node.columns;
    if (!IsInput(node)) memory_[id].value.resize(floats);
    if (!IsInput(node) && id + 1 < memory_.size()) memory_[id].gradient.resize(floats);
    if (node.kind == NodeKind::kGate) {
      memory_[id].gate_weights.resize(uint64_t{samples_max} * (node.inputs.size() - 1));
    }
  }
  for (NodeId id = 0; id < memory_.size(); ++id) {
    if (uses[id] > 1) {
      memory_[id].beside.resize(uint64_t{samples_max} * graph->nodes()[id].columns);
    }
  }
}

ConstMatrix GraphRun::Forward(const SliceInput& input, std::span<const float> weights) {
  EMBANK_CHECK(weights.size() == graph_->parameters());
  EMBANK_CHECK(input.features.size() == graph_->inputs().feature_dims.size());
  samples_ = input.features.empty() ? input.dense.rows : input.features[0].rows;
  EMBANK_CHECK(samples_ <= samples_max_ && !memory_.empty());
  for (NodeId id = 0; id < memory_.size(); ++id) {
    ComputeNode(graph_->nodes()[id], input, weights, id);
  }
  return memory_.back().view;
}

std::vector<ConstMatrix> GraphRun::ValuesOf(std::span<const NodeId> nodes) const {
  std::vector<ConstMatrix> values;
  for (const NodeId node : nodes) values.push_back(memory_[node].view);
  return values;
}

void GraphRun::ComputeNode(const GraphNode& node, const SliceInput& input,
                           std::span<const float> weights, NodeId id) {
  NodeMemory& memory = memory_[id];
  if (IsInput(node)) {
    memory.view = node.kind == NodeKind::kDense ? input.dense : input.features[node.feature];
    EMBANK_CHECK(memory.view.rows == samples_ && memory.view.columns == node.columns);
    return;
  }
  const Matrix value(memory.value.data(), samples_, node.columns);
  memory.view = value;
  const std::vector<ConstMatrix> inputs = ValuesOf(node.inputs);
  switch (node.kind) {
    case NodeKind::kLinear: {
      const ConstMatrix matrix(weights.data() + node.first_parameter, node.columns,
                               inputs[0].columns);
      const uint64_t bias = node.first_parameter + uint64_t{node.columns} * inputs[0].columns;
      LinearForward(inputs[0], matrix, weights.subspan(bias, node.columns), value);
      if (node.has_relu) ReluForward(value);
      return;
    }
    case NodeKind::kConcat: {
      uint32_t column = 0;
      for (const ConstMatrix& part : inputs) {
        Copy(part, value.ColumnsFrom(column, column + part.columns));
        column += part.columns;
      }
      return;
    }
    case NodeKind::kSum:
      Copy(inputs[0], value);
      for (size_t i = 1; i < inputs.size(); ++i) AddTo(inputs[i], value);
      return;
    case NodeKind::kDotInteraction:
      return DotInteractionForward(inputs, value);
    case NodeKind::kFm:
      return FmForward(inputs, value);
    default: {
      const std::span<const ConstMatrix> experts = std::span(inputs).subspan(1);
      return SoftmaxGateForward(inputs[0], experts,
                                {memory.gate_weights.data(), samples_, inputs[0].columns}, value);
    }
  }
}

void GraphRun::Backward(const SliceInput& input, std::span<const float> weights,
                        Matrix output_gradient, const Gradients& gradients,
                        const WeightsDone& done) {
  EMBANK_CHECK(gradients.weights.size() == graph_->parameters());
  EMBANK_CHECK(gradients.features.size() == input.features.size());
  EMBANK_CHECK(output_gradient.HasShapeOf(memory_.back().view));
  for (NodeId id = 0; id < memory_.size(); ++id) {
    const GraphNode& node = graph_->nodes()[id];
    memory_[id].has_gradient = false;
    memory_[id].gradient_view = node.kind == NodeKind::kFeature
                                    ? gradients.features[node.feature]
                                    : Matrix(memory_[id].gradient.data(), samples_, node.columns);
  }
  memory_.back().gradient_view = output_gradient;
  memory_.back().has_gradient = true;
  std::vector<bool> has_gradient(gradients.features.size());
  for (NodeId id = static_cast<NodeId>(memory_.size()); id-- > 0;) {
    const GraphNode& node = graph_->nodes()[id];
    if (node.needs_gradient && memory_[id].has_gradient) {
      if (node.kind == NodeKind::kFeature) has_gradient[node.feature] = true;
      if (!IsInput(node)) BackwardNode(node, weights, id, gradients.weights);
    } else {
      // No output follows from it, or nothing before it needs a gradient.
      std::ranges::fill(gradients.weights.subspan(node.first_parameter, node.parameters), 0.0f);
    }
    if (done && node.parameters > 0) done(node.first_parameter);
  }
  for (size_t i = 0; i < has_gradient.size(); ++i) {
    if (!has_gradient[i]) Zero(gradients.features[i]);
  }
}

Matrix GraphRun::BeginGradient(NodeId id) {
  NodeMemory& memory = memory_[id];
  if (!memory.has_gradient) return memory.gradient_view;
  return {memory.beside.data(), samples_, graph_->nodes()[id].columns};
}

void GraphRun::EndGradient(NodeId id, ConstMatrix gradient) {
  NodeMemory& memory = memory_[id];
  if (memory.has_gradient) AddTo(gradient, memory.gradient_view);
  memory.has_gradient = true;
}

void GraphRun::BackwardLinear(const GraphNode& node, std::span<const float> weights, NodeId id,
                              std::span<float> weight_gradients) {
  const NodeId input = node.inputs[0];
  const ConstMatrix value = memory_[input].view;
  const uint64_t first = node.first_parameter;
  const uint64_t bias = first + uint64_t{node.columns} * value.columns;
  const Matrix gradient = memory_[id].gradient_view;
  if (node.has_relu) ReluBackward(memory_[id].view, gradient);
  const bool goes_on = graph_->nodes()[input].needs_gradient;
  const Matrix input_gradient = goes_on ? BeginGradient(input) : Matrix();
  LinearBackward(value, {weights.data() + first, node.columns, value.columns}, gradient,
                 {{weight_gradients.data() + first, node.columns, value.columns},
                  weight_gradients.subspan(bias, node.columns),
                  input_gradient});
  if (goes_on) EndGradient(input, input_gradient);
}

void GraphRun::BackwardNode(const GraphNode& node, std::span<const float> weights, NodeId id,
                            std::span<float> weight_gradients) {
  if (node.kind == NodeKind::kLinear) return BackwardLinear(node, weights, id, weight_gradients);
  const Matrix gradient = memory_[id].gradient_view;
  const std::vector<ConstMatrix> inputs = ValuesOf(node.inputs);
  // An input without a gradient, the dense features, gets one that nobody reads.
  std::vector<std::vector<float>> unread(node.inputs.size());
  std::vector<Matrix> targets;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (graph_->nodes()[node.inputs[i]].needs_gradient) {
      targets.push_back(BeginGradient(node.inputs[i]));
    } else {
      unread[i].resize(uint64_t{samples_} * inputs[i].columns);
      targets.emplace_back(unread[i].data(), samples_, inputs[i].columns);
    }
  }
  if (node.kind == NodeKind::kConcat) {
    uint32_t column = 0;
    for (const Matrix& target : targets) {
      Copy(gradient.ColumnsFrom(column, column + target.columns), target);
      column += target.columns;
    }
  } else if (node.kind == NodeKind::kSum) {
    for (const Matrix& target : targets) Copy(gradient, target);
  } else if (node.kind == NodeKind::kDotInteraction) {
    DotInteractionBackward(inputs, gradient, targets);
  } else if (node.kind == NodeKind::kFm) {
    FmBackward(inputs, gradient, targets);
  } else {
    EMBANK_CHECK(node.kind == NodeKind::kGate);
    for (const Matrix& target : std::span(targets).subspan(1)) Zero(target);
    SoftmaxGateBackward({memory_[id].gate_weights.data(), samples_, inputs[0].columns},
                        std::span(inputs).subspan(1), gradient,
                        {targets[0], std::span(targets).subspan(1)});
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (graph_->nodes()[node.inputs[i]].needs_gradient) EndGradient(node.inputs[i], targets[i]);
  }
}

}  // namespace embank
