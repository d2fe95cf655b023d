#include "store/packed/packed_lookup.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/late_object.h"
#include "base/memory/scratch.h"
#include "base/status_macros.h"
#include "store/batch/batch.h"
#include "store/batch/lookup.h"
#include "store/batch/write_scope.h"
#include "store/device/caller_stream.h"
#include "store/device/device_lookup.h"
#include "store/device/row_transfer.h"
#include "store/packed/bag_sums.h"
#include "store/packed/call_status.h"
#include "store/packed/table_groups.h"
#include "store/payload/payload_rows.h"

namespace embank {
namespace {

// Vectors of a chunk stay in the second-level cache until they are pooled. A chunk that threads
// share has so many keys that they do (Batch::kSharedKeys), where rows are short.
constexpr uint64_t kChunkBytes = uint64_t{256} << 10;
constexpr uint64_t kSharedChunkBytes = uint64_t{4} << 20;

uint64_t ChunkKeys(const TableGroup& group) {
  const uint64_t vector_bytes = group.table->layout().vector_bytes;
  const uint64_t bytes = group.is_large ? kSharedChunkBytes : kChunkBytes;
  const uint64_t keys_max = group.is_large ? 2 * Batch::kSharedKeys : Batch::kSharedKeys / 2;
  return std::clamp<uint64_t>(bytes / vector_bytes, 1, keys_max);
}

// Keys whose rows are added from their slots at once: for readers hold up the reuse of memory.
constexpr uint64_t kKeysFromSlots = 4096;

// The vectors of a chunk. Large tables are looked up one after the other, and share them.
using ChunkVectors = Scratch<float, 4>;

// Whether rows of bags are made in host memory and sent to the device.
bool IsSent(const LookupFeature& feature) {
  return feature.is_on_device && feature.pooling != Pooling::kNone;
}

// Rows of a feature's bags in host memory, and the caller's on the device.
struct PooledRows {
  DeviceArray callers;
  RowSpan rows;
  uint64_t bags;
};

// The features of one table.
class TableLookup {
 public:
  TableLookup(const TableGroup& group, std::span<const LookupFeature> features, MissingRule rule)
      : group_(group),
        features_(features),
        rule_(rule),
        chunk_keys_(ChunkKeys(group)),
        total_(group.table, {}, {}) {}

  // The number of floats that the vectors of its chunks take.
  uint64_t ChunkFloats() const {
    uint64_t keys = 0;
    for (const size_t i : group_.features) {
      if (!GoesByChunks(features_[i])) continue;
      keys = std::max<uint64_t>(keys, std::min(features_[i].keys.size(), chunk_keys_));
    }
    return (keys * group_.table->layout().vector_bytes + 3) / sizeof(float);
  }

  // Allocates all that Run needs but the vectors of chunks. kResourceExhausted.
  Status Allocate() {
    uint64_t without_outcomes = 0;
    for (const size_t i : group_.features) {
      const LookupFeature& feature = features_[i];
      if (!GoesByChunks(feature) || !feature.outcomes.empty()) continue;
      without_outcomes =
          std::max<uint64_t>(without_outcomes, std::min(feature.keys.size(), chunk_keys_));
    }
    EMBANK_RETURN_IF_ERROR(outcomes_.Allocate(without_outcomes));
    return AllocateForDevice();
  }

  // Appends batches of the table's features to those whose rows are read together. `vectors` are
  // those of Run. After Allocate.
  void AddLeading(std::span<float> vectors, std::vector<LeadingBatch>* batches,
                  std::vector<TableKeys>* keys) {
    for (size_t i = 0; i < group_.features.size(); ++i) {
      const LookupFeature& feature = features_[group_.features[i]];
      if (!MayReadLeading(*group_.table, RuleOf(feature)) || !LeadsIn(feature, i == 0)) continue;
      const RowSpan rows = AreRows(feature) ? feature.rows : VectorRows(vectors);
      if (leading_ == nullptr) {
        leading_ = std::make_unique<LateObject<Batch>[]>(group_.features.size());
      }
      LateObject<Batch>* const batch = &leading_[i];
      batch->Make(group_.table, feature.keys, feature.outcomes);
      batch->get()->set_touches(feature.touches);
      batches->push_back({batch->get(), rows});
      keys->emplace_back(*group_.table, feature.keys, group_.table->layout().vector_end_bytes());
    }
  }

  // Pools the features in front whose rows go to the device, up to the first without pooling, whose
  // rows the store's stream writes to the caller's memory. `vectors`: ChunkFloats of them.
  void PoolFirst(std::span<float> vectors) {
    while (next_ < group_.features.size() && IsSent(features_[group_.features[next_]])) {
      LookUpNext(vectors);
    }
  }
  // Looks up all features that are left, in order, and sends the rows of bags.
  void Run(std::span<float> vectors) {
    while (next_ < group_.features.size()) LookUpNext(vectors);
    for (const PooledRows& pooled : pooled_) SendBags(pooled);
  }

  // Counts the lookup, which took so long. Returns the status.
  Status Finish(std::vector<KeySpan>* keys, uint64_t nanoseconds) {
    keys->clear();
    for (const size_t i : group_.features) keys->push_back(features_[i].keys);
    CountLookup(&total_, *keys, more_touches_, nanoseconds);
    return call_status_;
  }

 private:
  // The rule for the keys of a feature: bags have zeros for keys that are skipped.
  MissingRule RuleOf(const LookupFeature& feature) const {
    const bool is_pooled = feature.pooling != Pooling::kNone;
    return is_pooled && rule_ == MissingRule::kSkip ? MissingRule::kZero : rule_;
  }

  // Whether the rows of the keys are those of the caller, as they are.
  static bool AreRows(const LookupFeature& feature) {
    return feature.pooling == Pooling::kNone || BagSums(feature).AreRows();
  }
  RowSpan VectorRows(std::span<float> vectors) const {
    return {reinterpret_cast<std::byte*>(vectors.data()), group_.table->layout().vector_bytes};
  }
  // Whether the rows of a feature may be read before those that the features before it create. A
  // table that forgets has to know all keys of a batch. The vectors of bags have one place, which
  // the first feature has.
  bool LeadsIn(const LookupFeature& feature, bool is_first) const {
    if (feature.is_on_device || feature.has_padding() || group_.table->forgetter() != nullptr ||
        feature.keys.size() > std::min<uint64_t>(kLeadingKeysMax, chunk_keys_)) {
      return false;
    }
    return is_first || AreRows(feature);
  }

  // Whether rows have another place, or none, in the caller's memory.
  static bool GoesByChunks(const LookupFeature& feature) {
    return feature.pooling != Pooling::kNone || (feature.has_padding() && !feature.is_on_device);
  }

  // Allocates rows of bags and one of zeros, and the batches of features without pooling.
  Status AllocateForDevice() {
    const uint32_t dim = group_.table->layout().dim;
    uint64_t floats = 0;
    uint64_t zeros = 0;
    size_t sent = 0;
    for (const size_t i : group_.features) {
      const LookupFeature& feature = features_[i];
      if (IsSent(feature)) {
        floats += feature.bags() * dim;
        ++sent;
      }
      if (!feature.is_on_device || IsSent(feature)) continue;
      if (feature.has_padding()) zeros = dim;
      device_batches_.push_back(
          std::make_unique<DeviceLookupBatch>(group_.table, feature.keys, rule_, ArrayOf(feature),
                                              feature.row_numbers, feature.outcomes));
      EMBANK_RETURN_IF_ERROR(device_batches_.back()->Allocate());
    }
    pooled_.reserve(sent);
    EMBANK_RETURN_IF_ERROR(zeros_.Allocate(zeros));
    return bag_floats_.Allocate(floats);
  }

  static DeviceArray ArrayOf(const LookupFeature& feature) {
    return {feature.rows.data, feature.rows.stride_bytes};
  }
  PayloadMemory* memory() const { return &group_.table->store().payloads->memory(); }

  void LookUpNext(std::span<float> vectors) {
    KeepGraver(&call_status_, LookUp(group_.features[next_++], vectors));
  }

  Status LookUp(size_t number, std::span<float> vectors) {
    const LookupFeature& feature = features_[number];
    OutcomeTally tally;
    Status status = feature.is_on_device ? LookUpToDevice(feature, vectors, &tally)
                                         : LookUpToHost(feature, vectors, &tally);
    total_.Add(tally);
    if (!status.ok() || !feature.outcomes.empty()) return OfFeature(number, status);
    Batch silent(group_.table, feature.keys, {});
    silent.Add(tally);
    return OfFeature(number, silent.RefusedStatus());
  }

  Status LookUpToHost(const LookupFeature& feature, std::span<float> vectors, OutcomeTally* tally) {
    if (feature.pooling != Pooling::kNone) return LookUpBags(feature, vectors, tally);
    if (feature.has_padding()) return LookUpPadded(feature, vectors, tally);
    for (const uint16_t touches : feature.touches) more_touches_ += touches - 1u;
    return Answer({feature.keys, feature.touches, feature.outcomes, feature.rows}, rule_, 0, tally);
  }

  Status LookUpToDevice(const LookupFeature& feature, std::span<float> vectors,
                        OutcomeTally* tally) {
    if (feature.pooling != Pooling::kNone) {
      LookupFeature on_host = feature;
      on_host.rows = RowsOfBags(feature.bags());
      EMBANK_RETURN_IF_ERROR(LookUpBags(on_host, vectors, tally));
      pooled_.push_back({ArrayOf(feature), on_host.rows, feature.bags()});
      return OkStatus();
    }
    DeviceLookupBatch& batch = *device_batches_[next_device_batch_++];
    EMBANK_RETURN_IF_ERROR(batch.Run());
    *tally = batch.tally();
    if (feature.has_padding()) SendPaddingRows(feature);
    return OkStatus();
  }

  // Rows of the next bags, for the device.
  RowSpan RowsOfBags(uint64_t bags) {
    const uint32_t dim = group_.table->layout().dim;
    float* const first = bag_floats_.values().data() + next_float_;
    next_float_ += bags * dim;
    return {reinterpret_cast<std::byte*>(first), dim * sizeof(float)};
  }

  void SendBags(const PooledRows& pooled) {
    SendRows(
        memory(), {pooled.rows.data, pooled.rows.stride_bytes},
        group_.table->layout().dim * sizeof(float), pooled.bags,
        [](uint64_t bag) { return static_cast<uint32_t>(bag); }, pooled.callers);
  }

  void SendPaddingRows(const LookupFeature& feature) {
    std::ranges::fill(zeros_.values(), 0.0f);
    auto key = feature.row_numbers.begin();
    uint32_t row = 0;
    SendRows(
        memory(), {reinterpret_cast<const std::byte*>(zeros_.values().data()), 0},
        group_.table->layout().vector_bytes, feature.padded_rows - feature.row_numbers.size(),
        [&](uint64_t) {
          for (; key != feature.row_numbers.end() && *key == row; ++key) ++row;
          return row++;
        },
        ArrayOf(feature));
  }

  Status LookUpBags(const LookupFeature& feature, std::span<float> vectors, OutcomeTally* tally) {
    const BagSums sums(feature);
    if (sums.AreRows()) return LookUpSingleKeys(feature, sums, tally);
    sums.Begin();
    // Threads share chunks, and their sums.
    const bool is_shared = group_.is_large && total_.IsShared(feature.keys.size());
    const bool can_add = !HasLeading() && !is_shared && sums.CanAddFromSlots();
    Status status = can_add ? PoolFromSlots(feature, sums, vectors, tally)
                            : PoolChunks(feature, sums, 0, feature.keys.size(), vectors, tally);
    sums.End();
    return status;
  }

  // Pools `count` keys from `begin` on by chunks.
  Status PoolChunks(const LookupFeature& feature, const BagSums& sums, uint64_t begin,
                    uint64_t count, std::span<float> vectors, OutcomeTally* tally) {
    Status status;
    for (const uint64_t end = begin + count; begin < end; begin += chunk_keys_) {
      const uint64_t some = std::min<uint64_t>(chunk_keys_, end - begin);
      status.Update(PoolChunk(feature, sums, begin, some, vectors, tally));
    }
    return status;
  }

  // Pools all keys, those whose rows are in DRAM as BagSums::AddFromSlots does. A pass of it ends
  // at a row that is not there: some keys from that one on go by a chunk, more of them while passes
  // add fewer than the chunk before had. Short passes follow, because the rest of a pass that ended
  // is walked, too. Records of a log are read together, so that their chunks are long.
  Status PoolFromSlots(const LookupFeature& feature, const BagSums& sums, std::span<float> vectors,
                       OutcomeTally* tally) {
    constexpr uint64_t kChunkMin = 32;
    constexpr uint64_t kPassMin = 256;
    const uint64_t chunk_min = group_.table->rows_in_log() == 0 ? kChunkMin : chunk_keys_;
    uint64_t chunk = chunk_min / 2, pass = kKeysFromSlots;
    Status status;
    for (uint64_t begin = 0; begin < feature.keys.size();) {
      const uint64_t offered = std::min(pass, feature.keys.size() - begin);
      const uint64_t added = AddFromSlots(feature, sums, begin, offered, tally);
      begin += added;
      if (added == offered) {
        pass = std::min<uint64_t>(4 * pass, kKeysFromSlots);
        chunk = chunk_min / 2;
        continue;
      }
      pass = kPassMin;
      chunk = added < chunk ? std::min<uint64_t>(2 * chunk, chunk_keys_) : chunk_min;
      const uint64_t count = std::min<uint64_t>(chunk, feature.keys.size() - begin);
      status.Update(PoolChunks(feature, sums, begin, count, vectors, tally));
      begin += count;
    }
    return status;
  }

  // Pools leading keys of the `count` from `begin` on as BagSums::AddFromSlots does. Returns their
  // number.
  uint64_t AddFromSlots(const LookupFeature& feature, const BagSums& sums, uint64_t begin,
                        uint64_t count, OutcomeTally* tally) {
    const OutcomeSpan outcomes =
        feature.outcomes.empty() ? OutcomeSpan() : feature.outcomes.subspan(begin, count);
    Batch batch(group_.table, feature.keys.subspan(begin, count), outcomes);
    sums.AddFromSlots(&batch, begin);
    if (batch.answered() == 0) return 0;
    tally->Add(batch.tally(), begin);
    const Batch added(group_.table, batch.keys().first(batch.answered()), {});
    WriteScope scope(added);
    // Only changes of rows on a device fail.
    EMBANK_CHECK(scope.Settle().ok());
    return batch.answered();
  }

  // Bags of one key each: their rows are the sums but for zeros, which have the sign of +0.
  Status LookUpSingleKeys(const LookupFeature& feature, const BagSums& sums, OutcomeTally* tally) {
    Status status;
    for (uint64_t begin = 0; begin < feature.keys.size(); begin += chunk_keys_) {
      const uint64_t count = std::min<uint64_t>(chunk_keys_, feature.keys.size() - begin);
      const RowSpan rows = {feature.rows.Row(begin), feature.rows.stride_bytes};
      const Status answered = AnswerForSums(feature, begin, count, rows, tally);
      answered.ok() ? sums.AddZero(begin, count) : sums.Clear(begin, count);
      status.Update(answered);
    }
    return status;
  }

  OutcomeSpan OutcomesOf(const LookupFeature& feature, uint64_t begin, uint64_t count) {
    return feature.outcomes.empty() ? OutcomeSpan(outcomes_.values()).first(count)
                                    : feature.outcomes.subspan(begin, count);
  }

  // Keys between padding: their rows are copied to places that are not at equal distances.
  Status LookUpPadded(const LookupFeature& feature, std::span<float> vectors, OutcomeTally* tally) {
    const uint64_t vector_bytes = group_.table->layout().vector_bytes;
    auto* const first = reinterpret_cast<std::byte*>(vectors.data());
    Status status;
    for (uint64_t begin = 0; begin < feature.keys.size(); begin += chunk_keys_) {
      const uint64_t count = std::min<uint64_t>(chunk_keys_, feature.keys.size() - begin);
      const OutcomeSpan outcomes = OutcomesOf(feature, begin, count);
      const Status answered =
          Answer({feature.keys.subspan(begin, count), {}, outcomes, {first, vector_bytes}}, rule_,
                 begin, tally);
      status.Update(answered);
      for (uint64_t i = 0; answered.ok() && i < count; ++i) {
        if (!HasAnswer(static_cast<Outcome>(outcomes[i]))) continue;
        std::memcpy(feature.rows.Row(feature.row_number(begin + i)), first + i * vector_bytes,
                    vector_bytes);
      }
    }
    ClearPaddingRows(feature);
    return status;
  }

  // Whether a row is written for a key with this outcome.
  bool HasAnswer(Outcome outcome) const {
    return outcome == Outcome::kFound || outcome == Outcome::kCreated ||
           outcome == Outcome::kRefused ||
           (outcome == Outcome::kAbsent && rule_ != MissingRule::kSkip);
  }

  void ClearPaddingRows(const LookupFeature& feature) const {
    const uint64_t vector_bytes = group_.table->layout().vector_bytes;
    auto next = feature.row_numbers.begin();
    for (uint64_t row = 0; row < feature.padded_rows; ++row) {
      if (next != feature.row_numbers.end() && *next == row) {
        ++next;
      } else {
        std::memset(feature.rows.Row(row), 0, vector_bytes);
      }
    }
  }

  Status PoolChunk(const LookupFeature& feature, const BagSums& sums, uint64_t begin,
                   uint64_t count, std::span<float> vectors, OutcomeTally* tally) {
    const RowSpan rows = VectorRows(vectors);
    Status status = AnswerForSums(feature, begin, count, rows, tally);
    if (status.ok()) sums.Add(begin, count, rows.data, group_.is_large);
    return status;
  }

  // Answers the keys [begin, begin + count). A key that cannot be read gets a row of zeros.
  Status AnswerForSums(const LookupFeature& feature, uint64_t begin, uint64_t count, RowSpan rows,
                       OutcomeTally* tally) {
    const OutcomeSpan outcomes = OutcomesOf(feature, begin, count);
    const uint64_t unread_before = tally->unread();
    Status status = Answer({feature.keys.subspan(begin, count), {}, outcomes, rows},
                           RuleOf(feature), begin, tally);
    if (tally->unread() > unread_before) {
      for (uint64_t i = 0; i < count; ++i) {
        if (!IsUnread(static_cast<Outcome>(outcomes[i]))) continue;
        std::memset(rows.Row(i), 0, group_.table->layout().vector_bytes);
      }
    }
    return status;
  }

  // Keys of a feature, and the places of their answers.
  struct Keys {
    KeySpan keys;
    std::span<const uint16_t> touches;
    OutcomeSpan outcomes;
    RowSpan rows;

    Keys Part(uint64_t begin, uint64_t count) const {
      return {keys.subspan(begin, count),
              touches.empty() ? touches : touches.subspan(begin, count),
              outcomes.empty() ? outcomes : outcomes.subspan(begin, count),
              {rows.Row(begin), rows.stride_bytes}};
    }
  };

  // Answers keys of a feature, from position `begin` on. If there is no memory for their scratch,
  // nothing was done of them, but maybe of others: so they are answered a few at a time.
  Status Answer(const Keys& keys, MissingRule rule, uint64_t begin, OutcomeTally* tally) {
    const uint64_t done = HasLeading() ? TakeLeading(tally) : 0;
    if (done == keys.keys.size()) return OkStatus();
    const Keys all = keys.Part(done, keys.keys.size() - done);
    begin += done;
    OutcomeTally answered;
    Status status = AnswerAtOnce(all, rule, &answered);
    tally->Add(answered, begin);
    const bool is_untouched = answered.counts == OutcomeTally().counts;
    if (!IsResourceExhausted(status) || !is_untouched) return status;
    status = OkStatus();
    for (uint64_t i = 0; i < all.keys.size(); i += kInlineKeys) {
      const uint64_t count = std::min<uint64_t>(kInlineKeys, all.keys.size() - i);
      OutcomeTally piece;
      status.Update(AnswerAtOnce(all.Part(i, count), rule, &piece));
      tally->Add(piece, begin + i);
    }
    return status;
  }

  // Whether leading positions of the feature that is looked up were answered with those of others.
  bool HasLeading() const { return leading_ != nullptr && leading_[next_ - 1].get() != nullptr; }
  // Adds the outcomes of the leading positions of the feature that is looked up, which is one chunk
  // then; returns their number. A store without a log has no debts and no rows that cannot be read,
  // so that the places of outcomes of a feature without them stay unset.
  uint64_t TakeLeading(OutcomeTally* tally) {
    const Batch& batch = *leading_[next_ - 1].get();
    tally->Add(batch.tally());
    return batch.answered();
  }

  Status AnswerAtOnce(const Keys& some, MissingRule rule, OutcomeTally* tally) {
    Batch batch(group_.table, some.keys, some.outcomes);
    batch.set_touches(some.touches);
    WriteScope scope(batch);
    const Status answered = AnswerLookup(&batch, &scope, rule, some.rows);
    *tally = batch.tally();
    const Status settled = scope.Settle();
    return answered.ok() ? settled : answered;
  }

  const TableGroup& group_;
  const std::span<const LookupFeature> features_;
  const MissingRule rule_;
  const uint64_t chunk_keys_;
  Batch total_;  // of no keys: it sums the tallies
  uint64_t more_touches_ = 0;
  Status call_status_;
  Scratch<uint8_t, 16> outcomes_;
  size_t next_ = 0;                               // of the group's features
  std::unique_ptr<LateObject<Batch>[]> leading_;  // of the group's features
  // For the device: rows of bags, those that are pooled, and a row of zeros.
  Scratch<float, 1> bag_floats_;
  size_t next_float_ = 0;
  std::vector<PooledRows> pooled_;
  Scratch<float, 1> zeros_;
  std::vector<std::unique_ptr<DeviceLookupBatch>> device_batches_;
  size_t next_device_batch_ = 0;
};

// `callers`: the stream of features on the device; nullptr: there are none.
Status LookUpAll(std::span<const LookupFeature> features, MissingRule rule, CallerStream* callers) {
  const Clock& clock = *features[0].table->store().clock;
  const uint64_t begin_ns = clock.NowNs();
  const std::vector<TableGroup> groups = GroupByTable(features);
  std::deque<TableLookup> lookups;
  std::deque<ChunkVectors> small_vectors;
  uint64_t shared_floats = 0;
  for (const TableGroup& group : groups) {
    EMBANK_RETURN_IF_ERROR(group.table->CheckAlive());
    const TableLookup& lookup = lookups.emplace_back(group, features, rule);
    EMBANK_RETURN_IF_ERROR(lookups.back().Allocate());
    const uint64_t floats = lookup.ChunkFloats();
    if (group.is_large) shared_floats = std::max(shared_floats, floats);
    EMBANK_RETURN_IF_ERROR(small_vectors.emplace_back().Allocate(group.is_large ? 0 : floats));
  }
  ChunkVectors shared_vectors;
  EMBANK_RETURN_IF_ERROR(shared_vectors.Allocate(shared_floats));
  std::vector<KeySpan> keys;
  keys.reserve(features.size());
  const auto vectors_of = [&](size_t i) {
    return (groups[i].is_large ? shared_vectors : small_vectors[i]).values();
  };
  if (callers == nullptr && AreFew(groups)) {
    std::vector<LeadingBatch> leading;
    std::vector<TableKeys> leading_keys;
    leading.reserve(features.size());
    leading_keys.reserve(features.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      lookups[i].AddLeading(vectors_of(i), &leading, &leading_keys);
    }
    ReadLeading(leading, leading_keys);
  }
  if (callers != nullptr) {
    EMBANK_RETURN_IF_ERROR(callers->Check());
    // First, while a wait for rows on the device is no wait for the caller's work.
    if (std::ranges::any_of(features, IsSent)) {
      ForEachTable(groups, [&](size_t i) { lookups[i].PoolFirst(vectors_of(i)); });
    }
  }
  Status status = callers == nullptr ? OkStatus() : callers->Join();
  if (status.ok()) {
    ForEachTable(groups, [&](size_t i) { lookups[i].Run(vectors_of(i)); });
    if (callers != nullptr) status = callers->Release();
  }
  const uint64_t call_ns = clock.NowNs() - begin_ns;
  for (size_t i = 0; i < groups.size(); ++i) {
    KeepGraver(&status, lookups[i].Finish(&keys, ShareNs(call_ns, groups[i], groups)));
  }
  return status;
}

}  // namespace

Status LookupPacked(std::span<const LookupFeature> features, MissingRule rule) {
  return features.empty() ? OkStatus() : LookUpAll(features, rule, nullptr);
}

Status LookupPackedToDevice(std::span<const LookupFeature> features, MissingRule rule,
                            void* stream) {
  if (features.empty()) return OkStatus();
  CallerStream callers(&features[0].table->store().payloads->memory().device(), stream);
  return LookUpAll(features, rule, &callers);
}

}  // namespace embank
