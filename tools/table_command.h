// The commands of `embank` that read or write the rows of one table.
#ifndef EMBANK_TOOLS_TABLE_COMMAND_H_
#define EMBANK_TOOLS_TABLE_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/command.h"

namespace embank {

// The options of these commands. Each command has some of them.
struct TableCommand {
  std::string directory;
  std::string table;
  std::string pmem_path;          // empty: where the manifest says
  std::vector<std::string> keys;  // of get
  std::vector<std::string> in;    // of read-table
  std::string out;                // of dump, where empty means stdout; of write-table
  std::string format = "safetensors";
  std::string shard_bytes = "4GiB";    // of write-table
  std::string dram_bytes;              // of read-table; empty: no limit
  std::string optimizer;               // of a new table; empty: that of the files
  std::optional<float> learning_rate;  // of a new table
  uint64_t limit = UINT64_MAX;         // of dump, in rows
  bool state = false;                  // of dump
  bool heat = false;                   // of dump
  bool overwrite = false;              // of write-table
  bool no_state = false;               // of write-table and read-table
  bool no_heat = false;                // of write-table and read-table
  bool progress = false;
  bool json = false;
};

// Prints the rows of some keys. kAbsent: a key has no row. kDamaged: a row cannot be read.
ExitCode RunGet(const TableCommand& command);
// Prints all rows as CSV or JSON lines. kDamaged: a row cannot be read, and the text ends there.
ExitCode RunDump(const TableCommand& command);
// Writes all rows to files. After kDamaged and kUnusable, files are as they were before, unless the
// message says which one is in place, or is not there, so that none of them is read.
ExitCode RunWriteTable(const TableCommand& command);
// Writes the rows of files into a table, and makes a checkpoint. After kDamaged, which is damage of
// the files, and kUnusable, the store has its last checkpoint, and nothing of the files.
ExitCode RunReadTable(const TableCommand& command);

}  // namespace embank

#endif  // EMBANK_TOOLS_TABLE_COMMAND_H_
