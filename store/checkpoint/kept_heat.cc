#include "store/checkpoint/kept_heat.h"

#include <new>

#include "base/check.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "store/placement/memory_plan.h"
#include "store/table/store_rows.h"

namespace embank {

void KeptHeat::Save(Manifest* manifest) {
  EMBANK_CHECK(manifest->heat.bytes == 0);
  const uint64_t sketch_bytes =
      KeptSketchBytes(*store_.options, store_.heat_sketch->bytes(), store_.store_rows->count());
  directory_->NoteHeat(manifest->checkpoint, sketch_bytes);
  if (Reserve(/*must=*/false)) Write(sketch_bytes, manifest);
  EMBANK_CHECK(manifest->heat.bytes <= sketch_bytes);
  directory_->NoteHeat(manifest->checkpoint, manifest->heat.bytes);
  Reserve(/*must=*/true);
}

void KeptHeat::RemoveAllExcept(const std::multiset<uint32_t>& checkpoints) {
  directory_->KeepHeatOf(checkpoints);
  try {
    Reserve(/*must=*/true);
  } catch (const std::bad_alloc&) {
  }
}

// Reserves as much as the files have, or may get.
bool KeptHeat::Reserve(bool must) {
  ReaderMutexLock lock(catalog_->mutex());
  return space_->ReserveForHeat(DescribeTables(*catalog_), directory_->HeatBytes(), must);
}

void KeptHeat::Write(uint64_t sketch_bytes, Manifest* manifest) {
  const StatusOr<HeatFile> saved =
      SaveHeat(directory_->files(), HeatName(manifest->checkpoint), store_, sketch_bytes);
  if (saved.ok()) {
    manifest->heat = *saved;
    return;
  }
  Log(LogLevel::kWarning, StrCat("checkpoint ", manifest->checkpoint,
                                 " is made without the heat that rows gained since they "
                                 "were written: ",
                                 saved.status().ToString()));
}

}  // namespace embank
