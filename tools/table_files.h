// The columns of a table in files: what the formats of `embank write-table` and `read-table` have
// in common.
#ifndef EMBANK_TOOLS_TABLE_FILES_H_
#define EMBANK_TOOLS_TABLE_FILES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_or.h"
#include "store/table/options.h"
#include "store/table/table.h"
#include "tools/row_buffer.h"

namespace embank {

// An open file that is read at any place. One thread.
class InputFile {
 public:
  // kNotFound; kInvalidArgument: it is no regular file; kUnavailable: the system does not open it.
  static StatusOr<InputFile> Open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  uint64_t bytes() const { return bytes_; }
  // kDataLoss: the file ends before; the message names the byte. kUnavailable: the system does not
  // read it.
  Status Read(uint64_t offset, std::span<std::byte> out) const;
  // The bytes from `offset` on as text. Statuses of Read.
  StatusOr<std::string> ReadText(uint64_t offset, uint64_t bytes) const;

 private:
  InputFile(std::string path, int descriptor, uint64_t bytes)
      : path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}

  std::string path_;
  int descriptor_;
  uint64_t bytes_;
};

// The types of numbers in files, by the names that safetensors gives them.
struct NumberType {
  std::string_view name;
  std::string_view npy;  // the name in npy files; empty: there is none
  uint64_t bytes;
};
// nullptr: it is unknown.
const NumberType* FindNumberType(std::string_view name);
const NumberType* FindNpyType(std::string_view npy);
// The type of the values of rows.
const NumberType& TypeOfValues(ValueType type);

// By RowColumn: the names of tensors, and parts of the names of npy files.
inline constexpr std::array<std::string_view, kRowColumns.size()> kColumnNames = {"keys", "state",
                                                                                  "heat", "values"};

// A column in a file: numbers, little-endian and row after row.
struct FileColumn {
  std::string path;
  std::string name;  // as messages have it
  uint64_t offset = 0;
  uint64_t rows = 0;
  uint64_t width = 0;  // numbers of each row; 0: the array has one dimension
  const NumberType* type = nullptr;

  uint64_t row_bytes() const { return (width == 0 ? 1 : width) * type->bytes; }
  // The shape, as JSON has it: "[3,2]".
  std::string Shape() const;
};

// Columns by RowColumn, of the same rows.
using FilePart = std::array<std::optional<FileColumn>, kRowColumns.size()>;

struct TableFiles {
  std::vector<FilePart> parts = {};
  std::string optimizer = {};  // whose states they are; empty: the files do not say

  const std::optional<FileColumn>& First(RowColumn column) const {
    return parts[0][static_cast<size_t>(column)];
  }
  bool Has(RowColumn column) const { return First(column).has_value(); }
  uint64_t rows() const;
  // Whether reads and writes leave a column out.
  void Drop(RowColumn column);
};

// Files that are to be written. The bytes of the columns follow later.
struct PlannedFiles {
  TableFiles table = {};
  std::vector<std::pair<std::string, std::string>> texts = {};  // path, and the bytes in front
  std::string head = {};  // the file that readers need before they look for others
  // Files of an earlier table that would be read with these, or have no use without it.
  std::vector<std::string> stale = {};
};

// The columns of the buffer for all rows of the table, without their files.
FilePart PlanColumns(const Table& table, const RowBuffer& buffer);

// Checks the shape of a column, and that its bytes are no more than memory can name.
// kInvalidArgument, kDataLoss: the message names the file and the column.
Status CheckShape(std::span<const uint64_t> shape, FileColumn* column);
// Checks that columns, which files have described, go with each other. kInvalidArgument: a type or
// a shape is none of a table. kDataLoss: a column is missing or has another number of rows.
Status CheckColumns(const TableFiles& files);
// Checks that a table takes these rows. kInvalidArgument: the message names the option.
Status CheckFits(const TableFiles& files, std::string_view name, const TableOptions& options);

}  // namespace embank

#endif  // EMBANK_TOOLS_TABLE_FILES_H_
