#include "tools/hot_cold_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/fae/fae_file.h"
#include "train/hot/hot_table.h"
#include "train/model_text.h"

namespace embank {
namespace {

constexpr double kGigabytesMax = 1000.0;
constexpr double kMicrosecondsMax = 1e6;

// An option that a file of hot and cold batches leaves no choice for.
Status CheckAlone(const TrainCommand& command) {
  const std::pair<bool, const char*> given[] = {
      {command.data.size() > 1, "--data: a file of hot and cold batches is given alone"},
      {!command.columns.empty(),
       "--columns: the file of hot and cold batches has them; leave it "
       "out"},
      {command.shuffle > 0, "--shuffle: hot and cold batches have their order; leave it out"},
      {!command.roles.empty(), "--roles: roles read logs; leave it out, or give the log"}};
  for (const auto& [is_given, message] : given) {
    if (is_given) return InvalidArgumentError(message);
  }
  return OkStatus();
}

// The budget was for these rows.
Status CheckRows(const TrainCommand& command, const FaeHeader& header) {
  const TrainerOptions& options = command.trainer;
  const std::vector<FeatureTable> tables = TablesOf(options, header.columns);
  const auto again = [&](const char* option) {
    return StrCat("calibrate the log again with ", option, ", or leave ", option, " out");
  };
  for (size_t i = 0; i < header.dims.size(); ++i) {
    if (tables[i].dim == header.dims[i]) continue;
    return InvalidArgumentError(StrCat(
        "--dim: ", command.data[0], " was made for id feature \"", header.columns.ids[i],
        "\" of dim ", header.dims[i], ", and the model has ", tables[i].dim, ": ", again("--dim")));
  }
  if (command.row_optimizer != header.row_optimizer) {
    return InvalidArgumentError(StrCat("--row-optimizer: ", command.data[0], " was made for ",
                                       header.row_optimizer, ", and not for ",
                                       command.row_optimizer, ": ", again("--row-optimizer")));
  }
  if (HotRowBytesOf(options, header.columns) == header.row_bytes) return OkStatus();
  return InvalidArgumentError(StrCat("--model: ", command.data[0], " was made for the rows of ",
                                     header.model, ", and not for those of ", command.model, ": ",
                                     again("--model")));
}

}  // namespace

Status TakeHotColdData(TrainCommand* command) {
  const bool is_file = std::ranges::any_of(command->data, FaeFile::Is);
  if (!is_file && (command->no_bag || command->hot_only)) {
    return InvalidArgumentError(
        StrCat(command->no_bag ? "--no-bag" : "--hot-only",
               " needs --data with a file of hot and cold batches; embank-train calibrate makes "
               "one"));
  }
  if (!is_file) return OkStatus();
  EMBANK_RETURN_IF_ERROR(CheckAlone(*command));
  EMBANK_ASSIGN_OR_RETURN(command->hot_cold, FaeFile::Open(command->data[0]));
  const FaeHeader& header = command->hot_cold->header();
  command->format = header.columns.format;
  command->rules = RulesOf(command->format);
  TrainerOptions& trainer = command->trainer;
  if (trainer.dim == 0 && trainer.dims.empty()) trainer.dims = header.dims;
  if (!trainer.dims.empty() && trainer.dims.size() != header.dims.size()) {
    return InvalidArgumentError(StrCat("--path: the model has ", trainer.dims.size(),
                                       " id features, and ", command->data[0], " has ",
                                       header.dims.size()));
  }
  EMBANK_RETURN_IF_ERROR(CheckRows(*command, header));
  if (command->hot_only && command->hot_cold->samples(/*is_hot=*/true) == 0) {
    return InvalidArgumentError(StrCat("--hot-only: ", command->data[0],
                                       " has no hot input: give a larger --budget to "
                                       "embank-train calibrate"));
  }
  if (!command->no_bag) trainer.hot_ids = command->hot_cold->hot_ids();
  return OkStatus();
}

Status CheckIsLog(const char* option, std::span<const std::string> files) {
  const auto file = std::ranges::find_if(files, FaeFile::Is);
  if (file == files.end()) return OkStatus();
  return InvalidArgumentError(StrCat(option, ": ", *file,
                                     " has hot and cold batches, which only a training reads; give "
                                     "the log of which they were made"));
}

DataName NameOfHotColdData(const TrainCommand& command) {
  const std::string text = WriteFaeText(command.hot_cold->header());
  return {.words = command.hot_only ? "hot batches" : "hot and cold batches",
          .files = {HeadOf(std::as_bytes(std::span(text.data(), text.size())))}};
}

std::vector<uint32_t> HotRowBytesOf(const TrainerOptions& options, const ClickColumns& columns) {
  std::vector<uint32_t> bytes(columns.ids.size());
  for (const FeatureTable& table : TablesOf(options, columns)) {
    bytes[table.column] += static_cast<uint32_t>(HotRowBytes(table.dim, options.row.optimizer));
  }
  return bytes;
}

StatusOr<DeviceLinkModel> LinkOf(const std::string& text) {
  if (text.empty()) return DeviceLinkModel();
  double gigabytes = 0.0;
  double microseconds = 0.0;
  const char* const end = text.data() + text.size();
  const auto rate = std::from_chars(text.data(), end, gigabytes);
  bool is_read = rate.ec == std::errc() && rate.ptr != end && *rate.ptr == ',';
  if (is_read) {
    const auto latency = std::from_chars(rate.ptr + 1, end, microseconds);
    is_read = latency.ec == std::errc() && latency.ptr == end;
  }
  const bool is_rate = gigabytes > 0.0 && gigabytes <= kGigabytesMax;
  if (is_read && is_rate && microseconds >= 0.0 && microseconds <= kMicrosecondsMax) {
    return DeviceLinkModel{.bytes_per_second = gigabytes * 1e9,
                           .latency_ns = static_cast<uint64_t>(std::lround(microseconds * 1e3))};
  }
  return InvalidArgumentError(StrCat("--emulate-link is \"", text,
                                     "\"; it must be GB/S,US as in "
                                     "12,10: above 0 to ",
                                     kGigabytesMax, ", and 0 to ", kMicrosecondsMax));
}

}  // namespace embank
