#include "bench/training_section.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/str_cat.h"
#include "bench/report_parts.h"

namespace embank {
namespace {

constexpr const char* kTiers[] = {"hbm", "dram", "pmem", "ssd"};
constexpr const char* kTierNames[] = {"HBM", "DRAM", "PMem", "SSD"};

std::string Fraction(double value) { return absl::StrFormat("%.4f", value); }

// A training without `--eval` has no figures of samples that it had not seen.
std::string Verdict(const nlohmann::json& figures) {
  const std::string samples = Grouped(figures.at("samples").get<uint64_t>());
  if (!figures.contains("eval_auc")) {
    return StrCat("A model has learned from ", samples, " samples; the AUC of each sample before ",
                  "its step is ", Fraction(figures.at("auc")), ".");
  }
  std::string verdict =
      StrCat("A model has learned from ", samples, " samples; its AUC of samples ",
             "that it had not seen is ", Fraction(figures.at("eval_auc")));
  if (figures.contains("best_auc")) {
    StrAppend(&verdict, ", where the hidden model that drew the labels has ",
              Fraction(figures.at("best_auc")));
  }
  return verdict + ".";
}

HtmlTable TierTable(const nlohmann::json& figures) {
  HtmlTable table;
  table.title = "Rows";
  table.columns = {"tier", "rows at the end", "lookups answered"};
  for (size_t i = 0; i < std::size(kTiers); ++i) {
    table.rows.push_back(
        {kTierNames[i], Grouped(figures.at("rows").at(kTiers[i]).get<uint64_t>()),
         absl::StrFormat("%.1f %%", 100.0 * figures.at("hit_ratio").at(kTiers[i]).get<double>())});
  }
  table.rows.push_back(
      {"made", "",
       absl::StrFormat("%.1f %%", 100.0 * figures.at("hit_ratio").at("created").get<double>())});
  table.legend = "lookups answered: of distinct ids of batches, by the tier that had the row.";
  return table;
}

HtmlTable FigureTable(const nlohmann::json& figures) {
  HtmlTable table;
  table.title = "Training";
  table.columns = {"figure", "value"};
  table.rows = {{"model", figures.at("model").get<std::string>()},
                {"steps", Grouped(figures.at("steps").get<uint64_t>())},
                {"samples per second", GroupedRounded(figures.at("samples_per_second"))},
                {"logloss of each sample before its step", Fraction(figures.at("logloss"))},
                {"AUC of them", Fraction(figures.at("auc"))}};
  for (const auto& [name, title] :
       {std::pair("lookup", "seconds of lookups"), std::pair("dense", "seconds of the dense part"),
        std::pair("gradients", "seconds of gradients and steps of rows"),
        std::pair("all", "seconds in all")}) {
    table.rows.push_back(
        {title, absl::StrFormat("%.2f", figures.at("seconds").at(name).get<double>())});
  }
  return table;
}

}  // namespace

StatusOr<HtmlSection> TrainingSection(const Machine& machine, const std::string& json_path,
                                      const RunOrigin& origin) {
  std::ifstream file(json_path);
  if (!file) return InvalidArgumentError(StrCat("--json: ", json_path, " cannot be read"));
  HtmlSection section;
  section.title = "Training: a click model";
  section.paragraphs = {
      "embank-train reads a log of clicks, looks up the rows of its ids in a store, computes the "
      "model, and steps dense parameters and rows."};
  section.facts = OriginFacts(machine, origin);
  try {
    const nlohmann::json figures = nlohmann::json::parse(file);
    section.verdict = Verdict(figures);
    section.tables = {TierTable(figures), FigureTable(figures)};
  } catch (const nlohmann::json::exception& error) {
    return InvalidArgumentError(
        StrCat("--json: ", json_path, " has no figures of embank-train: ", error.what()));
  }
  return section;
}

}  // namespace embank
