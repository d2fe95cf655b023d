// From the C structs to the options of the store: sizes and versions of structs, and values whose
// part is not built yet.
#ifndef EMBANK_BINDINGS_C_OPTIONS_IN_H_
#define EMBANK_BINDINGS_C_OPTIONS_IN_H_

#include "base/status_or.h"
#include "bindings/c/embank.h"
#include "store/table/options.h"

namespace embank {

// The defaults of every field behind struct_size.
embank_store_options DefaultStoreOptions();
embank_table_options DefaultTableOptions();

// Fills the first struct_size bytes of *options, bytes past the known ones with zeros.
void InitOptions(embank_store_options* options, uint32_t struct_size);
void InitOptions(embank_table_options* options, uint32_t struct_size);

// nullptr: the defaults. kInvalidArgument, kUnimplemented; messages name the field.
StatusOr<StoreOptions> ReadOptions(const embank_store_options* options);
// nullptr: kInvalidArgument.
StatusOr<TableOptions> ReadOptions(const embank_table_options* options);

// kInvalidArgument, with the argument's name: it is empty, or longer than any that can be used.
Status ValidatePath(const char* path, const char* argument);

// Copies the first info->struct_size bytes of `full` to *info. kInvalidArgument: the size.
Status WriteInfo(const embank_table_info& full, embank_table_info* info);

}  // namespace embank

#endif  // EMBANK_BINDINGS_C_OPTIONS_IN_H_
