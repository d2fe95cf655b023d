#include "store/checkpoint/kept_heat.h"

#include <new>

#include "base/check.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {

void KeptHeat::Save(Manifest* manifest) {
  EMBANK_CHECK(manifest->heat.bytes == 0);
  directory_->NoteHeat(manifest->checkpoint, store_.heat_sketch->bytes() + rows_bytes_max_);
  if (Reserve(/*must=*/false)) Write(manifest);
  EMBANK_CHECK(manifest->heat.bytes <= store_.heat_sketch->bytes() + rows_bytes_max_);
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

void KeptHeat::Write(Manifest* manifest) {
  const StatusOr<HeatFile> saved =
      SaveHeat(directory_->files(), HeatName(manifest->checkpoint), store_, rows_bytes_max_);
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
