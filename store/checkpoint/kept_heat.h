// The heat files of the checkpoints of a store, and their space.
#ifndef EMBANK_STORE_CHECKPOINT_KEPT_HEAT_H_
#define EMBANK_STORE_CHECKPOINT_KEPT_HEAT_H_

#include <cstdint>
#include <set>

#include "store/catalog/catalog.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/checkpoint_space.h"
#include "store/checkpoint/heat_file.h"

namespace embank {

// The callers hold the lock of checkpoints. A checkpoint is whole without its heat: if heat has no
// space, or cannot be written, it is left out.
class KeptHeat {
 public:
  // All of them outlive it.
  KeptHeat(const StoreContext& store, CheckpointDirectory* directory, CheckpointSpace* space,
           const Catalog* catalog)
      : store_(store), directory_(directory), space_(space), catalog_(catalog) {}
  KeptHeat(const KeptHeat&) = delete;
  KeptHeat& operator=(const KeptHeat&) = delete;

  // Writes the heat of a checkpoint that is being made, and notes the file in its manifest. The
  // file's name is not yet durable. Throws std::bad_alloc.
  void Save(Manifest* manifest);
  // Removes all files, except those of these checkpoints and of the checkpoints that the directory
  // keeps, and frees their space. Without memory some files are left for the next call.
  void RemoveAllExcept(const std::multiset<uint32_t>& checkpoints);

 private:
  bool Reserve(bool must);
  void Write(uint64_t sketch_bytes, Manifest* manifest);

  const StoreContext& store_;
  CheckpointDirectory* const directory_;
  CheckpointSpace* const space_;
  const Catalog* const catalog_;
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_KEPT_HEAT_H_
