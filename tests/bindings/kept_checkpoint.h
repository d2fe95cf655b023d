// The contents of a checkpoint of a store on a simulated disk, and a comparison with a store that
// was opened.
#ifndef EMBANK_TESTS_BINDINGS_KEPT_CHECKPOINT_H_
#define EMBANK_TESTS_BINDINGS_KEPT_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle.h"

namespace embank::test {

struct KeptCheckpoint {
  bool exists = true;  // false: the store before its first one
  std::vector<oracle::Table> oracles = {};
  std::vector<uint8_t> blob = {};
  // How many changes the disk had seen when it was asked for, and when it was done.
  size_t begin = 0;
  size_t end = 0;
};

// A log of few bytes, for disks that are copied often: segments of 32 KiB; and lists of reads that
// leave a small store little memory for rows.
RowLogOptions CrashedLog();

// Opens the store of the directory "store", or makes it.
Status OpenOnDisk(embank_store_options options, StoreEnvironment environment, StorePtr* store);

// How rows are found: a scan visits the whole index for each table.
enum class FindRows { kByScan, kByKey };

// All tables, rows and states, and the caller's bytes: "" or the first difference in words.
std::string DifferenceFrom(embank_store* store, const KeptCheckpoint& kept, FindRows how);

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_KEPT_CHECKPOINT_H_
