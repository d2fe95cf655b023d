// Tables in npy files: NAME.keys.npy, NAME.values.npy, NAME.state.npy and NAME.heat.npy.
#ifndef EMBANK_TOOLS_NPY_FILES_H_
#define EMBANK_TOOLS_NPY_FILES_H_

#include <string>

#include "base/status_or.h"
#include "store/table/table.h"
#include "tools/row_buffer.h"
#include "tools/table_files.h"

namespace embank {

// Finds the columns of the files whose names begin with `path`; states and heats if they are there.
// kNotFound: a file is missing. kDataLoss: a file is no npy file, or has another size than its
// header says. The statuses of CheckShape and CheckColumns.
StatusOr<TableFiles> ReadNpy(const std::string& path);

// Plans files for the rows of a table, with the columns of the buffer.
PlannedFiles PlanNpy(const Table& table, const RowBuffer& buffer, const std::string& path);

}  // namespace embank

#endif  // EMBANK_TOOLS_NPY_FILES_H_
