#include "store/batch/row_for_update.h"

#include <cstring>

#include "base/check.h"

namespace embank {

void RowForUpdate::PromoteOrCopy() {
  RowMover* const mover = table_.mover();
  const std::span<const std::byte> record = found_.record;
  EMBANK_CHECK(record.size() > sizeof(RecordHeader));
  const Match promoted = mover->promotion().Promote(shard_, id_, found_.match, record, 0);
  if (promoted.any()) {
    location_ = promoted.location();
    row_ = table_.store().tier->Row(location_);
    return;
  }
  heat_ = LoadRecordHeader(record).heat;
  row_ = memory_->get()->image.bytes;
  in_image_ = true;
  std::memset(row_, 0, sizeof(RowHeader));
  std::memcpy(row_ + sizeof(RowHeader), record.data() + sizeof(RecordHeader),
              record.size() - sizeof(RecordHeader));
}

Outcome RowForUpdate::Append(const std::byte* image, uint32_t heat) {
  const bool is_appended =
      table_.mover()->log_rows().Append(shard_, id_, heat, image, found_.match);
  return is_appended ? Outcome::kFound : Outcome::kRefused;
}

Outcome RowForUpdate::Replace(FunctionRef<void(std::byte*)> fill, uint32_t heat) {
  EMBANK_CHECK(IsUnread(found_.outcome));
  if (!found_.match.any()) return found_.outcome;
  std::byte* const image = memory_->get()->image.bytes;
  std::memset(image, 0, table_.layout().row_bytes);
  fill(image);
  const Outcome outcome = Append(image, heat);
  memory_->Return();
  return outcome;
}

}  // namespace embank
