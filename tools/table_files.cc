#include "tools/table_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr std::array<NumberType, 13> kNumberTypes = {{{"U64", "<u8", 8},
                                                      {"I64", "<i8", 8},
                                                      {"F32", "<f4", 4},
                                                      {"U32", "<u4", 4},
                                                      {"F16", "<f2", 2},
                                                      {"BF16", "<u2", 2},  // its bits
                                                      {"U16", "", 2},
                                                      {"I16", "", 2},
                                                      {"I32", "", 4},
                                                      {"F64", "", 8},
                                                      {"U8", "", 1},
                                                      {"I8", "", 1},
                                                      {"BOOL", "", 1}}};
// The state of Adam, at the largest dim.
constexpr uint64_t kWidthMax = 2 * uint64_t{kDimMax} + 1;

Status Failed(const std::string& path, const char* what) {
  return UnavailableError(
      StrCat("cannot ", what, " ", path, ": ", std::generic_category().message(errno)));
}

struct ColumnRule {
  std::array<std::string_view, 3> types;
  bool is_wide;
  const char* must;
};
constexpr std::array<ColumnRule, kRowColumns.size()> kRules = {
    {{{"U64", "I64", ""}, false, "U64 or I64, and have one dimension"},
     {{"F32", "", ""}, true, "F32, and have two dimensions"},
     {{"U32", "", ""}, false, "U32, and have one dimension"},
     {{"F32", "F16", "BF16"}, true, "F32, F16 or BF16, and have two dimensions"}}};

Status CheckColumn(const FileColumn& column, size_t place) {
  const ColumnRule& rule = kRules[place];
  const bool has_type = std::ranges::find(rule.types, column.type->name) != rule.types.end();
  if (has_type && (column.width > 0) == rule.is_wide) return OkStatus();
  return InvalidArgumentError(StrCat(column.path, ": ", column.name, " has the type ",
                                     column.type->name, " and the shape ", column.Shape(), "; ",
                                     kColumnNames[place], " must be ", rule.must));
}

}  // namespace

StatusOr<InputFile> InputFile::Open(const std::string& path) {
  // A pipe is refused below, and must not be waited for here.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return NotFoundError(StrCat(path, ": there is no such file"));
    }
    return Failed(path, "open");
  }
  struct stat found = {};
  if (fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) {
    close(descriptor);
    return InvalidArgumentError(StrCat(path, " is no regular file"));
  }
  return InputFile(path, descriptor, static_cast<uint64_t>(found.st_size));
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status InputFile::Read(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed(path_, "read");
    if (count == 0) {
      return DataLossError(StrCat(path_, " ends at byte ", offset + done, ", and not at ",
                                  offset + out.size(), " or later"));
    }
    done += static_cast<size_t>(count);
  }
  return OkStatus();
}

StatusOr<std::string> InputFile::ReadText(uint64_t offset, uint64_t bytes) const {
  std::string text(bytes, '\0');
  EMBANK_RETURN_IF_ERROR(Read(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

const NumberType* FindNumberType(std::string_view name) {
  const auto found = std::ranges::find(kNumberTypes, name, &NumberType::name);
  return found == kNumberTypes.end() ? nullptr : found;
}

const NumberType* FindNpyType(std::string_view npy) {
  const auto found = std::ranges::find(kNumberTypes, npy, &NumberType::npy);
  return npy.empty() || found == kNumberTypes.end() ? nullptr : found;
}

const NumberType& TypeOfValues(ValueType type) {
  constexpr const char* kNames[] = {"F32", "F16", "BF16"};
  return *FindNumberType(kNames[static_cast<int32_t>(type)]);
}

std::string FileColumn::Shape() const {
  return width == 0 ? StrCat("[", rows, "]") : StrCat("[", rows, ",", width, "]");
}

uint64_t TableFiles::rows() const {
  uint64_t sum = 0;
  for (const FilePart& part : parts) sum += part[0]->rows;
  return sum;
}

void TableFiles::Drop(RowColumn column) {
  for (FilePart& part : parts) part[static_cast<size_t>(column)].reset();
}

FilePart PlanColumns(const Table& table, const RowBuffer& buffer) {
  const RowLayout& layout = table.layout();
  const std::array<std::pair<uint64_t, const NumberType*>, kRowColumns.size()> numbers = {
      {{0, FindNumberType("U64")},
       {layout.state_floats, FindNumberType("F32")},
       {0, FindNumberType("U32")},
       {layout.dim, &TypeOfValues(layout.value_type)}}};
  FilePart part;
  for (const RowColumn which : kRowColumns) {
    const auto place = static_cast<size_t>(which);
    if (buffer.RowBytes(which) == 0) continue;
    part[place] = {.path = {},
                   .name = std::string(kColumnNames[place]),
                   .rows = table.rows(),
                   .width = numbers[place].first,
                   .type = numbers[place].second};
  }
  return part;
}

Status CheckShape(std::span<const uint64_t> shape, FileColumn* column) {
  const auto text = [&] {
    return StrCat(column->path, ": ", column->name, " has the shape [", StrJoin(shape, ","), "]");
  };
  if (shape.empty() || shape.size() > 2) {
    return InvalidArgumentError(StrCat(text(), "; it must have one dimension or two"));
  }
  column->rows = shape[0];
  column->width = shape.size() == 2 ? shape[1] : 0;
  if (shape.size() == 2 && (shape[1] == 0 || shape[1] > kWidthMax)) {
    return InvalidArgumentError(StrCat(text(), "; rows must have 1 to ", kWidthMax, " numbers"));
  }
  if (column->rows <= static_cast<uint64_t>(INT64_MAX) / column->row_bytes()) return OkStatus();
  return DataLossError(StrCat(text(), ", which are more bytes than a file can have"));
}

Status CheckColumns(const TableFiles& files) {
  const FilePart& first = files.parts[0];
  for (const FilePart& part : files.parts) {
    for (const RowColumn which : kRowColumns) {
      const auto place = static_cast<size_t>(which);
      const bool is_needed = which == RowColumn::kKeys || which == RowColumn::kValues;
      const auto any = std::ranges::find_if(part, [](const auto& c) { return c.has_value(); });
      if (!part[place].has_value() && (is_needed || first[place].has_value())) {
        return DataLossError(StrCat((*any)->path, ": ", (*any)->name, " has no ",
                                    kColumnNames[place], " beside it"));
      }
      if (!part[place].has_value()) continue;
      const FileColumn& column = *part[place];
      EMBANK_RETURN_IF_ERROR(CheckColumn(column, place));
      if (!first[place].has_value() || column.width != first[place]->width ||
          column.type != first[place]->type) {
        return DataLossError(StrCat(column.path, ": ", column.name, " has the type ",
                                    column.type->name, " and the shape ", column.Shape(),
                                    ", and other files of the table differ from it"));
      }
    }
    for (const std::optional<FileColumn>& column : part) {
      if (!column.has_value() || column->rows == part[0]->rows) continue;
      return DataLossError(StrCat(column->path, ": ", column->name, " has ", column->rows,
                                  " rows, and there are ", part[0]->rows, " keys"));
    }
  }
  return OkStatus();
}

Status CheckFits(const TableFiles& files, std::string_view name, const TableOptions& options) {
  const FileColumn& values = *files.First(RowColumn::kValues);
  if (values.width != options.dim) {
    return InvalidArgumentError(
        StrCat(values.path, ": dim is ", values.width, "; table ", name, " has dim ", options.dim));
  }
  const NumberType& type = TypeOfValues(options.value_type);
  if (values.type->name != type.name) {
    return InvalidArgumentError(StrCat(values.path, ": value_type is ", values.type->name,
                                       "; table ", name, " has value_type ", type.name));
  }
  if (!files.Has(RowColumn::kState)) return OkStatus();
  const uint64_t floats = StateFloats(options.optimizer, options.dim);
  const FileColumn& state = *files.First(RowColumn::kState);
  const bool is_same = files.optimizer.empty() || files.optimizer == NameOf(options.optimizer);
  if (state.width == floats && is_same) return OkStatus();
  return InvalidArgumentError(
      StrCat(state.path, ": states have ", state.width, " numbers for each row, of the optimizer ",
             files.optimizer.empty() ? "that the files do not name" : files.optimizer, "; table ",
             name, " has optimizer ", NameOf(options.optimizer), " with ", floats,
             " numbers: --no-state leaves states out"));
}

}  // namespace embank
