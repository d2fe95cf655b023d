#include "store/device/device_upsert.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/status_macros.h"
#include "store/batch/batch.h"
#include "store/batch/row_group.h"
#include "store/batch/write.h"
#include "store/batch/write_scope.h"
#include "store/device/batch_piece.h"
#include "store/device/caller_stream.h"
#include "store/device/row_transfer.h"
#include "store/payload/payload_rows.h"
#include "store/placement/batch_keys.h"
#include "tiers/row/row_update.h"

namespace embank {
namespace {

class DeviceUpsert {
 public:
  DeviceUpsert(Batch* batch, WriteScope* scope, DeviceArray rows)
      : batch_(*batch),
        scope_(*scope),
        table_(batch->table()),
        memory_(table_.store().payloads->memory()),
        rule_(table_.rule()),
        row_bytes_(table_.layout().vector_bytes),
        rows_(rows) {}

  // kResourceExhausted.
  Status Allocate();
  // Writes the positions of a plan. kUnavailable: the device is lost.
  Status Run(ShardPlan* plan);

 private:
  // The first state of FTRL depends on the vector, so that the host makes it.
  bool has_state_of_vector() const { return table_.layout().optimizer == Optimizer::kFtrl; }
  void NoteGroup(const ShardGroup& group);
  Status WritePiece(std::span<const uint32_t> positions);
  void WritePayloads();

  Batch& batch_;
  WriteScope& scope_;
  Table& table_;
  PayloadMemory& memory_;
  const UpdateRule rule_;
  const uint32_t row_bytes_;
  const DeviceArray rows_;
  BatchPiece piece_;
  BatchKeys batch_keys_;
  PayloadList payloads_;
  size_t piece_keys_ = 0;
  size_t others_count_ = 0;
  Scratch<uint32_t, kInlineKeys> others_;  // positions without a row in device memory, by shard
  Scratch<std::byte, 1> host_rows_;        // of one piece
  Scratch<std::byte, 1> first_payload_;    // of a new row, with a vector of zeros
};

Status DeviceUpsert::Allocate() {
  const size_t keys = batch_.keys().size();
  piece_keys_ = std::min(scope_.PieceKeysMax(), RowTransfer::RowsMax(memory_, row_bytes_));
  EMBANK_RETURN_IF_ERROR(piece_.Allocate(&table_, piece_keys_));
  EMBANK_RETURN_IF_ERROR(host_rows_.Allocate(piece_keys_ * RowTransfer::StrideBytes(row_bytes_)));
  EMBANK_RETURN_IF_ERROR(first_payload_.Allocate(kRowBytesMax));
  EMBANK_RETURN_IF_ERROR(batch_keys_.Allocate(table_, batch_.keys()));
  EMBANK_RETURN_IF_ERROR(payloads_.Allocate(table_.store().payloads, keys));
  return others_.Allocate(keys);
}

Status DeviceUpsert::Run(ShardPlan* plan) {
  batch_keys_.Collect();
  plan->ForEachGroup(batch_, [&](const ShardGroup& group) { NoteGroup(group); });
  const std::span<const uint32_t> others = others_.values().first(others_count_);
  for (size_t begin = 0; begin < others.size(); begin += piece_keys_) {
    EMBANK_RETURN_IF_ERROR(
        WritePiece(others.subspan(begin, std::min(piece_keys_, others.size() - begin))));
  }
  WritePayloads();
  return OkStatus();
}

// Tells the positions apart, and answers those in device memory. No other row gets there before the
// batch leaves the payload gate.
void DeviceUpsert::NoteGroup(const ShardGroup& group) {
  OutcomeTally tally;
  PayloadList::Part payloads(&payloads_, group.begin);
  MutexLock lock(&group.shard->mutex);
  ForEachMatch(table_, batch_, group, [&](uint32_t position, const RowId&, const Match& match) {
    const bool in_hbm = match.any() && match.location().HasDevicePayload();
    if (!in_hbm || has_state_of_vector()) {
      others_.values()[others_count_++] = position;
      return;
    }
    batch_.Answer(position, NotePayload(table_, position, match.location(), &payloads), &tally);
  });
  batch_.Add(tally);
}

Status DeviceUpsert::WritePiece(std::span<const uint32_t> positions) {
  piece_.Clear();
  const RowSpan rows = {host_rows_.values().data(), RowTransfer::StrideBytes(row_bytes_)};
  {
    RowTransfer transfer(&memory_, row_bytes_);
    for (const uint32_t position : positions) {
      transfer.Add(piece_.size(), position);
      piece_.Add(batch_.keys()[position], position);
    }
    EMBANK_RETURN_IF_ERROR(transfer.FetchFrom(rows_));
    std::memcpy(rows.data, transfer.rows().data, positions.size() * rows.stride_bytes);
  }
  const ConstRowSpan from = {rows.data, rows.stride_bytes};
  piece_.Run(&scope_, [&](Batch* piece, const ShardGroup& group) {
    UpsertGroup(piece, group, rule_, from, batch_keys_, &piece_.payloads());
  });
  EMBANK_CHECK(piece_.payloads().size() == 0 || has_state_of_vector());
  OutcomeTally tally;
  tally.without_place = piece_.without_place();
  for (size_t i = 0; i < piece_.size(); ++i) {
    EMBANK_CHECK(piece_.outcome(i) != BatchPiece::kNoOutcome);
    batch_.Answer(piece_.number(i), static_cast<Outcome>(piece_.outcome(i)), &tally);
  }
  batch_.Add(tally);
  return UpsertPayloads(table_, rule_, from, &piece_.payloads());
}

// Enqueues the copies of the caller's rows to those in device memory.
void DeviceUpsert::WritePayloads() {
  const std::span<const PayloadPosition> positions = payloads_.KeepLast();
  if (positions.empty()) return;
  const RowLayout& layout = table_.layout();
  std::byte* const image = first_payload_.values().data();
  std::memset(image, 0, first_payload_.values().size());
  ResetState(layout, rule_, image);
  const std::span<const std::byte> rest = first_payload_.values()
                                              .subspan(sizeof(RowHeader) + row_bytes_)
                                              .first(PayloadBytesOf(table_) - row_bytes_);
  for (size_t done = 0; done < positions.size();) {
    RowTransfer transfer(&memory_, row_bytes_);
    while (done < positions.size() && !transfer.is_full()) {
      transfer.AddPayload(positions[done].payload, positions[done].number);
      ++done;
    }
    transfer.WritePayloads(rows_, rest);
  }
}

}  // namespace

Status UpsertFromDevice(Table* table, KeySpan keys, DeviceArray rows, void* stream,
                        OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckMayChange());
  const uint64_t begin_ns = table->store().clock->NowNs();
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch);
  DeviceUpsert upsert(&batch, &scope, rows);
  EMBANK_RETURN_IF_ERROR(scope.Allocate());
  EMBANK_RETURN_IF_ERROR(upsert.Allocate());
  CallerStream callers(&table->store().payloads->memory().device(), stream);
  EMBANK_RETURN_IF_ERROR(callers.Join());
  scope.PromoteAll();
  scope.ChangeTogether(WriteScope::kAll, [&](ShardPlan* plan) { return upsert.Run(plan); });
  const Status released = callers.Release();
  const Status finished = FinishUpsert(&batch, &scope, begin_ns);
  return released.ok() ? finished : released;
}

}  // namespace embank
