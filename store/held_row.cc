#include "store/held_row.h"

#include <cstring>

namespace embank {

void HeldRow::FetchFromLog() {
  ReadFromLog();
  if (!in_image_) memory_->GiveBack();
}

void HeldRow::ReadFromLog() {
  RowMover* const mover = table_.mover();
  RowMemory* const memory = memory_->get();
  std::span<const std::byte> record;
  const absl::StatusOr<Match> found = mover->Resolve(shard_, id_, &memory->record, &record);
  match_ = found.ok() ? *found : Match{};
  outcome_ = !found.ok() ? Outcome::kDataLoss : found->any() ? Outcome::kFound : Outcome::kAbsent;
  if (outcome_ != Outcome::kFound) return;
  if (match_.location().tier() == Tier::kDram) {
    row_ = table_.parts().tier->Row(match_.location());
    return;
  }
  const Match up = mover->BringUp(shard_, id_, match_, record, 0);
  if (up.any()) {
    match_ = up;
    row_ = table_.parts().tier->Row(up.location());
    return;
  }
  heat_ = LoadRecordHeader(record).heat;
  row_ = memory->image.bytes;
  in_image_ = true;
  std::memset(row_, 0, sizeof(RowHeader));
  std::memcpy(row_ + sizeof(RowHeader), record.data() + sizeof(RecordHeader),
              record.size() - sizeof(RecordHeader));
}

}  // namespace embank
