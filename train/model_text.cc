#include "train/model_text.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "base/exact_text.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/table/options.h"
#include "tiers/row/update_rule.h"

namespace embank {
namespace {

constexpr std::string_view kHead = "embank-train ";
constexpr uint32_t kVersion = 2;

// A number of a rule. A table changes all of them but the one that new rows begin with.
struct RuleNumber {
  const char* name;
  float UpdateRule::*number;
  bool may_change = true;
};
constexpr RuleNumber kRuleNumbers[] = {
    {"learning rate", &UpdateRule::learning_rate},
    {"beta1", &UpdateRule::beta1},
    {"beta2", &UpdateRule::beta2},
    {"epsilon", &UpdateRule::epsilon},
    {"weight decay", &UpdateRule::weight_decay},
    {"decoupled weight decay", &UpdateRule::decoupled_weight_decay},
    {"ftrl l1", &UpdateRule::ftrl_l1},
    {"ftrl l2", &UpdateRule::ftrl_l2},
    {"max gradient norm", &UpdateRule::max_gradient_norm},
    {"max gradient value", &UpdateRule::max_gradient_value},
    {"initial accumulator", &UpdateRule::initial_accumulator, /*may_change=*/false}};

constexpr Optimizer kOptimizers[] = {Optimizer::kNone,    Optimizer::kSgd,
                                     Optimizer::kAdagrad, Optimizer::kRowwiseAdagrad,
                                     Optimizer::kAdam,    Optimizer::kFtrl};

constexpr std::string_view kFileHead = "file head ";
constexpr std::string_view kOrder = "order";
constexpr std::string_view kOpenLine = "open line";
constexpr std::string_view kRank = "rank";
constexpr std::string_view kOfRanks = " of ";
constexpr std::string_view kJob = "job";
constexpr std::string_view kStart = "start";
constexpr std::string_view kReplicated = "replicated";
constexpr std::string_view kPooled = "pooled";
constexpr std::string_view kWireType = "wire type";
constexpr std::string_view kHalves = "f16";
constexpr std::string_view kStaleness = "staleness";
constexpr std::string_view kDeterministic = "deterministic";
constexpr std::string_view kDropUpdates = "drop updates";
constexpr std::string_view kSecondRules = "rules 2\n";

constexpr RateCurve kCurves[] = {RateCurve::kConstant, RateCurve::kCosine, RateCurve::kStep};

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

std::string_view WithoutEnd(std::string_view lines) {
  if (lines.ends_with('\n')) lines.remove_suffix(1);
  return lines;
}

void AppendNumbers(const char* of, const UpdateRule& rule, bool may_change, std::string* text) {
  for (const RuleNumber& number : kRuleNumbers) {
    if (number.may_change != may_change) continue;
    StrAppend(text, of, " ", number.name, " ", ExactText(rule.*number.number), "\n");
  }
}

std::string LinesOf(const RateSchedule& schedule) {
  return StrCat("rates ", NameOf(schedule.curve), "\nrate warm-up ", schedule.warmup_steps,
                "\nrate steps ", schedule.steps, "\nrate factor ", ExactText(schedule.factor),
                "\n");
}

std::string SettingLines(const ModelText& text) {
  std::string lines = StrCat("batch ", text.options.batch, "\n");
  const DataName& data = text.columns.data;
  if (!data.words.empty()) StrAppend(&lines, "data ", data.words, "\n");
  if (data.shuffle > 0) StrAppend(&lines, "shuffle ", data.shuffle, "\n");
  for (const std::string& name : text.options.ranks.replicated) {
    StrAppend(&lines, kReplicated, " ", name, "\n");
  }
  for (const std::string& name : text.options.ranks.pooled) {
    StrAppend(&lines, kPooled, " ", name, "\n");
  }
  if (text.options.ranks.wire == ValueType::kF16) {
    StrAppend(&lines, kWireType, " ", kHalves, "\n");
  }
  if (text.options.hybrid.staleness > 0) {
    StrAppend(&lines, kStaleness, " ", text.options.hybrid.staleness, "\n");
  }
  if (text.options.hybrid.deterministic) {
    StrAppend(&lines, kDeterministic, " 1\n");
  }
  if (text.options.hybrid.drop_updates > 0.0) {
    StrAppend(&lines, kDropUpdates, " ", ExactText(text.options.hybrid.drop_updates), "\n");
  }
  lines += LinesOf(text.options.schedule);
  AppendNumbers("row", text.options.row.rule, /*may_change=*/true, &lines);
  AppendNumbers("dense", text.options.dense.rule, /*may_change=*/true, &lines);
  return lines;
}

std::string LinesOf(const DataPosition& position) {
  std::string lines = StrCat("position ", position.place, "\n");
  if (!position.order.empty()) {
    StrAppend(&lines, kOrder, " ", std::string_view(position.order), "\n");
  }
  if (position.open_line_bytes > 0) {
    StrAppend(&lines, kOpenLine, " ", position.open_line_bytes, "\n");
  }
  if (position.window_samples == 0) return lines;
  return StrCat(lines, "window begin ", position.window_begin, "\nwindow samples ",
                position.window_samples, "\n");
}

std::string LinesOf(const RankOfJob& rank) {
  if (rank.ranks == 1) return "";
  return StrCat(kRank, " ", rank.rank, kOfRanks, rank.ranks, "\n", kJob, " ", rank.job, "\n",
                kStart, " ", rank.start, "\n");
}

std::string HeadLines(const DataName& data) {
  std::string lines;
  for (const FileHead& head : data.files) {
    const std::string size = head.file_bytes > 0 ? StrCat(" ", head.file_bytes) : std::string();
    StrAppend(&lines, kFileHead, head.bytes, " ", head.crc32c, size, "\n");
  }
  return lines;
}

// Without the format of the data.
std::string ModelLines(const ModelText& text) {
  const TrainerOptions& options = text.options;
  std::string lines =
      StrCat("model ", options.model.name, "\nslices ", options.slices, "\nseed ", options.seed,
             "\nfull tables ", options.on_full == OnFull::kForget ? "forget" : "refuse",
             "\nrow optimizer ", NameOf(options.row.optimizer), "\n");
  AppendNumbers("row", options.row.rule, /*may_change=*/false, &lines);
  StrAppend(&lines, "row range ", ExactText(options.row_range), "\ndense optimizer ",
            NameOf(options.dense.optimizer), "\n");
  AppendNumbers("dense", options.dense.rule, /*may_change=*/false, &lines);
  const ClickColumns& columns = text.columns;
  StrAppend(&lines, "dense features ", columns.dense.size(), "\nid features ", columns.ids.size(),
            "\n");
  for (const std::string& name : columns.dense) StrAppend(&lines, "dense feature ", name, "\n");
  const std::vector<FeatureTable> tables = TablesOf(options, columns);
  for (size_t i = 0; i < columns.ids.size(); ++i) {
    StrAppend(&lines, "id feature ", columns.ids[i], " dim ", tables[i].dim, "\n");
  }
  for (size_t i = 0; i < columns.tables.size(); ++i) {
    if (columns.tables[i] == columns.ids[i]) continue;
    StrAppend(&lines, "id table ", i, " ", columns.tables[i], "\n");
  }
  return lines + text.graph;
}

// The option of embank-train that gives a line of the model.
std::string_view OptionOf(std::string_view line) {
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
      {"model ", "--model"},
      {"slices ", "--slices"},
      {"seed ", "--seed"},
      {"full tables ", "--forget"},
      {"row optimizer ", "--row-optimizer"},
      {"dense optimizer ", "--dense-optimizer"},
      {"id feature ", "--dim or --columns"},
      {"id features ", "--columns"},
      {"id table ", "--columns"},
      {"dense feature", "--columns"}};
  const auto option =
      std::ranges::find_if(kOptions, [&](const auto& one) { return line.starts_with(one.first); });
  return option == std::end(kOptions) ? "its option" : option->second;
}

// `option` gives all lines; empty: each has an option of its own.
Status CheckSameLines(std::string_view of_checkpoint, std::string_view of_trainer,
                      std::string_view option) {
  while (!of_checkpoint.empty() || !of_trainer.empty()) {
    const std::string_view theirs = TakeLine(&of_checkpoint);
    const std::string_view ours = TakeLine(&of_trainer);
    if (theirs == ours) continue;
    return FailedPreconditionError(StrCat(
        "the checkpoint is of another model: it has \"", theirs, "\", and this one \"", ours,
        "\"; leave ", option.empty() ? OptionOf(theirs) : option, " out, or give another --path"));
  }
  return OkStatus();
}

// A new rate would scale all weights of FTRL, which follow from it and from sums of gradients.
Status CheckSameRate(const RuleOptions& of_checkpoint, const RuleOptions& of_trainer) {
  const float theirs = of_checkpoint.rule.learning_rate;
  const float ours = of_trainer.rule.learning_rate;
  if (of_trainer.optimizer != Optimizer::kFtrl || theirs == ours) return OkStatus();
  return FailedPreconditionError(
      StrCat("--row-rate is ", ExactText(ours), ", and the checkpoint has rows with FTRL at ",
             ExactText(theirs), ", which have one rate for all steps: leave it out"));
}

Status MissingLine(std::string_view words) {
  return DataLossError(StrCat("the checkpoint is of no trainer: it has no line \"", words, "\""));
}

template <typename Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

// Lines of words and a value, which are taken in any order.
class Values {
 public:
  // Takes the lines of a text up to the one with these words.
  Values(std::string_view* text, std::string_view last) {
    while (!text->empty()) {
      lines_.push_back(TakeLine(text));
      if (IsOf(lines_.back(), last)) return;
    }
  }

  std::optional<std::string_view> Take(std::string_view words) {
    const auto line =
        std::ranges::find_if(lines_, [&](std::string_view one) { return IsOf(one, words); });
    if (line == lines_.end()) return std::nullopt;
    const std::string_view value = line->substr(words.size() + 1);
    lines_.erase(line);
    return value;
  }

  bool Has(std::string_view words) const {
    return std::ranges::any_of(lines_, [&](std::string_view one) { return IsOf(one, words); });
  }

  template <typename Number>
  Status TakeNumber(std::string_view words, Number* number) {
    const std::optional<std::string_view> value = Take(words);
    const std::optional<Number> read = value ? NumberIn<Number>(*value) : std::nullopt;
    if (!read) return MissingLine(words);
    *number = *read;
    return OkStatus();
  }

  // FAILED_PRECONDITION: a line is left.
  Status CheckAllTaken() const {
    if (lines_.empty()) return OkStatus();
    return FailedPreconditionError(
        StrCat("the checkpoint is of a newer trainer: it has the line \"", lines_[0], "\""));
  }

 private:
  static bool IsOf(std::string_view line, std::string_view words) {
    return line.starts_with(words) && line.substr(words.size()).starts_with(' ');
  }

  std::vector<std::string_view> lines_;
};

// Version 1 has the number of an optimizer in place of its name.
Status TakeOptimizer(const std::string& words, Values* values, Optimizer* optimizer) {
  const std::optional<std::string_view> value = values->Take(words);
  for (const Optimizer one : kOptimizers) {
    if (!value || (*value != NameOf(one) && *value != StrCat(static_cast<int>(one)))) continue;
    *optimizer = one;
    return OkStatus();
  }
  return MissingLine(words);
}

// A number that is not there has the value without which version 1 computed.
Status TakeRule(const std::string& of, Values* values, UpdateRule* rule) {
  for (const RuleNumber& number : kRuleNumbers) {
    const std::optional<std::string_view> value = values->Take(StrCat(of, " ", number.name));
    if (!value) continue;
    const std::optional<float> read = NumberIn<float>(*value);
    if (!read) return MissingLine(StrCat(of, " ", number.name));
    rule->*number.number = *read;
  }
  return OkStatus();
}

// Version 1 has constant rates, and no lines of a schedule.
Status TakeSchedule(Values* values, RateSchedule* schedule) {
  const std::optional<std::string_view> word = values->Take("rates");
  if (!word) return OkStatus();
  const auto curve =
      std::ranges::find_if(kCurves, [&](RateCurve one) { return *word == NameOf(one); });
  if (curve == std::end(kCurves)) return MissingLine("rates");
  schedule->curve = *curve;
  EMBANK_RETURN_IF_ERROR(values->TakeNumber("rate warm-up", &schedule->warmup_steps));
  EMBANK_RETURN_IF_ERROR(values->TakeNumber("rate steps", &schedule->steps));
  return values->TakeNumber("rate factor", &schedule->factor);
}

Status TakePosition(Values* values, DataPosition* position) {
  constexpr std::string_view kBegin = "window begin";
  EMBANK_RETURN_IF_ERROR(values->TakeNumber("position", &position->place));
  if (const auto order = values->Take(kOrder)) {
    if (order->size() > OrderText::kCharactersMax) return MissingLine(kOrder);
    position->order = *order;
  }
  if (values->Has(kOpenLine)) {
    EMBANK_RETURN_IF_ERROR(values->TakeNumber(kOpenLine, &position->open_line_bytes));
  }
  const std::optional<std::string_view> begin = values->Take(kBegin);
  if (!begin) return OkStatus();
  const std::optional<uint64_t> number = NumberIn<uint64_t>(*begin);
  if (!number) return MissingLine(kBegin);
  position->window_begin = *number;
  return values->TakeNumber("window samples", &position->window_samples);
}

Status TakeRank(Values* values, RankOfJob* rank) {
  const std::optional<std::string_view> words = values->Take(kRank);
  if (!words) return OkStatus();
  const size_t end = words->find(kOfRanks);
  if (end == std::string_view::npos) return MissingLine(kRank);
  const std::optional<uint32_t> number = NumberIn<uint32_t>(words->substr(0, end));
  const std::optional<uint32_t> ranks = NumberIn<uint32_t>(words->substr(end + kOfRanks.size()));
  if (!number || !ranks || *number >= *ranks) return MissingLine(kRank);
  rank->rank = *number;
  rank->ranks = *ranks;
  EMBANK_RETURN_IF_ERROR(values->TakeNumber(kJob, &rank->job));
  return values->TakeNumber(kStart, &rank->start);
}

Status TakeRanks(Values* values, RankOptions* ranks) {
  while (values->Has(kReplicated)) ranks->replicated.emplace_back(*values->Take(kReplicated));
  while (values->Has(kPooled)) ranks->pooled.emplace_back(*values->Take(kPooled));
  const std::string_view wire = values->Take(kWireType).value_or("f32");
  if (wire != "f32" && wire != kHalves) return MissingLine(kWireType);
  ranks->wire = wire == kHalves ? ValueType::kF16 : ValueType::kF32;
  return OkStatus();
}

Status TakeOptions(Values* values, TrainerOptions* options) {
  const std::optional<std::string_view> model = values->Take("model");
  if (!model) return MissingLine("model");
  options->model.name = *model;
  EMBANK_RETURN_IF_ERROR(values->TakeNumber("batch", &options->batch));
  EMBANK_RETURN_IF_ERROR(values->TakeNumber("slices", &options->slices));
  EMBANK_RETURN_IF_ERROR(values->TakeNumber("seed", &options->seed));
  EMBANK_RETURN_IF_ERROR(TakeSchedule(values, &options->schedule));
  EMBANK_RETURN_IF_ERROR(TakeRanks(values, &options->ranks));
  if (values->Has(kStaleness)) {
    EMBANK_RETURN_IF_ERROR(values->TakeNumber(kStaleness, &options->hybrid.staleness));
  }
  if (const auto word = values->Take(kDeterministic)) {
    if (*word != "1") return MissingLine(kDeterministic);
    options->hybrid.deterministic = true;
  }
  if (values->Has(kDropUpdates)) {
    EMBANK_RETURN_IF_ERROR(values->TakeNumber(kDropUpdates, &options->hybrid.drop_updates));
  }
  // Version 1 has tables that refuse.
  const std::string_view on_full = values->Take("full tables").value_or("refuse");
  if (on_full != "refuse" && on_full != "forget") return MissingLine("full tables");
  options->on_full = on_full == "forget" ? OnFull::kForget : OnFull::kRefuse;
  EMBANK_RETURN_IF_ERROR(TakeOptimizer("row optimizer", values, &options->row.optimizer));
  EMBANK_RETURN_IF_ERROR(TakeRule("row", values, &options->row.rule));
  EMBANK_RETURN_IF_ERROR(values->TakeNumber("row range", &options->row_range));
  EMBANK_RETURN_IF_ERROR(TakeOptimizer("dense optimizer", values, &options->dense.optimizer));
  return TakeRule("dense", values, &options->dense.rule);
}

Status TakeFeatures(std::string_view* text, uint64_t dense, uint64_t ids, ModelText* model) {
  constexpr std::string_view kDense = "dense feature ";
  constexpr std::string_view kId = "id feature ";
  constexpr std::string_view kDim = " dim ";
  constexpr std::string_view kTable = "id table ";
  for (uint64_t i = 0; i < dense; ++i) {
    const std::string_view line = TakeLine(text);
    if (!line.starts_with(kDense)) return MissingLine("dense feature");
    model->columns.dense.emplace_back(line.substr(kDense.size()));
  }
  std::vector<uint32_t> dims;
  for (uint64_t i = 0; i < ids; ++i) {
    const std::string_view line = TakeLine(text);
    const size_t end = line.rfind(kDim);
    const bool is_feature = line.starts_with(kId) && end != std::string_view::npos;
    const std::optional<uint32_t> dim =
        is_feature ? NumberIn<uint32_t>(line.substr(end + kDim.size())) : std::nullopt;
    if (!dim || end < kId.size()) return MissingLine("id feature");
    model->columns.ids.emplace_back(line.substr(kId.size(), end - kId.size()));
    dims.push_back(*dim);
  }
  while (text->starts_with(kTable)) {
    std::string_view line = TakeLine(text).substr(kTable.size());
    const size_t end = line.find(' ');
    const std::optional<uint64_t> feature = NumberIn<uint64_t>(line.substr(0, end));
    if (!feature || *feature >= ids || end == std::string_view::npos) {
      return MissingLine("id table");
    }
    if (model->columns.tables.empty()) model->columns.tables = model->columns.ids;
    model->columns.tables[*feature] = line.substr(end + 1);
  }
  const bool is_one = std::ranges::adjacent_find(dims, std::not_equal_to<>()) == dims.end();
  if (is_one && !dims.empty()) model->options.dim = dims[0];
  if (!is_one) model->options.dims = std::move(dims);
  return OkStatus();
}

// Two numbers with `between` them.
std::optional<FileHead> HeadIn(std::string_view text, std::string_view between) {
  const size_t end = text.find(between);
  if (end == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> bytes = NumberIn<uint64_t>(text.substr(0, end));
  const std::optional<uint32_t> crc32c = NumberIn<uint32_t>(text.substr(end + between.size()));
  if (!bytes || !crc32c) return std::nullopt;
  return FileHead{.bytes = *bytes, .crc32c = *crc32c};
}

Status TakeHeads(std::string_view* text, DataName* data) {
  while (text->starts_with(kFileHead)) {
    std::string_view line = TakeLine(text).substr(kFileHead.size());
    // Sizes are younger than version 2.
    std::optional<uint64_t> file_bytes = 0;
    if (const size_t end = line.rfind(' '); end != line.find(' ')) {
      file_bytes = NumberIn<uint64_t>(line.substr(end + 1));
      line = line.substr(0, end);
    }
    std::optional<FileHead> head = HeadIn(line, " ");
    if (!head || !file_bytes) return MissingLine("file head");
    head->file_bytes = *file_bytes;
    data->files.push_back(*head);
  }
  return OkStatus();
}

// Version 1 names data and format in one line, which the statements of a column file follow.
void TakeDataOfVersion1(std::string_view text, ClickColumns* columns) {
  constexpr std::string_view kWords = "data ";
  constexpr std::string_view kCriteo = ", in Criteo's format";
  constexpr std::string_view kCsv = ", with columns";
  constexpr std::string_view kLog = "a log whose first ";
  constexpr std::string_view kCrc32c = " bytes have the CRC-32C ";
  if (!text.starts_with(kWords)) return;
  text.remove_prefix(kWords.size());
  std::string_view name = TakeLine(&text);
  if (name.ends_with(kCriteo)) {
    name.remove_suffix(kCriteo.size());
    columns->format = kCriteoFormat;
  } else {
    if (name.ends_with(kCsv)) name.remove_suffix(kCsv.size());
    columns->format = WithoutEnd(text);
  }
  columns->data.words = name;
  if (!name.starts_with(kLog)) return;
  const std::optional<FileHead> head = HeadIn(name.substr(kLog.size()), kCrc32c);
  if (head) columns->data = {.words = "a log", .files = {*head}};
}

}  // namespace

std::string CriteoFormat(LogRules rules) {
  return StrCat(rules == LogRules::kFirst ? "" : kSecondRules, kCriteoFormat);
}

LogRules RulesOf(std::string_view format) {
  return format.empty() || format.starts_with(kSecondRules) ? LogRules::kSecond : LogRules::kFirst;
}

ModelText DescribeModel(const TrainerOptions& options, const ClickColumns& columns,
                        const LayerGraph& graph) {
  return {.options = options, .columns = columns, .graph = TextOf(graph)};
}

std::string WriteModelText(const ModelText& text) {
  return StrCat(kHead, kVersion, "\nsteps ", text.steps, "\n", LinesOf(text.position),
                "steps of other data ", text.other_steps, "\n", LinesOf(text.rank),
                SettingLines(text), ModelLines(text), HeadLines(text.columns.data),
                text.columns.format, "\n");
}

StatusOr<ModelText> ParseModelText(std::string_view blob) {
  std::string_view head = TakeLine(&blob);
  if (!head.starts_with(kHead)) {
    return FailedPreconditionError("the store is of no trainer: its checkpoint has another blob");
  }
  head.remove_prefix(kHead.size());
  const uint32_t version = NumberIn<uint32_t>(head).value_or(0);
  if (version != 1 && version != kVersion) {
    return FailedPreconditionError(
        StrCat("the checkpoint is of a newer trainer: its text has version ", head));
  }
  ModelText text;
  Values values(&blob, "id features");
  uint64_t dense = 0;
  uint64_t ids = 0;
  EMBANK_RETURN_IF_ERROR(values.TakeNumber("steps", &text.steps));
  EMBANK_RETURN_IF_ERROR(TakePosition(&values, &text.position));
  EMBANK_RETURN_IF_ERROR(TakeRank(&values, &text.rank));
  EMBANK_RETURN_IF_ERROR(TakeOptions(&values, &text.options));
  const std::string words(values.Take("data").value_or(""));
  if (values.Has("shuffle")) {
    EMBANK_RETURN_IF_ERROR(values.TakeNumber("shuffle", &text.columns.data.shuffle));
  }
  // Version 1 also has a dim for features that have none of their own: all of them have one.
  if (version == 1) values.Take("dim");
  if (version > 1) {
    EMBANK_RETURN_IF_ERROR(values.TakeNumber("steps of other data", &text.other_steps));
  }
  EMBANK_RETURN_IF_ERROR(values.TakeNumber("dense features", &dense));
  EMBANK_RETURN_IF_ERROR(values.TakeNumber("id features", &ids));
  EMBANK_RETURN_IF_ERROR(values.CheckAllTaken());
  EMBANK_RETURN_IF_ERROR(TakeFeatures(&blob, dense, ids, &text));
  while (blob.starts_with("node ")) StrAppend(&text.graph, TakeLine(&blob), "\n");
  if (version == 1) {
    TakeDataOfVersion1(blob, &text.columns);
    return text;
  }
  text.columns.data.words = words;
  EMBANK_RETURN_IF_ERROR(TakeHeads(&blob, &text.columns.data));
  text.columns.format = WithoutEnd(blob);
  return text;
}

Status CheckSameModel(const ModelText& of_checkpoint, const ModelText& of_trainer) {
  EMBANK_RETURN_IF_ERROR(CheckSameLines(ModelLines(of_checkpoint), ModelLines(of_trainer), ""));
  EMBANK_RETURN_IF_ERROR(CheckSameRate(of_checkpoint.options.row, of_trainer.options.row));
  const std::string_view theirs = of_checkpoint.columns.format;
  const std::string_view ours = of_trainer.columns.format;
  return theirs.empty() || ours.empty() ? OkStatus() : CheckSameLines(theirs, ours, "--columns");
}

std::vector<std::string> ChangedSettings(const ModelText& from, const ModelText& to) {
  std::vector<std::string> changes;
  const auto compare = [&](const std::string& what, const std::string& was, const std::string& is) {
    if (was != is) changes.push_back(StrCat(what, " ", was, " -> ", is));
  };
  compare("batch", StrCat(from.options.batch), StrCat(to.options.batch));
  compare("schedule of learning rates", TextOf(from.options.schedule), TextOf(to.options.schedule));
  const auto compare_rules = [&](const char* of, const UpdateRule& was, const UpdateRule& is) {
    for (const RuleNumber& number : kRuleNumbers) {
      if (!number.may_change) continue;
      compare(StrCat(number.name, " of ", of), ExactText(was.*number.number),
              ExactText(is.*number.number));
    }
  };
  const auto names = [](const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& name : all) StrAppend(&text, text.empty() ? "" : " ", name);
    return text.empty() ? "none" : text;
  };
  compare("replicated tables", names(from.options.ranks.replicated),
          names(to.options.ranks.replicated));
  compare("tables pooled at owners", names(from.options.ranks.pooled),
          names(to.options.ranks.pooled));
  const auto wire = [](const ModelText& text) {
    return std::string(text.options.ranks.wire == ValueType::kF16 ? kHalves : "f32");
  };
  compare("wire type", wire(from), wire(to));
  const auto staleness = [](const HybridOptions& hybrid) {
    return StrCat(hybrid.staleness, hybrid.deterministic ? ", deterministic" : "");
  };
  compare("staleness", staleness(from.options.hybrid), staleness(to.options.hybrid));
  compare("share of lost updates", ExactText(from.options.hybrid.drop_updates),
          ExactText(to.options.hybrid.drop_updates));
  compare_rules("rows", from.options.row.rule, to.options.row.rule);
  compare_rules("dense parameters", from.options.dense.rule, to.options.dense.rule);
  if (!BeginWith(to.columns.data, from.columns.data)) {
    compare("data", TextOf(from.columns.data), TextOf(to.columns.data));
  }
  return changes;
}

}  // namespace embank
