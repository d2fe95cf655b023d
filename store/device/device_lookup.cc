#include "store/device/device_lookup.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/status_macros.h"
#include "store/batch/batch.h"
#include "store/batch/logged_rows.h"
#include "store/batch/lookup.h"
#include "store/batch/write_scope.h"
#include "store/device/batch_piece.h"
#include "store/device/caller_stream.h"
#include "store/device/row_transfer.h"
#include "store/payload/payload_rows.h"
#include "store/placement/batch_keys.h"
#include "store/placement/row_mover.h"

namespace embank {
namespace {

// Outcomes of a piece that a batch does not know.
constexpr uint8_t kMissing = 0xF0;   // to be created by the second pass
constexpr uint8_t kAnswered = 0xF1;  // its row is not in host memory

}  // namespace

// One lookup: a pass that reads existing rows, and one that creates the others.
class DeviceLookup {
 public:
  // `row_numbers` as of DeviceLookupBatch.
  DeviceLookup(Batch* batch, MissingRule rule, DeviceArray rows,
               std::span<const uint32_t> row_numbers = {})
      : batch_(*batch),
        table_(batch->table()),
        memory_(table_.store().payloads->memory()),
        rule_(rule),
        update_rule_(table_.rule()),
        row_bytes_(table_.layout().vector_bytes),
        rows_(rows),
        row_numbers_(row_numbers) {}

  // kResourceExhausted.
  Status Allocate(WriteScope* scope);
  // Answers all positions. kUnavailable: the device is lost.
  void Run(WriteScope* scope);

 private:
  uint32_t RowOf(uint32_t position) const {
    return row_numbers_.empty() ? position : row_numbers_[position];
  }
  RowSpan host_rows() { return {host_rows_.values().data(), RowTransfer::StrideBytes(row_bytes_)}; }
  void ReadPiece(size_t begin, size_t count);
  void CreatePiece(WriteScope* scope, std::span<const uint32_t> positions);
  void Answer();
  void SendHostRows(KeySpan keys);
  void Send(KeySpan keys, RowTransfer* transfer);

  Batch& batch_;
  Table& table_;
  PayloadMemory& memory_;
  const MissingRule rule_;
  const UpdateRule update_rule_;
  const uint32_t row_bytes_;
  const DeviceArray rows_;
  const std::span<const uint32_t> row_numbers_;
  BatchPiece piece_;
  LoggedRows logged_;
  BatchKeys batch_keys_;
  size_t piece_keys_ = 0;
  size_t missing_count_ = 0;
  Scratch<uint32_t, kInlineKeys> missing_;  // positions, in order
  Scratch<std::byte, 1> host_rows_;         // of one piece
};

Status DeviceLookup::Allocate(WriteScope* scope) {
  const size_t keys = batch_.keys().size();
  piece_keys_ = std::min(scope->PieceKeysMax(), RowTransfer::RowsMax(memory_, row_bytes_));
  EMBANK_RETURN_IF_ERROR(piece_.Allocate(&table_, piece_keys_));
  EMBANK_RETURN_IF_ERROR(
      logged_.Allocate(Batch(&table_, batch_.keys().first(piece_keys_), OutcomeSpan())));
  const size_t host_rows =
      rule_ == MissingRule::kCreate ? piece_keys_ : table_.mover()->InLogMax(piece_keys_);
  EMBANK_RETURN_IF_ERROR(host_rows_.Allocate(host_rows * RowTransfer::StrideBytes(row_bytes_)));
  if (rule_ != MissingRule::kCreate) return OkStatus();
  EMBANK_RETURN_IF_ERROR(missing_.Allocate(keys));
  EMBANK_RETURN_IF_ERROR(scope->Allocate());
  return batch_keys_.Allocate(table_, batch_.keys());
}

void DeviceLookup::Run(WriteScope* scope) {
  const size_t keys = batch_.keys().size();
  for (size_t begin = 0; begin < keys; begin += piece_keys_) {
    ReadPiece(begin, std::min(piece_keys_, keys - begin));
  }
  if (missing_count_ == 0) return;
  batch_keys_.Collect();
  const std::span<const uint32_t> missing = missing_.values().first(missing_count_);
  scope->ChangeTogether(missing, [&](ShardPlan*) {
    for (size_t begin = 0; begin < missing.size(); begin += piece_keys_) {
      CreatePiece(scope, missing.subspan(begin, std::min(piece_keys_, missing.size() - begin)));
    }
    return OkStatus();
  });
}

void DeviceLookup::ReadPiece(size_t begin, size_t count) {
  piece_.Clear();
  for (size_t i = begin; i < begin + count; ++i) {
    piece_.Add(batch_.keys()[i], static_cast<uint32_t>(i));
  }
  // The gate first: who has closed it may wait for a buffer.
  const PayloadGuard payload_guard(table_.store().payloads);
  // A row that is looked for in the log may turn out to be an HBM row, and needs a buffer for
  // itself.
  std::optional<RowTransfer> transfer;
  if (table_.mover()->logs().empty()) transfer.emplace(&memory_, row_bytes_);
  const RowSpan rows = transfer.has_value() ? transfer->rows() : host_rows();
  piece_.Read([&](Batch* piece) {
    ReadExisting(piece, &logged_, &piece_.payloads(), rule_, rows,
                 [&](uint32_t position, OutcomeTally* tally) {
                   if (rule_ == MissingRule::kCreate) {
                     piece_.outcome(position) = kMissing;
                     return;
                   }
                   AnswerMissing(table_, piece->keys()[position], rule_, rows.Row(position));
                   piece->Answer(position, Outcome::kAbsent, tally);
                 });
  });
  for (size_t i = 0; i < count; ++i) {
    if (piece_.outcome(i) == kMissing) missing_.values()[missing_count_++] = piece_.number(i);
  }
  Answer();
  if (transfer.has_value()) return Send(piece_.keys(), &*transfer);
  SendHostRows(piece_.keys());
}

void DeviceLookup::CreatePiece(WriteScope* scope, std::span<const uint32_t> positions) {
  piece_.Clear();
  for (const uint32_t position : positions) piece_.Add(batch_.keys()[position], position);
  piece_.Run(scope, [&](Batch* piece, const ShardGroup& group) {
    CreateGroup(piece, group, update_rule_, host_rows(), batch_keys_, &piece_.payloads());
  });
  Answer();
  SendHostRows({});
}

// Sends the rows of host_rows_. Inside the payload gate, without locks and buffers.
void DeviceLookup::SendHostRows(KeySpan keys) {
  RowTransfer transfer(&memory_, row_bytes_);
  for (size_t i = 0; i < piece_.size(); ++i) {
    if (piece_.outcome(i) == kAnswered) continue;
    std::memcpy(transfer.rows().Row(i), host_rows().Row(i), row_bytes_);
  }
  Send(keys, &transfer);
}

// Passes the outcomes of the piece on, and marks those whose rows are not in host memory.
void DeviceLookup::Answer() {
  OutcomeTally tally;
  tally.without_place = piece_.without_place();
  tally.found_in = piece_.found_in();
  for (size_t i = 0; i < piece_.size(); ++i) {
    uint8_t& outcome = piece_.outcome(i);
    EMBANK_CHECK(outcome != BatchPiece::kNoOutcome);
    if (outcome == kMissing) {
      outcome = kAnswered;
      continue;
    }
    const auto answer = static_cast<Outcome>(outcome);
    batch_.Answer(piece_.number(i), answer, &tally);
    const bool is_kept = answer == Outcome::kAbsent && rule_ == MissingRule::kSkip;
    if (IsUnread(answer) || is_kept) outcome = kAnswered;
  }
  for (const PayloadPosition& payloads : piece_.payloads().positions())
    piece_.outcome(payloads.number) = kAnswered;
  batch_.Add(tally);
}

// Enqueues the copies of the answered rows, whose places are their positions in the piece, to the
// caller's. Inside the payload gate, without locks. `keys` are those of CountPayloads.
void DeviceLookup::Send(KeySpan keys, RowTransfer* transfer) {
  const std::span<const PayloadPosition> payloads = piece_.payloads().positions();
  CountPayloads(&table_, keys, &piece_.payloads());
  for (const PayloadPosition& at : payloads)
    transfer->AddPayload(at.payload, RowOf(piece_.number(at.number)));
  for (size_t i = 0; i < piece_.size(); ++i) {
    if (piece_.outcome(i) != kAnswered) transfer->Add(i, RowOf(piece_.number(i)));
  }
  transfer->SendTo(rows_);
}

namespace {

// A read-only store creates nothing.
MissingRule RuleOf(const Table& table, MissingRule rule) {
  return rule == MissingRule::kCreate && table.store().options->read_only ? MissingRule::kDefault
                                                                          : rule;
}

}  // namespace

struct DeviceLookupBatch::Work {
  Work(Table* table, KeySpan keys, MissingRule rule, DeviceArray rows,
       std::span<const uint32_t> row_numbers, OutcomeSpan outcomes)
      : batch(table, keys, outcomes),
        scope(batch),
        lookup(&batch, RuleOf(*table, rule), rows, row_numbers) {}

  Batch batch;
  WriteScope scope;
  DeviceLookup lookup;
};

DeviceLookupBatch::DeviceLookupBatch(Table* table, KeySpan keys, MissingRule rule, DeviceArray rows,
                                     std::span<const uint32_t> row_numbers, OutcomeSpan outcomes)
    : work_(std::make_unique<Work>(table, keys, rule, rows, row_numbers, outcomes)) {}

DeviceLookupBatch::~DeviceLookupBatch() = default;

Status DeviceLookupBatch::Allocate() { return work_->lookup.Allocate(&work_->scope); }

Status DeviceLookupBatch::Run() {
  work_->lookup.Run(&work_->scope);
  return work_->scope.Settle();
}

const OutcomeTally& DeviceLookupBatch::tally() const { return work_->batch.tally(); }

Status LookupToDevice(Table* table, KeySpan keys, MissingRule rule, DeviceArray rows, void* stream,
                      OutcomeSpan outcomes) {
  EMBANK_RETURN_IF_ERROR(table->CheckAlive());
  const uint64_t begin_ns = table->store().clock->NowNs();
  Batch batch(table, keys, outcomes);
  WriteScope scope(batch);
  DeviceLookup lookup(&batch, RuleOf(*table, rule), rows);
  EMBANK_RETURN_IF_ERROR(lookup.Allocate(&scope));
  CallerStream callers(&table->store().payloads->memory().device(), stream);
  EMBANK_RETURN_IF_ERROR(callers.Join());
  lookup.Run(&scope);
  const Status released = callers.Release();
  const Status finished = FinishLookup(&batch, &scope, begin_ns);
  return released.ok() ? finished : released;
}

}  // namespace embank
