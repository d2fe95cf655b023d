#include "train/hot/hot_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <numeric>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/batch/lookup.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "tiers/row/row_update.h"

namespace embank {
namespace {

constexpr uint64_t kUnitBytes = 16;
// Places of ids that are found together: 16 KiB of a stack.
constexpr size_t kIdsAtOnce = 4096;
// Rows whose cache lines are fetched before they are needed: a copy takes some 10 ns, and a line of
// memory some 80 ns.
constexpr size_t kRowsAhead = 8;
constexpr uint64_t kLineBytes = 64;
// Rows that a swap reads or writes together: some MiB of the widest ones.
constexpr size_t kRowsAtOnce = 1024;

uint64_t RowBytesOf(const RowLayout& layout) {
  return (layout.payload_bytes() + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
}

// Calls use(first, places) for runs of ids.
template <typename Use>
void ForPlaces(const IdPlaces& places, KeySpan ids, Use use) {
  std::array<uint32_t, kIdsAtOnce> found;
  for (size_t begin = 0; begin < ids.size(); begin += kIdsAtOnce) {
    const size_t count = std::min(kIdsAtOnce, ids.size() - begin);
    places.PlacesOf(ids.subspan(begin, count), found.data());
    use(begin, std::span<const uint32_t>(found).first(count));
  }
}

}  // namespace

uint64_t HotRowBytes(uint32_t dim, Optimizer optimizer) {
  return RowBytesOf(MakeRowLayout(dim, ValueType::kF32, optimizer));
}

HotTable::HotTable(Table* table, const IdPlaces* places, bool has_replicas)
    : table_(table),
      places_(places),
      has_replicas_(has_replicas),
      row_bytes_(RowBytesOf(table->layout())),
      memory_(sizeof(RowHeader) + places->size() * row_bytes_),
      notes_(places->size(), kStale),
      stale_(places->size()),
      last_(places->size(), kNone),
      sum_(table->layout().dim),
      run_sum_(table->layout().dim),
      former_(table->layout().row_bytes) {
  std::iota(stale_.begin(), stale_.end(), 0u);
  const UpdateRule rule = table->rule();
  for (uint32_t place = 0; place < rows(); ++place) {
    table->InitializeVectorOf(places->ids()[place], Payload(place));
    ResetState(table->layout(), rule, Image(place));
  }
}

void HotTable::Fetch(uint32_t place, uint64_t bytes) const {
  for (uint64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(Payload(place) + at);
}

Status HotTable::Copy(KeySpan ids, float* rows, uint32_t* places) const {
  places_->PlacesOf(ids, places);
  const uint32_t* const end = places + ids.size();
  if (const uint32_t* const cold = std::find<const uint32_t*>(places, end, kNone); cold != end) {
    return DataLossError(StrCat("a hot batch has the id ", ids[static_cast<size_t>(cold - places)],
                                " of table \"", table_->name(),
                                "\", which is not hot: calibrate the log again"));
  }
  const uint32_t bytes = table_->layout().vector_bytes;
  auto* to = reinterpret_cast<std::byte*>(rows);
  for (size_t i = 0; i < ids.size(); ++i, to += bytes) {
    if (i + kRowsAhead < ids.size()) Fetch(places[i + kRowsAhead], bytes);
    std::memcpy(to, Payload(places[i]), bytes);
  }
  return OkStatus();
}

void HotTable::NoteDirty(uint32_t place) {
  if ((notes_[place] & kDirty) == 0) dirty_.push_back(place);
  notes_[place] |= kDirty | kStored;
}

void HotTable::NoteTouched(KeySpan ids) {
  ForPlaces(*places_, ids, [&](size_t, std::span<const uint32_t> places) {
    for (const uint32_t place : places) {
      EMBANK_CHECK(place != kNone);
      if ((notes_[place] & kStored) == 0) NoteDirty(place);
    }
  });
}

void HotTable::NoteStale(KeySpan ids) {
  ForPlaces(*places_, ids, [&](size_t, std::span<const uint32_t> places) {
    for (const uint32_t place : places) {
      if (place == kNone) continue;
      if ((notes_[place] & kStale) == 0) stale_.push_back(place);
      notes_[place] |= kStale | kStored;
    }
  });
}

// Chains the gradients of each row, in the order of the runs.
void HotTable::ChainGradients(const SumRun& run, std::span<const uint32_t> places, size_t begin) {
  const uint32_t dim = table_->layout().dim;
  for (size_t i = 0; i < places.size(); ++i) {
    EMBANK_CHECK(places[i] != kNone);
    if (i + kRowsAhead < places.size()) __builtin_prefetch(&last_[places[i + kRowsAhead]]);
    const auto entry = static_cast<uint32_t>(entries_.size());
    entries_.push_back({reinterpret_cast<const std::byte*>(run.sums + (begin + i) * dim), kNone});
    uint32_t& last = last_[places[i]];
    if (last == kNone) {
      firsts_.push_back({places[i], entry});
    } else {
      entries_[last].next = entry;
    }
    last = entry;
  }
}

// The sum of a chain, in runs as ApplyGradients adds them; its only gradient where it has one.
const float* HotTable::SumOf(uint32_t entry, float limit) {
  if (limit == 0.0f && entries_[entry].next == kNone) {
    return reinterpret_cast<const float*>(entries_[entry].gradient);
  }
  const uint32_t dim = table_->layout().dim;
  std::array<const std::byte*, kSumRun> run;
  bool is_first = true;
  while (entry != kNone) {
    size_t count = 0;
    for (; count < run.size() && entry != kNone; ++count) {
      run[count] = entries_[entry].gradient;
      entry = entries_[entry].next;
    }
    SumGradients(std::span(run).first(count), dim, limit, is_first ? sum_.data() : run_sum_.data());
    if (!is_first) AddSum(run_sum_.data(), dim, sum_.data());
    is_first = false;
  }
  return sum_.data();
}

uint64_t HotTable::Step(std::span<const HotSums> runs) {
  entries_.clear();
  firsts_.clear();
  for (const HotSums& sums : runs) {
    if (sums.places != nullptr) {
      ChainGradients(*sums.run, {sums.places, sums.run->ids.size()}, 0);
      continue;
    }
    ForPlaces(*places_, sums.run->ids, [&](size_t begin, std::span<const uint32_t> places) {
      ChainGradients(*sums.run, places, begin);
    });
  }
  const RowLayout& layout = table_->layout();
  const UpdateRule rule = table_->rule();
  uint64_t not_made = 0;
  for (size_t i = 0; i < firsts_.size(); ++i) {
    if (i + kRowsAhead < firsts_.size()) {
      const First& later = firsts_[i + kRowsAhead];
      Fetch(later.place, layout.payload_bytes());
      __builtin_prefetch(entries_[later.entry].gradient);
    }
    const uint32_t place = firsts_[i].place;
    last_[place] = kNone;
    const float* const sum = SumOf(firsts_[i].entry, rule.max_gradient_value);
    // Rows of floats are not rounded, and need no seed.
    const bool is_made = StepRow(layout, rule, 0, sum, Image(place), former_.data());
    if (!is_made) ++not_made;
    // The store has created a row whose step is not made, too.
    const bool is_changed = is_made || (notes_[place] & kStored) == 0;
    if (is_changed && !Seeded(SeededBug::kDirtyBitLost)) NoteDirty(place);
    if (has_replicas_) {
      crc32c_ = ExtendCrc32c(crc32c_, {Payload(place), layout.payload_bytes()});
    }
  }
  return not_made;
}

Status HotTable::ReadStale(FunctionRef<bool(Key id)> owns, Rows* rows) {
  std::vector<uint32_t> own;
  std::ranges::copy_if(stale_, std::back_inserter(own),
                       [&](uint32_t place) { return owns(places_->ids()[place]); });
  for (std::span<const uint32_t> rest = own; !rest.empty();) {
    const size_t count = std::min(kRowsAtOnce, rest.size());
    EMBANK_RETURN_IF_ERROR(ReadRows(rest.first(count), rows));
    rest = rest.subspan(count);
  }
  return OkStatus();
}

Status HotTable::ReadRows(std::span<const uint32_t> places, Rows* rows) {
  const RowLayout& layout = table_->layout();
  std::vector<Key> ids;
  for (const uint32_t place : places) ids.push_back(places_->ids()[place]);
  std::vector<std::byte> vectors(places.size() * layout.vector_bytes);
  std::vector<uint8_t> outcomes(places.size());
  EMBANK_RETURN_IF_ERROR(
      Lookup(table_, ids, MissingRule::kSkip, {vectors.data(), layout.vector_bytes}, outcomes));
  std::vector<std::byte> states(places.size() * layout.state_bytes());
  if (layout.state_floats > 0) {
    std::vector<uint8_t> of_states(places.size());
    EMBANK_RETURN_IF_ERROR(GetState(table_, ids, {states.data(), layout.state_bytes()}, of_states));
  }
  for (size_t i = 0; i < places.size(); ++i) {
    switch (static_cast<Outcome>(outcomes[i])) {
      case Outcome::kFound:
        break;
      case Outcome::kAbsent:
        continue;
      default:
        return DataLossError(StrCat("the row of id ", ids[i], " of table \"", table_->name(),
                                    "\" cannot be read for a hot batch"));
    }
    const size_t end = rows->bytes.size();
    rows->places.push_back(places[i]);
    rows->bytes.resize(end + row_bytes_);
    std::memcpy(rows->bytes.data() + end, &vectors[i * layout.vector_bytes], layout.vector_bytes);
    if (layout.state_floats == 0) continue;
    std::memcpy(rows->bytes.data() + end + layout.state_offset_bytes - sizeof(RowHeader),
                &states[i * layout.state_bytes()], layout.state_bytes());
  }
  return OkStatus();
}

void HotTable::Take(std::span<const uint32_t> places, std::span<const std::byte> bytes) {
  EMBANK_CHECK(bytes.size() == places.size() * row_bytes_);
  const uint32_t payload_bytes = table_->layout().payload_bytes();
  for (size_t i = 0; i < places.size(); ++i) {
    EMBANK_CHECK(places[i] < rows());
    std::memcpy(Payload(places[i]), &bytes[i * row_bytes_], payload_bytes);
    notes_[places[i]] |= kStored;
  }
  if (has_replicas_) crc32c_ = ExtendCrc32c(crc32c_, bytes);
}

void HotTable::ClearStale() {
  for (const uint32_t place : stale_) notes_[place] &= static_cast<uint8_t>(~kStale);
  stale_.clear();
}

StatusOr<uint64_t> HotTable::WriteBack(FunctionRef<bool(Key id)> owns) {
  const RowLayout& layout = table_->layout();
  std::vector<uint32_t> own;
  std::ranges::copy_if(dirty_, std::back_inserter(own),
                       [&](uint32_t place) { return owns(places_->ids()[place]); });
  for (std::span<const uint32_t> rest = own; !rest.empty();) {
    const size_t count = std::min(kRowsAtOnce, rest.size());
    std::vector<Key> ids;
    std::vector<std::byte> vectors;
    std::vector<std::byte> states;
    for (const uint32_t place : rest.first(count)) {
      ids.push_back(places_->ids()[place]);
      const std::byte* const payload = Payload(place);
      const std::byte* const state = payload + layout.state_offset_bytes - sizeof(RowHeader);
      vectors.insert(vectors.end(), payload, payload + layout.vector_bytes);
      states.insert(states.end(), state, state + layout.state_bytes());
    }
    RowsToWrite written(ConstRowSpan{vectors.data(), layout.vector_bytes});
    if (layout.state_floats > 0 && !Seeded(SeededBug::kStatesNotSwapped)) {
      written.states = {states.data(), layout.state_bytes()};
    }
    EMBANK_RETURN_IF_ERROR(Upsert(table_, ids, written, {}));
    rest = rest.subspan(count);
  }
  for (const uint32_t place : dirty_) notes_[place] &= static_cast<uint8_t>(~kDirty);
  dirty_.clear();
  return own.size();
}

}  // namespace embank
