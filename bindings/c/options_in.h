// Converts the C structs to the options of the store. Checks sizes and versions of structs, and
// values that ask for parts not built yet.
#ifndef EMBANK_BINDINGS_C_OPTIONS_IN_H_
#define EMBANK_BINDINGS_C_OPTIONS_IN_H_

#include "base/status_or.h"
#include "bindings/c/embank.h"
#include "store/table/options.h"

namespace embank {

// Sets every field behind struct_size to its default.
embank_store_options DefaultStoreOptions();
embank_table_options DefaultTableOptions();

// Fills the first struct_size bytes of *options, bytes past the known ones with zeros.
void InitOptions(embank_store_options* options, uint32_t struct_size);
void InitOptions(embank_table_options* options, uint32_t struct_size);

// Reads options; nullptr: the defaults. kInvalidArgument, kUnimplemented: the message names the
// field.
StatusOr<StoreOptions> ReadOptions(const embank_store_options* options);
// nullptr: kInvalidArgument.
StatusOr<TableOptions> ReadOptions(const embank_table_options* options);

// Reads the update rule of options, whatever their other fields are. Its numbers are not checked.
// kInvalidArgument, kUnimplemented: the message names the field.
StatusOr<UpdateRule> ReadRule(const embank_table_options* options);
// Writes options to the first options->struct_size bytes. kInvalidArgument: the size.
Status WriteOptions(const TableOptions& from, embank_table_options* options);

// Checks the size of a struct in a caller's array, before its other bytes are read: a wrong one
// would lead beyond the array. `first` is the size of the first struct. kInvalidArgument.
Status CheckSizeInArray(uint32_t struct_size, uint32_t first, const char* array);

// Reads a feature of a packed call. kInvalidArgument, kUnimplemented: the message names the field.
StatusOr<embank_feature> ReadFeature(const embank_feature* feature);

// kInvalidArgument: the path is empty or too long; the message names the argument.
Status ValidatePath(const char* path, const char* argument);

// Each copies the first struct_size bytes of `full` to the caller's struct, which says how many.
// kInvalidArgument: the size.
Status WriteInfo(const embank_table_info& full, embank_table_info* info);
Status WriteInfo(const embank_checkpoint_info& full, embank_checkpoint_info* info);
Status WriteOptions(const embank_store_options& full, embank_store_options* options);

}  // namespace embank

#endif  // EMBANK_BINDINGS_C_OPTIONS_IN_H_
