#include "store/payload/payload_list.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/payload/staged_rows.h"
#include "store/placement/row_mover.h"

namespace embank {
namespace {

// Calls use(rows) for runs of at most as many rows as a buffer takes, which are in the buffer.
template <typename Use>
Status ForEachChunk(std::span<const PayloadPosition> positions, StagedRows* staged, Use use) {
  while (!positions.empty()) {
    const size_t count = std::min(positions.size(), staged->rows_max());
    staged->Clear();
    for (const PayloadPosition& position : positions.first(count)) staged->Add(position.payload);
    EMBANK_RETURN_IF_ERROR(use(positions.first(count)));
    positions = positions.subspan(count);
  }
  return OkStatus();
}

}  // namespace

Status PayloadList::Allocate(PayloadRows* payloads, size_t keys) {
  payloads_ = payloads;
  if (payloads_ == nullptr) return OkStatus();
  EMBANK_RETURN_IF_ERROR(positions_.Allocate(keys));
  std::ranges::fill(positions_.values(), kNone);
  return OkStatus();
}

void PayloadList::Clear() {
  if (payloads_ == nullptr) return;
  std::ranges::fill(positions_.values(), kNone);
  has_any_.store(false, std::memory_order_relaxed);
  is_collected_ = false;
  size_ = 0;
}

std::span<PayloadPosition> PayloadList::Collect() {
  if (!has_any_.load(std::memory_order_relaxed)) return {};
  const std::span<PayloadPosition> all = positions_.values();
  if (!is_collected_) {
    const auto end = std::remove_if(all.begin(), all.end(), [](const PayloadPosition& position) {
      return position.payload == kNone.payload;
    });
    size_ = static_cast<size_t>(end - all.begin());
    is_collected_ = true;
  }
  return all.first(size_);
}

size_t PayloadList::size() { return Collect().size(); }

Status PayloadList::Read(uint32_t offset_bytes, uint32_t bytes, Visit visit) {
  const std::span<PayloadPosition> positions = Collect();
  if (positions.empty()) return OkStatus();
  StagedRows staged(&payloads_->memory(), bytes);
  return ForEachChunk(positions, &staged, [&](std::span<const PayloadPosition> chunk) {
    staged.Gather(offset_bytes);
    EMBANK_RETURN_IF_ERROR(staged.Wait());
    for (size_t i = 0; i < chunk.size(); ++i) visit(chunk[i], staged.Row(i));
    return OkStatus();
  });
}

std::span<const PayloadPosition> PayloadList::KeepLast() {
  const std::span<PayloadPosition> positions = Collect();
  std::ranges::sort(positions, [](const PayloadPosition& a, const PayloadPosition& b) {
    return std::tie(a.payload, a.number) < std::tie(b.payload, b.number);
  });
  // The device writes the rows of a list in no order.
  const auto is_last = [&](size_t i) {
    return i + 1 == positions.size() || positions[i].payload != positions[i + 1].payload;
  };
  size_t count = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const bool is_kept = Seeded(SeededBug::kPayloadWrittenTwice)
                             ? i == 0 || positions[i].payload != positions[count - 1].payload
                             : is_last(i);
    if (is_kept) positions[count++] = positions[i];
  }
  EMBANK_CHECK(count <= size_);
  size_ = count;
  return positions.first(count);
}

Status PayloadList::Write(uint32_t offset_bytes, uint32_t bytes, Fill fill) {
  const std::span<const PayloadPosition> positions = KeepLast();
  if (positions.empty()) return OkStatus();
  StagedRows staged(&payloads_->memory(), bytes);
  return ForEachChunk(positions, &staged, [&](std::span<const PayloadPosition> chunk) {
    for (size_t i = 0; i < chunk.size(); ++i) fill(chunk[i], staged.Row(i));
    staged.Scatter(offset_bytes);
    return staged.Wait();
  });
}

Status PayloadList::Step(const RowLayout& layout, const UpdateRule& rule, FillStep fill,
                         Done done) {
  const std::span<PayloadPosition> positions = Collect();
  if (positions.empty()) return OkStatus();
  size_t known = 0;
  StagedRows staged(&payloads_->memory(), StagedRows::StepBytes(layout.dim));
  Status status = ForEachChunk(positions, &staged, [&](std::span<const PayloadPosition> chunk) {
    for (size_t i = 0; i < chunk.size(); ++i) {
      staged.SetRoundingSeed(i, layout.dim, fill(chunk[i], staged.Row(i)));
    }
    staged.Step(layout, rule);
    EMBANK_RETURN_IF_ERROR(staged.Wait());
    for (size_t i = 0; i < chunk.size(); ++i) done(chunk[i], staged.IsStepped(i));
    known += chunk.size();
    return OkStatus();
  });
  for (const PayloadPosition& position : positions.subspan(known)) done(position, true);
  return status;
}

Outcome NotePayload(const Table& table, uint32_t number, Location location,
                    PayloadList::Part* payloads, uint32_t shard) {
  if (!table.mover()->rows().BeforeUpdate(location)) return Outcome::kRefused;
  payloads->Add(number, location, shard);
  return Outcome::kFound;
}

}  // namespace embank
