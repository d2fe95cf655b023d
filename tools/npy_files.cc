#include "tools/npy_files.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tools/literal.h"

namespace embank {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kFixedBytes = 10;    // of version 1: magic, version, size of the text
constexpr uint64_t kHeaderBytes = 128;  // of our files; numpy wants a multiple of 64
constexpr uint64_t kTextBytesMax = 65536;

std::string FileOf(const std::string& path, RowColumn which) {
  return StrCat(path, ".", kColumnNames[static_cast<size_t>(which)], ".npy");
}

uint64_t LittleEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

// The text of a header, and the byte at which the array begins.
StatusOr<std::pair<std::string, uint64_t>> ReadHeader(const InputFile& file,
                                                      const std::string& path) {
  std::array<char, kFixedBytes> front{};
  EMBANK_RETURN_IF_ERROR(file.Read(0, std::as_writable_bytes(std::span(front))));
  const char version = front[kMagic.size()];
  if (!std::string_view(front.data(), front.size()).starts_with(kMagic) || version < 1 ||
      version > 3) {
    return DataLossError(StrCat(path, ": bytes 0 to 7 are not those of an npy file"));
  }
  const uint64_t size_at = kMagic.size() + 2;
  const uint64_t size_bytes = version == 1 ? 2 : 4;
  EMBANK_ASSIGN_OR_RETURN(const std::string size, file.ReadText(size_at, size_bytes));
  const uint64_t bytes = LittleEndian(size);
  const uint64_t at = size_at + size_bytes;
  if (bytes > std::min(file.bytes() - at, kTextBytesMax)) {
    return DataLossError(StrCat(path, ": byte ", size_at, " says that the header has ", bytes,
                                " bytes; the file has ", file.bytes(), ", and headers at most ",
                                kTextBytesMax));
  }
  EMBANK_ASSIGN_OR_RETURN(std::string text, file.ReadText(at, bytes));
  return std::pair(std::move(text), at + bytes);
}

StatusOr<FileColumn> ReadColumn(const std::string& path, RowColumn which) {
  EMBANK_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  EMBANK_ASSIGN_OR_RETURN(const auto header, ReadHeader(file, path));
  const StatusOr<Literal> read = ParseLiteral(header.first, LiteralSyntax::kPython);
  if (!read.ok()) return DataLossError(StrCat(path, ": header: ", read.status().message()));
  const Literal* const type = read->Field("descr");
  const Literal* const order = read->Field("fortran_order");
  const Literal* const shape = read->Field("shape");
  const auto numbers = shape == nullptr ? std::nullopt : shape->Numbers();
  if (type == nullptr || order == nullptr || order->kind != Literal::Kind::kTruth ||
      !numbers.has_value()) {
    return DataLossError(
        StrCat(path, ": the header must have descr, fortran_order and shape of an array"));
  }
  FileColumn column = {.path = path,
                       .name = std::string(kColumnNames[static_cast<size_t>(which)]),
                       .offset = header.second,
                       .type = FindNpyType(type->text)};
  if (column.type == nullptr || (order->truth && numbers->size() != 1)) {
    return InvalidArgumentError(StrCat(
        path, ": the array has descr ", type->text, " and fortran_order ",
        order->truth ? "True" : "False",
        "; it must be <u8, <i8, <f4, <u4, <f2 or <u2 (the bits of bf16), in the order of C"));
  }
  EMBANK_RETURN_IF_ERROR(CheckShape(*numbers, &column));
  const uint64_t end = column.offset + column.rows * column.row_bytes();
  if (file.bytes() == end) return column;
  return DataLossError(StrCat(path, " ends at byte ", file.bytes(), "; its array of ", type->text,
                              " and shape ", column.Shape(), " ends at ", end));
}

std::string HeaderOf(const FileColumn& column) {
  std::string text = StrCat("{'descr': '", column.type->npy, "', 'fortran_order': False, 'shape': ",
                            column.width == 0 ? StrCat("(", column.rows, ",)")
                                              : StrCat("(", column.rows, ", ", column.width, ")"),
                            ", }");
  text.resize(kHeaderBytes - kFixedBytes - 1, ' ');
  constexpr std::string_view kVersionAndSize("\x01\x00\x76\x00", 4);
  static_assert(0x76 == kHeaderBytes - kFixedBytes);
  return StrCat(kMagic, kVersionAndSize, text, "\n");
}

}  // namespace

StatusOr<TableFiles> ReadNpy(const std::string& path) {
  TableFiles table = {.parts = std::vector<FilePart>(1)};
  for (const RowColumn which : kRowColumns) {
    StatusOr<FileColumn> column = ReadColumn(FileOf(path, which), which);
    const bool is_needed = which == RowColumn::kKeys || which == RowColumn::kValues;
    if (!is_needed && IsNotFound(column.status())) continue;
    if (!column.ok()) return column.status();
    table.parts[0][static_cast<size_t>(which)] = *std::move(column);
  }
  EMBANK_RETURN_IF_ERROR(CheckColumns(table));
  return table;
}

PlannedFiles PlanNpy(const Table& table, const RowBuffer& buffer, const std::string& path) {
  PlannedFiles planned = {.table = {.parts = {PlanColumns(table, buffer)}},
                          .head = FileOf(path, RowColumn::kKeys)};
  for (const RowColumn which : kRowColumns) {
    const std::string file = FileOf(path, which);
    std::optional<FileColumn>& column = planned.table.parts[0][static_cast<size_t>(which)];
    planned.stale.push_back(file);
    if (!column.has_value()) continue;
    column->path = file;
    column->offset = kHeaderBytes;
    planned.texts.emplace_back(file, HeaderOf(*column));
  }
  return planned;
}

}  // namespace embank
