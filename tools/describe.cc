// embank-train describe: a trained model as JSON, for programs that compute it elsewhere.
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exact_text.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/inspect/json_text.h"
#include "store/table/options.h"
#include "tools/model_command.h"
#include "tools/trained_model.h"
#include "train/dense/optimizer.h"
#include "train/dense_rows.h"
#include "train/rate_schedule.h"

namespace embank {
namespace {

std::string TableJson(const FeatureTable& table, const ModelText& text) {
  return StrCat("{\"table\": ", JsonString(table.name),
                ", \"id_feature\": ", JsonString(text.columns.ids[table.column]),
                ", \"dim\": ", table.dim, "}");
}

std::string NodeJson(const GraphNode& node) {
  std::string json = StrCat("{\"kind\": \"", NameOf(node.kind), "\", \"width\": ", node.columns);
  if (node.kind == NodeKind::kFeature) StrAppend(&json, ", \"feature\": ", node.feature);
  if (!node.inputs.empty()) {
    const auto number = [](NodeId input) { return StrCat(input); };
    StrAppend(&json, ", \"inputs\": ", JsonArray(node.inputs, number));
  }
  if (node.kind == NodeKind::kLinear) {
    StrAppend(&json, ", \"relu\": ", node.has_relu ? "true" : "false",
              ", \"first_parameter\": ", node.first_parameter,
              ", \"parameters\": ", node.parameters);
  }
  return json + "}";
}

std::string OptimizerJson(Optimizer optimizer, const UpdateRule& rule) {
  constexpr std::pair<const char*, float UpdateRule::*> kNumbers[] = {
      {"learning_rate", &UpdateRule::learning_rate},
      {"beta1", &UpdateRule::beta1},
      {"beta2", &UpdateRule::beta2},
      {"epsilon", &UpdateRule::epsilon},
      {"weight_decay", &UpdateRule::weight_decay},
      {"decoupled_weight_decay", &UpdateRule::decoupled_weight_decay},
      {"ftrl_l1", &UpdateRule::ftrl_l1},
      {"ftrl_l2", &UpdateRule::ftrl_l2},
      {"max_gradient_norm", &UpdateRule::max_gradient_norm},
      {"max_gradient_value", &UpdateRule::max_gradient_value},
      {"initial_accumulator", &UpdateRule::initial_accumulator}};
  std::string json = StrCat("\"optimizer\": \"", NameOf(optimizer), "\"");
  for (const auto& [name, number] : kNumbers) {
    StrAppend(&json, ", \"", name, "\": ", ExactText(rule.*number));
  }
  return json;
}

std::string ScheduleJson(const RateSchedule& schedule) {
  return StrCat("{\"curve\": \"", NameOf(schedule.curve),
                "\", \"warmup_steps\": ", schedule.warmup_steps, ", \"steps\": ", schedule.steps,
                ", \"factor\": ", ExactText(schedule.factor), "}");
}

// A line for each part, so that a person can read it, too.
std::string ModelJson(const ModelText& text, const LayerGraph& graph) {
  const TrainerOptions& options = text.options;
  const ClickColumns& columns = text.columns;
  std::string json =
      StrCat("{\"model\": ", JsonString(options.model.name), ",\n\"steps\": ", text.steps,
             ",\n\"batch\": ", options.batch, ",\n\"slices\": ", options.slices,
             ",\n\"seed\": ", options.seed, ",\n\"data\": ", JsonString(TextOf(columns.data)),
             ",\n\"format\": ", JsonString(columns.format),
             ",\n\"dense_features\": ", JsonStrings(columns.dense),
             ",\n\"id_features\": ", JsonStrings(columns.ids), ",\n\"features\": [");
  const char* comma = "\n";
  for (const FeatureTable& table : TablesOf(options, columns)) {
    StrAppend(&json, comma, TableJson(table, text));
    comma = ",\n";
  }
  StrAppend(&json, "],\n\"nodes\": [");
  comma = "\n";
  for (const GraphNode& node : graph.nodes()) {
    StrAppend(&json, comma, NodeJson(node));
    comma = ",\n";
  }
  StrAppend(&json, "],\n\"schedule\": ", ScheduleJson(options.schedule), ",\n\"rows\": {",
            OptimizerJson(options.row.optimizer, options.row.rule),
            ", \"first_values_below\": ", ExactText(options.row_range), "},\n",
            "\"dense_parameters\": {\"table\": \"", DenseRows::kTable,
            "\", \"floats_of_row\": ", DenseRows::kDim, ", \"parameters\": ", graph.parameters(),
            ", \"state_floats\": ", DenseStateFloats(options.dense.optimizer, graph.parameters()),
            ", ", OptimizerJson(options.dense.optimizer, options.dense.rule), "}}\n");
  return json;
}

}  // namespace

CLI::App* AddDescribe(CLI::App* app, ModelCommand* command) {
  CLI::App* const use =
      app->add_subcommand("describe", "Print a trained model as JSON: features, layers, tables");
  use->add_option("--path", command->log.trainer.store.path, "directory of the model")->required();
  return use;
}

Status RunDescribe(const ModelCommand& command) {
  const std::string& path = command.log.trainer.store.path;
  EMBANK_ASSIGN_OR_RETURN(const TrainedModel model, ReadTrainedModel(path));
  const ModelText& text = model.text;
  EMBANK_ASSIGN_OR_RETURN(const LayerGraph graph, MakeModel(text.options, text.columns));
  EMBANK_RETURN_IF_ERROR(CheckSameModel(text, DescribeModel(text.options, text.columns, graph)));
  std::fputs(ModelJson(text, graph).c_str(), stdout);
  return OkStatus();
}

}  // namespace embank
