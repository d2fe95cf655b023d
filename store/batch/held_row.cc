#include "store/batch/held_row.h"

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
  Match unread;
  const StatusOr<Match> found = mover->Resolve(shard_, id_, &memory->record, &record, &unread);
  match_ = found.ok() ? *found : unread;
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

Outcome HeldRow::Replace(FunctionRef<void(std::byte*)> fill) {
  if (!match_.any()) return Outcome::kDataLoss;
  std::byte* const image = memory_->get()->image.bytes;
  std::memset(image, 0, table_.layout().row_bytes);
  fill(image);
  const bool is_put = table_.mover()->PutInLog(shard_, id_, 0, image, match_);
  memory_->GiveBack();
  return is_put ? Outcome::kFound : Outcome::kRefused;
}

}  // namespace embank
