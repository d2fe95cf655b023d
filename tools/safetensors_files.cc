#include "tools/safetensors_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/inspect/json_text.h"
#include "tools/literal.h"

namespace embank {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndex = ".index.json";
constexpr uint64_t kHeaderBytesMax = 100'000'000;  // that of the format
constexpr uint64_t kDataAt = 4096;                 // of our files

Status InFile(const std::string& path, const Status& status) {
  return status.ok() ? status : Status(status.code(), StrCat(path, ": ", status.message()));
}

// The stem in the name of a shard, such as "items" of "items-00001-of-00002.safetensors".
std::optional<std::string> StemOfShard(const std::string& name) {
  constexpr std::string_view kPattern = "-00000-of-00000.safetensors";
  if (name.size() < kPattern.size()) return std::nullopt;
  const size_t stem = name.size() - kPattern.size();
  const bool is_shard =
      std::ranges::equal(name.substr(stem), kPattern, [](char found, char wanted) {
        return wanted == '0' ? found >= '0' && found <= '9' : found == wanted;
      });
  return is_shard ? std::optional(name.substr(0, stem)) : std::nullopt;
}

// The column that a tensor has, and the number after its name: ".00001", or empty.
std::optional<std::pair<RowColumn, std::string>> ColumnOf(const std::string& tensor) {
  const size_t dot = std::min(tensor.find('.'), tensor.size());
  const auto found = std::ranges::find(kColumnNames, std::string_view(tensor).substr(0, dot));
  const bool has_number = dot + 1 < tensor.size() &&
                          tensor.find_first_not_of("0123456789", dot + 1) == std::string::npos;
  if (found == kColumnNames.end() || (dot < tensor.size() && !has_number)) return std::nullopt;
  return std::pair(kRowColumns[static_cast<size_t>(found - kColumnNames.begin())],
                   tensor.substr(dot));
}

// Whether a tensor is one of a shard: its name has a number.
bool IsOfShard(const std::string& tensor) {
  const auto column = ColumnOf(tensor);
  return column.has_value() && !column->second.empty();
}

// The tensors of files, by the number in their names, which is empty where there is one file.
using Tensors = std::map<std::string, FilePart>;
// The tensors of each file, as indexes name them. A file that no index names has none.
using NamedTensors = std::map<std::string, std::vector<std::string>>;

class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::string& path) : path_(path) {}

  // Reads the tensors of the file, which must have those that the indexes name.
  Status Read(const std::vector<std::string>& named, Tensors* tensors, std::string* optimizer) {
    is_indexed_ = !named.empty();
    EMBANK_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path_));
    EMBANK_ASSIGN_OR_RETURN(const Literal header, ReadHeader(file));
    for (const std::string& tensor : named) {
      if (header.Field(tensor) == nullptr) return Wrong(tensor, "of the index is not there");
    }
    EMBANK_RETURN_IF_ERROR(TakeMetadata(header, optimizer));
    std::vector<std::tuple<uint64_t, uint64_t, std::string>> extents;
    for (const auto& [name, entry] : header.fields) {
      if (name == "__metadata__") continue;
      const Literal* const offsets = entry.Field("data_offsets");
      const auto numbers = offsets == nullptr ? std::nullopt : offsets->Numbers();
      if (!numbers.has_value() || numbers->size() != 2) {
        return Wrong(name, "has no data_offsets of two numbers");
      }
      extents.emplace_back((*numbers)[0], (*numbers)[1], name);
      EMBANK_RETURN_IF_ERROR(TakeTensor(name, entry, *numbers, tensors));
    }
    return CheckExtents(file, std::move(extents));
  }

  // Whether the file is a shard of a table that Embank has written.
  bool IsOurShard() {
    const StatusOr<InputFile> file = InputFile::Open(path_);
    if (!file.ok()) return false;
    const StatusOr<Literal> header = ReadHeader(*file);
    const Literal* const metadata = header.ok() ? header->Field("__metadata__") : nullptr;
    if (metadata == nullptr || metadata->Field("embank") == nullptr) return false;
    return std::ranges::any_of(header->fields,
                               [](const auto& field) { return IsOfShard(field.first); });
  }

 private:
  Status Wrong(std::string_view tensor, std::string_view what) const {
    return DataLossError(StrCat(path_, ": tensor ", tensor, " ", what));
  }

  // A shard by itself would pass for a whole table.
  Status IsShard() const {
    const std::filesystem::path path(path_);
    const auto stem = StemOfShard(path.filename().string());
    const std::string whole =
        stem.has_value() ? StrCat((path.parent_path() / *stem).string(), kSuffix)
                         : StrCat("the name NAME", kSuffix, " that it had without its number");
    return InvalidArgumentError(
        StrCat(path_, " is a shard of a table; give ", whole, ", whose index names all shards"));
  }

  StatusOr<Literal> ReadHeader(const InputFile& file) {
    uint64_t bytes = 0;
    EMBANK_RETURN_IF_ERROR(file.Read(0, std::as_writable_bytes(std::span(&bytes, 1))));
    if (bytes > std::min(file.bytes() - sizeof(bytes), kHeaderBytesMax)) {
      return DataLossError(StrCat(path_, ": bytes 0 to 7 say that the header has ", bytes,
                                  " bytes; the file has ", file.bytes(), ", and headers at most ",
                                  kHeaderBytesMax));
    }
    data_at_ = sizeof(bytes) + bytes;
    EMBANK_ASSIGN_OR_RETURN(const std::string text, file.ReadText(sizeof(bytes), bytes));
    StatusOr<Literal> header = ParseLiteral(text, LiteralSyntax::kJson);
    if (!header.ok()) return InFile(StrCat(path_, ": header from byte 8 on"), header.status());
    if (header->kind == Literal::Kind::kObject) return header;
    return DataLossError(StrCat(path_, ": the header is no JSON object"));
  }

  Status TakeMetadata(const Literal& header, std::string* optimizer) {
    const Literal* const metadata = header.Field("__metadata__");
    if (metadata == nullptr) return OkStatus();
    for (const auto& [name, value] : metadata->fields) {
      if (value.kind == Literal::Kind::kText) continue;
      return DataLossError(StrCat(path_, ": ", name, " of the metadata is no string"));
    }
    if (metadata->kind != Literal::Kind::kObject) {
      return DataLossError(StrCat(path_, ": the metadata is no JSON object"));
    }
    const Literal* const version = metadata->Field("embank");
    is_ours_ = version != nullptr;
    if (is_ours_ && version->text != "1") {
      return DataLossError(StrCat(path_, ": the metadata has version ", version->text,
                                  " of embank's tables; this program reads version 1"));
    }
    const Literal* const found = metadata->Field("optimizer");
    if (found == nullptr) return OkStatus();
    if (!optimizer->empty() && *optimizer != found->text) {
      return DataLossError(StrCat(path_, ": the states are of optimizer ", found->text,
                                  ", and those of another file of ", *optimizer));
    }
    *optimizer = found->text;
    return OkStatus();
  }

  Status TakeTensor(const std::string& name, const Literal& entry,
                    std::span<const uint64_t> offsets, Tensors* tensors) {
    const auto known = ColumnOf(name);
    if (!known.has_value()) {
      // Files of others may have other tensors. In a file of ours, the name is damaged.
      return is_ours_ ? Wrong(name, "is none of a table") : OkStatus();
    }
    const auto& [which, number] = *known;
    if (is_ours_ && !is_indexed_ && !number.empty()) return IsShard();
    const Literal* const type = entry.Field("dtype");
    const Literal* const shape = entry.Field("shape");
    const auto numbers = shape == nullptr ? std::nullopt : shape->Numbers();
    if (type == nullptr || !numbers.has_value()) return Wrong(name, "has no dtype or no shape");
    FileColumn column = {.path = path_, .name = name, .type = FindNumberType(type->text)};
    if (column.type == nullptr) {
      return InvalidArgumentError(
          StrCat(path_, ": tensor ", name, " has dtype ", type->text, ", which no table has"));
    }
    EMBANK_RETURN_IF_ERROR(CheckShape(*numbers, &column));
    if (offsets[1] - offsets[0] != column.rows * column.row_bytes()) {
      return Wrong(name, StrCat("has the bytes from ", offsets[0], " to ", offsets[1],
                                " of the data; its dtype and shape need ",
                                column.rows * column.row_bytes()));
    }
    column.offset = data_at_ + offsets[0];
    auto& place = (*tensors)[number][static_cast<size_t>(which)];
    if (place.has_value()) return Wrong(name, StrCat("is in ", place->path, ", too"));
    place = column;
    return OkStatus();
  }

  Status CheckExtents(const InputFile& file,
                      std::vector<std::tuple<uint64_t, uint64_t, std::string>> extents) const {
    std::ranges::sort(extents);
    uint64_t at = 0;
    for (const auto& [begin, end, name] : extents) {
      if (begin != at || end < begin) {
        return Wrong(name, StrCat("has the bytes from ", begin, " to ", end,
                                  " of the data; it must begin at ", at));
      }
      at = end;
    }
    if (file.bytes() - data_at_ == at) return OkStatus();
    return DataLossError(StrCat(path_, " ends at byte ", file.bytes(), "; its tensors take ", at,
                                " bytes from byte ", data_at_, " on"));
  }

  const std::string& path_;
  uint64_t data_at_ = 0;
  bool is_ours_ = false;
  bool is_indexed_ = false;
};

// Reads which file has which tensor.
StatusOr<Literal> ReadIndex(const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  EMBANK_ASSIGN_OR_RETURN(const std::string text,
                          file.ReadText(0, std::min(file.bytes(), kHeaderBytesMax)));
  const StatusOr<Literal> read = ParseLiteral(text, LiteralSyntax::kJson);
  if (!read.ok()) return InFile(path, read.status());
  const Literal* const map = read->Field("weight_map");
  if (map != nullptr && !map->fields.empty()) return *map;
  return DataLossError(StrCat(path, ": there is no weight_map"));
}

// Adds the file of a path, or those that its index names.
Status AddFiles(const std::string& path, NamedTensors* files) {
  const bool is_index = path.ends_with(kIndex);
  std::error_code error;
  if (!is_index && std::filesystem::exists(path, error)) {
    files->try_emplace(path);
    return OkStatus();
  }
  const std::string index = is_index ? path : StrCat(path, kIndex);
  if (!std::filesystem::exists(index, error)) {
    return NotFoundError(
        StrCat(path, ": there is no such file", is_index ? "" : ", and no " + index));
  }
  EMBANK_ASSIGN_OR_RETURN(const Literal map, ReadIndex(index));
  for (const auto& [tensor, name] : map.fields) {
    const std::filesystem::path shard(name.text);
    if (name.text.empty() || shard.filename() != shard || name.text == "." || name.text == "..") {
      return DataLossError(StrCat(index, ": weight_map has ", JsonString(name.text), " for ",
                                  JsonString(tensor), ", which is no file of its directory"));
    }
    (*files)[(std::filesystem::path(index).parent_path() / shard).string()].push_back(tensor);
  }
  return OkStatus();
}

// Whether a file is an index of a table that Embank has written.
bool IsOurIndex(const std::string& path) {
  const StatusOr<Literal> map = ReadIndex(path);
  return map.ok() &&
         std::ranges::all_of(map->fields, [](const auto& field) { return IsOfShard(field.first); });
}

// The files of an earlier table with this name. The file of the path itself may be any: --out names
// it. The others are only ours.
std::vector<std::string> StaleFiles(const std::string& path) {
  std::vector<std::string> stale = {path};
  if (const std::string index = StrCat(path, kIndex); IsOurIndex(index)) stale.push_back(index);
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  const std::string stem = std::filesystem::path(path).stem().string();
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory.empty() ? "." : directory, error)) {
    const std::string name = entry.path().filename().string();
    const std::string shard = (directory / name).string();
    if (StemOfShard(name) == stem && SafetensorsReader(shard).IsOurShard()) stale.push_back(shard);
  }
  return stale;
}

// The text in front of the tensors of a file.
std::string HeaderOf(const Table& table, const FilePart& part) {
  std::string json =
      StrCat("{\"__metadata__\":{\"embank\":\"1\",\"table\":", JsonString(table.name()),
             ",\"optimizer\":\"", NameOf(table.layout().optimizer), "\"}");
  for (const std::optional<FileColumn>& column : part) {
    if (!column.has_value()) continue;
    const uint64_t begin = column->offset - kDataAt;
    StrAppend(&json, ",\"", column->name, "\":{\"dtype\":\"", column->type->name,
              "\",\"shape\":", column->Shape(), ",\"data_offsets\":[", begin, ",",
              begin + column->rows * column->row_bytes(), "]}");
  }
  json += '}';
  const uint64_t bytes = kDataAt - sizeof(uint64_t);
  json.resize(bytes, ' ');
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof(bytes)) + json;
}

// The tensors of a file, one after the other.
FilePart PlanPart(const Table& table, const RowBuffer& buffer, const std::string& path,
                  uint64_t rows, const std::string& suffix) {
  FilePart part = PlanColumns(table, buffer);
  uint64_t at = kDataAt;
  for (std::optional<FileColumn>& column : part) {
    if (!column.has_value()) continue;
    column->path = path;
    column->name += suffix;
    column->offset = at;
    column->rows = rows;
    at += rows * column->row_bytes();
  }
  return part;
}

}  // namespace

StatusOr<TableFiles> ReadSafetensors(std::span<const std::string> paths) {
  NamedTensors files;
  for (const std::string& path : paths) EMBANK_RETURN_IF_ERROR(AddFiles(path, &files));
  TableFiles table;
  Tensors tensors;
  for (const auto& [file, named] : files) {
    EMBANK_RETURN_IF_ERROR(SafetensorsReader(file).Read(named, &tensors, &table.optimizer));
  }
  for (auto& [number, part] : tensors) table.parts.push_back(std::move(part));
  if (table.parts.empty()) {
    return DataLossError(StrCat(files.begin()->first, ": there is no tensor keys"));
  }
  EMBANK_RETURN_IF_ERROR(CheckColumns(table));
  return table;
}

StatusOr<PlannedFiles> PlanSafetensors(const Table& table, const RowBuffer& buffer,
                                       const std::string& path, uint64_t shard_bytes) {
  if (!path.ends_with(kSuffix)) {
    return InvalidArgumentError(
        StrCat("--out is ", path, "; it must end with ", kSuffix, ", or --format must be npy"));
  }
  uint64_t row_bytes = 0;
  for (const RowColumn which : kRowColumns) row_bytes += buffer.RowBytes(which);
  if (shard_bytes < kDataAt + row_bytes) {
    return InvalidArgumentError(StrCat("--shard-bytes is ", shard_bytes,
                                       "; a header and one row of table ", table.name(), " need ",
                                       kDataAt + row_bytes));
  }
  const uint64_t rows_max = (shard_bytes - kDataAt) / row_bytes;
  const uint64_t shards = std::max(uint64_t{1}, (table.rows() + rows_max - 1) / rows_max);
  constexpr uint64_t kShardsMax = 99'999;  // names have five digits
  if (shards > kShardsMax) {
    return InvalidArgumentError(StrCat("--shard-bytes is ", shard_bytes, ", which makes ", shards,
                                       " files; there must be at most ", kShardsMax));
  }
  PlannedFiles planned = {.head = shards > 1 ? StrCat(path, kIndex) : path,
                          .stale = StaleFiles(path)};
  const std::string stem = path.substr(0, path.size() - kSuffix.size());
  std::string map;
  uint64_t total = 0;
  for (uint64_t shard = 0; shard < shards; ++shard) {
    const std::string number = StrCat(Dec(shard + 1, 5));
    const bool is_one = shards == 1;
    const std::string file =
        is_one ? path : StrCat(stem, "-", number, "-of-", Dec(shards, 5), kSuffix);
    const uint64_t rows = std::min(rows_max, table.rows() - shard * rows_max);
    planned.table.parts.push_back(
        PlanPart(table, buffer, file, rows, is_one ? "" : StrCat(".", number)));
    planned.texts.emplace_back(file, HeaderOf(table, planned.table.parts.back()));
    total += rows * row_bytes;
    for (const auto& column : planned.table.parts.back()) {
      if (!column.has_value()) continue;
      StrAppend(&map, map.empty() ? "\n    \"" : ",\n    \"", column->name,
                "\": ", JsonString(std::filesystem::path(file).filename().string()));
    }
  }
  if (shards > 1) {
    planned.texts.emplace_back(StrCat(path, kIndex),
                               StrCat("{\n  \"metadata\": {\n    \"total_size\": ", total,
                                      "\n  },\n  \"weight_map\": {", map, "\n  }\n}\n"));
  }
  return planned;
}

}  // namespace embank
