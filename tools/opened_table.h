// A store on disk that is open for one of its tables.
#ifndef EMBANK_TOOLS_OPENED_TABLE_H_
#define EMBANK_TOOLS_OPENED_TABLE_H_

#include <memory>
#include <vector>

#include "base/files/file_system.h"
#include "base/status_or.h"
#include "store/checkpoint/manifest.h"
#include "store/store.h"
#include "tools/table_command.h"

namespace embank {

struct OpenedTable {
  std::unique_ptr<Store> store;
  Table* table = nullptr;
};

// Opens the last checkpoint of the command's store without changing it, together with others that
// only read. kNotFound: there is no store or no such table. The statuses of Store::Open.
StatusOr<OpenedTable> OpenToRead(const TableCommand& command);

// Opens a store to change it. `manifest` is its newest one. The statuses of Store::Open.
StatusOr<std::unique_ptr<Store>> OpenToChange(FileSystem* files, const TableCommand& command,
                                              const Manifest& manifest);

// kFailedPrecondition: the rows of the table have no states.
Status CheckStatesOf(const Table& table, const char* option);

}  // namespace embank

#endif  // EMBANK_TOOLS_OPENED_TABLE_H_
