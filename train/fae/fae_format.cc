#include "train/fae/fae_format.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/exact_text.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/bytes/errno_status.h"
#include "train/bytes/file_pointer.h"

namespace embank {
namespace {

constexpr std::string_view kBudget = "budget bytes";
constexpr std::string_view kShare = "sampled share";
constexpr std::string_view kCountedShare = "counted share";
constexpr std::string_view kSeed = "seed";
constexpr std::string_view kThreshold = "threshold";
constexpr std::string_view kOptimizer = "row optimizer";
constexpr std::string_view kModel = "model";
constexpr std::string_view kBound = "bound bytes";
constexpr std::string_view kHotBytes = "hot bytes";
constexpr std::string_view kSamples = "samples";
constexpr std::string_view kFiles = "log files";
constexpr std::string_view kFile = "log file";
constexpr std::string_view kData = "data";
constexpr std::string_view kShuffle = "shuffle";
constexpr std::string_view kHeads = "file heads";
constexpr std::string_view kHead = "file head";
constexpr std::string_view kDenseFeatures = "dense features";
constexpr std::string_view kDenseFeature = "dense feature";
constexpr std::string_view kIdFeatures = "id features";
constexpr std::string_view kIdFeature = "id feature";
constexpr std::string_view kTables = "id tables";
constexpr std::string_view kTable = "id table";
constexpr std::string_view kFormat = "format";

// The lines of a text, each of words and a value.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // Takes the value of the next line, which has these words.
  Status Take(std::string_view words, std::string_view* value) {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    if (!line.starts_with(words) || line.substr(words.size(), 1) != " ") return Missing(words);
    *value = line.substr(words.size() + 1);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return OkStatus();
  }

  Status Take(std::string_view words, std::string* value) {
    std::string_view text;
    EMBANK_RETURN_IF_ERROR(Take(words, &text));
    *value = text;
    return OkStatus();
  }

  // Takes a line of numbers with spaces between them.
  template <typename... Numbers>
  Status TakeNumbers(std::string_view words, Numbers*... numbers) {
    std::string_view text;
    EMBANK_RETURN_IF_ERROR(Take(words, &text));
    const bool are_numbers = (TakeNumber(&text, numbers) && ...);
    return are_numbers && text.empty() ? OkStatus() : Missing(words);
  }

  // Takes a number from the front of a value, and the space after it.
  template <typename Number>
  static bool TakeNumber(std::string_view* text, Number* number) {
    const char* const end = text->data() + text->size();
    const std::from_chars_result result = std::from_chars(text->data(), end, *number);
    if (result.ec != std::errc()) return false;
    text->remove_prefix(static_cast<size_t>(result.ptr - text->data()));
    if (text->empty()) return true;
    const bool ends = text->front() == ' ';
    text->remove_prefix(1);
    return ends;
  }

  std::string_view rest() const { return rest_; }

  static Status Missing(std::string_view words) {
    return DataLossError(StrCat("it has no line \"", words, "\""));
  }

 private:
  std::string_view rest_;
};

Status TakeFiles(Lines* lines, std::vector<LogFile>* files) {
  uint64_t count = 0;
  EMBANK_RETURN_IF_ERROR(lines->TakeNumbers(kFiles, &count));
  for (uint64_t i = 0; i < count; ++i) {
    LogFile file;
    EMBANK_RETURN_IF_ERROR(lines->TakeNumbers(kFile, &file.bytes, &file.crc32c));
    files->push_back(file);
  }
  return OkStatus();
}

Status TakeData(Lines* lines, DataName* data) {
  uint64_t heads = 0;
  EMBANK_RETURN_IF_ERROR(lines->Take(kData, &data->words));
  EMBANK_RETURN_IF_ERROR(lines->TakeNumbers(kShuffle, &data->shuffle));
  EMBANK_RETURN_IF_ERROR(lines->TakeNumbers(kHeads, &heads));
  for (uint64_t i = 0; i < heads; ++i) {
    FileHead head;
    EMBANK_RETURN_IF_ERROR(lines->TakeNumbers(kHead, &head.bytes, &head.crc32c, &head.file_bytes));
    data->files.push_back(head);
  }
  return OkStatus();
}

Status TakeFeatures(Lines* lines, FaeHeader* header) {
  uint64_t dense = 0;
  uint64_t ids = 0;
  uint64_t tables = 0;
  EMBANK_RETURN_IF_ERROR(lines->TakeNumbers(kDenseFeatures, &dense));
  for (uint64_t i = 0; i < dense; ++i) {
    std::string name;
    EMBANK_RETURN_IF_ERROR(lines->Take(kDenseFeature, &name));
    header->columns.dense.push_back(std::move(name));
  }
  EMBANK_RETURN_IF_ERROR(lines->TakeNumbers(kIdFeatures, &ids));
  for (uint64_t i = 0; i < ids; ++i) {
    std::string_view line;
    uint32_t dim = 0;
    uint32_t row_bytes = 0;
    EMBANK_RETURN_IF_ERROR(lines->Take(kIdFeature, &line));
    if (!Lines::TakeNumber(&line, &dim) || !Lines::TakeNumber(&line, &row_bytes)) {
      return Lines::Missing(kIdFeature);
    }
    header->dims.push_back(dim);
    header->row_bytes.push_back(row_bytes);
    header->columns.ids.emplace_back(line);
  }
  EMBANK_RETURN_IF_ERROR(lines->TakeNumbers(kTables, &tables));
  if (tables != 0 && tables != ids) return Lines::Missing(kTable);
  for (uint64_t i = 0; i < tables; ++i) {
    std::string name;
    EMBANK_RETURN_IF_ERROR(lines->Take(kTable, &name));
    header->columns.tables.push_back(std::move(name));
  }
  return OkStatus();
}

// Empty: they are the same.
std::string DifferenceOfFiles(std::span<const LogFile> is, std::span<const LogFile> wanted) {
  const size_t both = std::min(is.size(), wanted.size());
  for (size_t i = 0; i < both; ++i) {
    if (is[i].bytes != wanted[i].bytes) {
      return StrCat("file ", i + 1, " of the log has ", is[i].bytes, " bytes, and not ",
                    wanted[i].bytes);
    }
    if (is[i].crc32c != wanted[i].crc32c) {
      return StrCat("file ", i + 1, " of the log has other contents");
    }
  }
  if (is.size() == wanted.size()) return "";
  return StrCat("the log has ", is.size(), " files, and not ", wanted.size());
}

std::string DifferenceOfNames(std::string_view of, std::span<const std::string> is,
                              std::span<const std::string> wanted) {
  if (is.size() != wanted.size()) {
    return StrCat("there are ", is.size(), " ", of, "s, and not ", wanted.size());
  }
  for (size_t i = 0; i < is.size(); ++i) {
    if (is[i] == wanted[i]) continue;
    return StrCat(of, " ", i + 1, " is \"", is[i], "\", and not \"", wanted[i], "\"");
  }
  return "";
}

std::string DifferenceOfRows(const FaeHeader& is, const FaeHeader& wanted) {
  for (size_t i = 0; i < is.columns.ids.size(); ++i) {
    const auto compare = [&](const char* of, uint32_t one, uint32_t other) {
      if (one == other) return std::string();
      return StrCat(of, " of id feature \"", is.columns.ids[i], "\" is ", one, ", and not ", other);
    };
    std::string difference = compare("the dim", is.dims[i], wanted.dims[i]);
    if (!difference.empty()) return difference;
    difference = compare("the size of a hot row in bytes", is.row_bytes[i], wanted.row_bytes[i]);
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string DifferenceOfColumns(const ClickColumns& is, const ClickColumns& wanted) {
  std::string difference = DifferenceOfNames("dense feature", is.dense, wanted.dense);
  if (difference.empty()) difference = DifferenceOfNames("id feature", is.ids, wanted.ids);
  return difference;
}

constexpr uint32_t kHasLabels = 1;
constexpr uint32_t kHasBags = 1;
constexpr uint32_t kHasWeights = 2;

std::string WritePart(const fae::Part& part) {
  std::string bytes;
  fae::Append(part.offset, &bytes);
  fae::Append(part.bytes, &bytes);
  fae::Append(part.crc32c, &bytes);
  return bytes;
}

}  // namespace

std::string WriteFaeText(const FaeHeader& header) {
  const ClickColumns& columns = header.columns;
  EMBANK_CHECK(header.dims.size() == columns.ids.size());
  EMBANK_CHECK(header.row_bytes.size() == columns.ids.size());
  EMBANK_CHECK(columns.tables.empty() || columns.tables.size() == columns.ids.size());
  std::string text =
      StrCat(kBudget, " ", header.budget_bytes, "\n", kShare, " ", ExactText(header.sampled_share),
             "\n", kCountedShare, " ", ExactText(header.counted_share), "\n", kSeed, " ",
             header.seed, "\n", kThreshold, " ", ExactText(header.threshold), "\n", kOptimizer, " ",
             header.row_optimizer, "\n", kModel, " ", header.model, "\n", kBound, " ",
             header.bound_bytes, "\n", kHotBytes, " ", header.hot_bytes, "\n", kSamples, " ",
             header.samples, "\n", kFiles, " ", header.files.size(), "\n");
  for (const LogFile& file : header.files) {
    StrAppend(&text, kFile, " ", file.bytes, " ", file.crc32c, "\n");
  }
  StrAppend(&text, kData, " ", columns.data.words, "\n", kShuffle, " ", columns.data.shuffle, "\n",
            kHeads, " ", columns.data.files.size(), "\n");
  for (const FileHead& head : columns.data.files) {
    StrAppend(&text, kHead, " ", head.bytes, " ", head.crc32c, " ", head.file_bytes, "\n");
  }
  StrAppend(&text, kDenseFeatures, " ", columns.dense.size(), "\n");
  for (const std::string& name : columns.dense) StrAppend(&text, kDenseFeature, " ", name, "\n");
  StrAppend(&text, kIdFeatures, " ", columns.ids.size(), "\n");
  for (size_t i = 0; i < columns.ids.size(); ++i) {
    StrAppend(&text, kIdFeature, " ", header.dims[i], " ", header.row_bytes[i], " ", columns.ids[i],
              "\n");
  }
  StrAppend(&text, kTables, " ", columns.tables.size(), "\n");
  for (const std::string& name : columns.tables) StrAppend(&text, kTable, " ", name, "\n");
  return StrCat(text, kFormat, " ", columns.format);
}

StatusOr<FaeHeader> ParseFaeText(std::string_view text) {
  FaeHeader header;
  Lines lines(text);
  EMBANK_RETURN_IF_ERROR(lines.TakeNumbers(kBudget, &header.budget_bytes));
  EMBANK_RETURN_IF_ERROR(lines.TakeNumbers(kShare, &header.sampled_share));
  EMBANK_RETURN_IF_ERROR(lines.TakeNumbers(kCountedShare, &header.counted_share));
  EMBANK_RETURN_IF_ERROR(lines.TakeNumbers(kSeed, &header.seed));
  EMBANK_RETURN_IF_ERROR(lines.TakeNumbers(kThreshold, &header.threshold));
  EMBANK_RETURN_IF_ERROR(lines.Take(kOptimizer, &header.row_optimizer));
  EMBANK_RETURN_IF_ERROR(lines.Take(kModel, &header.model));
  EMBANK_RETURN_IF_ERROR(lines.TakeNumbers(kBound, &header.bound_bytes));
  EMBANK_RETURN_IF_ERROR(lines.TakeNumbers(kHotBytes, &header.hot_bytes));
  EMBANK_RETURN_IF_ERROR(lines.TakeNumbers(kSamples, &header.samples));
  EMBANK_RETURN_IF_ERROR(TakeFiles(&lines, &header.files));
  EMBANK_RETURN_IF_ERROR(TakeData(&lines, &header.columns.data));
  EMBANK_RETURN_IF_ERROR(TakeFeatures(&lines, &header));
  std::string_view format = lines.rest();
  if (!format.starts_with(kFormat) || format.substr(kFormat.size(), 1) != " ") {
    return Lines::Missing(kFormat);
  }
  header.columns.format = format.substr(kFormat.size() + 1);
  return header;
}

StatusOr<LogFile> SumOfFile(const std::string& path, FunctionRef<void(uint64_t bytes)> progress) {
  // Larger reads are not faster.
  constexpr size_t kReadBytes = 1 << 20;
  const FilePointer file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return fae::FileError(errno, StrCat(path, ": cannot open"));
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  LogFile sum;
  std::vector<std::byte> bytes(kReadBytes);
  for (;;) {
    const size_t count = std::fread(bytes.data(), 1, bytes.size(), file.get());
    sum.crc32c = ExtendCrc32c(sum.crc32c, std::span(bytes).first(count));
    sum.bytes += count;
    progress(sum.bytes);
    if (count == bytes.size()) continue;
    if (std::ferror(file.get())) return fae::FileError(errno, StrCat(path, ": cannot read"));
    return sum;
  }
}

std::string DifferenceOf(const FaeHeader& is, const FaeHeader& wanted) {
  std::string difference = DifferenceOfFiles(is.files, wanted.files);
  if (!difference.empty()) return difference;
  if (is.budget_bytes != wanted.budget_bytes) {
    return StrCat("the budget is ", is.budget_bytes, " bytes, and not ", wanted.budget_bytes);
  }
  if (is.sampled_share != wanted.sampled_share) {
    return StrCat("the sampled share is ", ExactText(is.sampled_share), ", and not ",
                  ExactText(wanted.sampled_share));
  }
  if (is.seed != wanted.seed) {
    return StrCat("the seed of the sample is ", is.seed, ", and not ", wanted.seed);
  }
  difference = DifferenceOfColumns(is.columns, wanted.columns);
  if (!difference.empty()) return difference;
  if (is.model != wanted.model) {
    return StrCat("the model is ", is.model, ", and not ", wanted.model);
  }
  difference = DifferenceOfRows(is, wanted);
  if (!difference.empty()) return difference;
  if (is.row_optimizer != wanted.row_optimizer) {
    return StrCat("the optimizer of rows is ", is.row_optimizer, ", and not ",
                  wanted.row_optimizer);
  }
  difference = DifferenceOfNames("the table of id feature", is.columns.table_names(),
                                 wanted.columns.table_names());
  if (!difference.empty() || is.columns.format == wanted.columns.format) return difference;
  return "the lines of the log are read by other rules";
}

bool HaveOneForm(const ClickBatch& a, const ClickBatch& b) {
  if (a.labels.empty() != b.labels.empty() || a.features.size() != b.features.size()) return false;
  for (size_t i = 0; i < a.features.size(); ++i) {
    const FeatureIds& one = a.features[i];
    const FeatureIds& other = b.features[i];
    if (one.offsets.empty() != other.offsets.empty()) return false;
    // Bags without ids have no weights, and go with both.
    if (one.ids.empty() || other.ids.empty()) continue;
    if (one.weights.empty() != other.weights.empty()) return false;
  }
  return true;
}

namespace fae {

Status FileError(int error, std::string_view what) {
  Status status = ErrnoStatus(error, what);
  return status.code() == StatusCode::kUnknown ? UnavailableError(status.message()) : status;
}

uint32_t Crc32cOf(std::string_view bytes) {
  return ExtendCrc32c(0, std::as_bytes(std::span(bytes)));
}

std::string WriteHead() {
  std::string bytes(kMagic);
  Append(kVersion, &bytes);
  Append(Crc32cOf(bytes), &bytes);
  return bytes;
}

std::string WriteBlockHead(const Block& block) {
  std::string bytes;
  Append(kBlockMagic, &bytes);
  Append(block.is_hot, &bytes);
  Append(block.samples, &bytes);
  Append(block.crc32c, &bytes);
  Append(block.payload_bytes, &bytes);
  return bytes;
}

uint32_t Crc32cOf(const Block& block, std::string_view payload) {
  std::string head;
  Append(block.offset, &head);
  Append(block.payload_bytes, &head);
  Append(block.is_hot, &head);
  Append(block.samples, &head);
  return ExtendCrc32c(Crc32cOf(head), std::as_bytes(std::span(payload)));
}

std::string WritePayload(const ClickBatch& samples) {
  std::string bytes;
  Append(samples.labels.empty() ? 0u : kHasLabels, &bytes);
  Append(samples.labels, &bytes);
  Append(samples.dense, &bytes);
  for (const FeatureIds& feature : samples.features) {
    const uint32_t form =
        (feature.offsets.empty() ? 0 : kHasBags) | (feature.weights.empty() ? 0 : kHasWeights);
    Append(form, &bytes);
    Append(uint64_t{feature.ids.size()}, &bytes);
    Append(feature.ids, &bytes);
    Append(feature.offsets, &bytes);
    Append(feature.weights, &bytes);
  }
  return bytes;
}

bool ReadPayload(std::string_view payload, const Block& block, const ClickColumns& columns,
                 ClickBatch* samples) {
  Bytes bytes(payload);
  samples->Clear(columns.ids.size());
  samples->samples = block.samples;
  samples->is_hot = block.is_hot != 0;
  uint32_t labels = 0;
  if (!bytes.Take(&labels) || labels > kHasLabels) return false;
  if (!bytes.Take(labels * uint64_t{block.samples}, &samples->labels)) return false;
  if (!bytes.Take(columns.dense.size() * uint64_t{block.samples}, &samples->dense)) return false;
  for (FeatureIds& feature : samples->features) {
    uint32_t form = 0;
    uint64_t ids = 0;
    if (!bytes.Take(&form) || form > (kHasBags | kHasWeights) || !bytes.Take(&ids)) return false;
    const uint64_t offsets = (form & kHasBags) != 0 ? uint64_t{block.samples} + 1 : 0;
    const uint64_t weights = (form & kHasWeights) != 0 ? ids : 0;
    if (!bytes.Take(ids, &feature.ids) || !bytes.Take(offsets, &feature.offsets) ||
        !bytes.Take(weights, &feature.weights)) {
      return false;
    }
  }
  return bytes.empty() && CheckBatch(*samples, columns).ok();
}

std::string WriteFooter(const Footer& footer) {
  std::string bytes = WritePart(footer.hot_ids) + WritePart(footer.index) + WritePart(footer.text);
  Append(footer.text.offset + footer.text.bytes + kFooterBytes, &bytes);
  Append(kFooterMagic, &bytes);
  Append(Crc32cOf(bytes), &bytes);
  return bytes;
}

}  // namespace fae
}  // namespace embank
