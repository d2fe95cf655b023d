// Tables in safetensors files: the tensors keys, state, heat and values, in one file or in shards.
//
//   | 8 bytes: size of the header | header: JSON, blanks up to byte 4096 | tensors |
//
// Shards are NAME-00001-of-00002.safetensors and so on, with the tensors keys.00001 and so on.
// NAME.safetensors.index.json says which file has which tensor.
#ifndef EMBANK_TOOLS_SAFETENSORS_FILES_H_
#define EMBANK_TOOLS_SAFETENSORS_FILES_H_

#include <cstdint>
#include <span>
#include <string>

#include "base/status_or.h"
#include "store/table/table.h"
#include "tools/row_buffer.h"
#include "tools/table_files.h"

namespace embank {

// Finds the columns of files, of indexes, and of the shards of an index beside a path.
// kNotFound: a file is missing. kDataLoss: a file is no safetensors file, is cut off, has bytes
// that belong to no tensor or to two, or lacks a tensor of its index. kInvalidArgument: a file of
// ours is a shard that no index names. The statuses of CheckShape and CheckColumns.
StatusOr<TableFiles> ReadSafetensors(std::span<const std::string> paths);

// Plans files of at most `shard_bytes` for the rows of a table, with the columns of the buffer.
// kInvalidArgument: the path ends with another suffix, or a row does not fit into a shard.
StatusOr<PlannedFiles> PlanSafetensors(const Table& table, const RowBuffer& buffer,
                                       const std::string& path, uint64_t shard_bytes);

}  // namespace embank

#endif  // EMBANK_TOOLS_SAFETENSORS_FILES_H_
