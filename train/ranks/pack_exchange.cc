#include "train/ranks/pack_exchange.h"

#include <cstddef>
#include <cstring>

#include "base/check.h"
#include "base/memory/grown_array.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/packed/packed_lookup.h"

namespace embank {
namespace {

template <typename Value>
void Append(std::span<const Value> values, std::byte** to) {
  if (values.empty()) return;
  std::memcpy(*to, values.data(), values.size_bytes());
  *to += values.size_bytes();
}

template <typename Value>
std::span<const Value> ValuesAt(PartBuffer* buffer, uint64_t begin, uint32_t count) {
  return {reinterpret_cast<const Value*>(buffer->data() + begin), count};
}

// Takes `count` values from the front.
template <typename Value>
std::span<const Value> Take(size_t count, std::span<const Value>* values) {
  const std::span<const Value> first = values->first(count);
  *values = values->subspan(count);
  return first;
}

uint32_t SumOf(std::span<const uint16_t> touches) {
  uint32_t sum = 0;
  for (const uint16_t one : touches) sum += one;
  return sum;
}

}  // namespace

void PackExchange::Counts::Add(const Counts& other) {
  ids += other.ids;
  bags += other.bags;
  occurrences += other.occurrences;
  weights += other.weights;
}

// All ids of a replicated pack go to each rank.
void PackExchange::CountIds(const Pack& pack, SliceRange micro_batch, const BatchIds& ids) {
  features_in_pack_ = pack.features.size();
  EMBANK_CHECK(features_in_pack_ > 0);
  own_.places.assign(ranks() * features_in_pack_, {});
  owned_.places.assign(ranks() * features_in_pack_, {});
  for (size_t i = 0; i < features_in_pack_; ++i) {
    for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
      const SliceIds& of_slice = ids.Of(pack.features[i], slice);
      std::span<const uint16_t> touches = of_slice.touches;
      for (uint32_t rank = 0; rank < ranks(); ++rank) {
        Counts counts = {.ids = of_slice.counts[pack.is_replicated ? 0 : rank]};
        if (pack.is_pooled) {
          counts.bags = of_slice.bag_counts[rank];
          counts.occurrences = SumOf(Take(counts.ids, &touches));
          counts.weights = of_slice.bag_weights.empty() ? 0 : counts.occurrences;
        }
        PlaceOf(&own_, rank, i).counts.Add(counts);
      }
    }
  }
}

Status PackExchange::ExchangeCounts(const Pack& pack) {
  // The first number alone, where the others are 0.
  static_assert(offsetof(Counts, ids) == 0);
  const uint64_t of_feature = pack.is_pooled ? sizeof(Counts) : sizeof(Counts::ids);
  const uint64_t bytes = pack.features.size() * of_feature;
  const std::vector<uint64_t> of_ranks(ranks(), bytes);
  own_.counts.Lay(of_ranks);
  owned_.counts.Lay(of_ranks);
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    std::byte* const next = own_.counts.data() + own_.counts.parts()[rank].begin;
    for (size_t i = 0; i < pack.features.size(); ++i) {
      const size_t number = Seeded(SeededBug::kCountsSwapped) ? pack.features.size() - 1 - i : i;
      std::memcpy(next + i * of_feature, &PlaceOf(&own_, rank, number).counts, of_feature);
    }
    own_.counts.ClearPadding(rank, bytes);
  }
  EMBANK_RETURN_IF_ERROR(exchanges_.lookups->Run(own_.counts.source(), owned_.counts.target()));
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    const std::byte* const from = owned_.counts.data() + owned_.counts.parts()[rank].begin;
    for (size_t i = 0; i < pack.features.size(); ++i) {
      std::memcpy(&PlaceOf(&owned_, rank, i).counts, from + i * of_feature, of_feature);
    }
  }
  return OkStatus();
}

// Lays out ids and rows by the counts of a side. Values of more bytes come first: all are aligned.
// Returns the floats of the rows of its ids.
uint64_t PackExchange::PlanParts(const Pack& pack, bool is_one_part, Side* side) {
  std::vector<Counts> all(ranks());
  std::vector<uint64_t> ids_bytes;
  std::vector<uint64_t> rows_bytes;
  const auto rows_of = [&](const Counts& counts) {
    return pack.is_pooled ? counts.bags : counts.ids;
  };
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    for (size_t i = 0; i < pack.features.size(); ++i) all[rank].Add(PlaceOf(side, rank, i).counts);
    ids_bytes.push_back(all[rank].ids * (sizeof(Key) + sizeof(uint16_t)) +
                        all[rank].weights * sizeof(float) +
                        all[rank].occurrences * sizeof(uint16_t));
    rows_bytes.push_back(rows_of(all[rank]) * RowBytes(pack));
  }
  if (is_one_part) {
    side->ids.LayOne(ids_bytes[0], ranks());
    side->rows.LayOne(rows_bytes[0], ranks());
  } else {
    side->ids.Lay(ids_bytes);
    side->rows.Lay(rows_bytes);
  }
  uint64_t gathered = 0;
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    side->ids.ClearPadding(rank, ids_bytes[rank]);
    side->rows.ClearPadding(rank, rows_bytes[rank]);
    Place next;
    next.ids_begin = side->ids.parts()[rank].begin;
    next.rows_begin = side->rows.parts()[rank].begin;
    next.weights_begin = next.ids_begin + all[rank].ids * sizeof(Key);
    next.touches_begin = next.weights_begin + all[rank].weights * sizeof(float);
    next.bags_begin = next.touches_begin + all[rank].ids * sizeof(uint16_t);
    for (size_t i = 0; i < pack.features.size(); ++i) {
      Place& place = PlaceOf(side, rank, i);
      next.counts = place.counts;
      next.gathered_begin = gathered;
      place = next;
      next.ids_begin += place.counts.ids * sizeof(Key);
      next.weights_begin += place.counts.weights * sizeof(float);
      next.touches_begin += place.counts.ids * sizeof(uint16_t);
      next.bags_begin += place.counts.occurrences * sizeof(uint16_t);
      next.rows_begin += rows_of(place.counts) * RowBytes(pack);
      gathered += uint64_t{place.counts.ids} * pack.dim;
    }
  }
  return gathered;
}

// Bags have numbers in their slice, and get numbers in the micro-batch.
void PackExchange::WriteIds(const Pack& pack, SliceRange micro_batch, const BatchIds& ids) {
  std::byte* const begin = own_.ids.data();
  const uint32_t owners = pack.is_replicated ? 1 : ranks();
  std::vector<uint16_t> numbers;
  for (size_t i = 0; i < pack.features.size(); ++i) {
    std::vector<Place> next;
    for (uint32_t rank = 0; rank < owners; ++rank) {
      next.push_back(PlaceOf(&own_, rank, i));
      next.back().counts.bags = 0;
    }
    for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
      const SliceIds& of_slice = ids.Of(pack.features[i], slice);
      KeySpan keys = of_slice.ids;
      std::span<const uint16_t> touches = of_slice.touches;
      std::span<const uint16_t> bags = of_slice.bags;
      std::span<const float> weights = of_slice.bag_weights;
      for (uint32_t rank = 0; rank < owners; ++rank) {
        Place& place = next[rank];
        const auto append = [&](auto values, uint64_t* at) {
          std::byte* to = begin + *at;
          Append(values, &to);
          *at = static_cast<uint64_t>(to - begin);
        };
        const uint32_t count = of_slice.counts[rank];
        const std::span<const uint16_t> of_keys = Take(count, &touches);
        append(Take(count, &keys), &place.ids_begin);
        append(of_keys, &place.touches_begin);
        if (!pack.is_pooled) continue;
        const std::span<const uint16_t> of_rank = Take(SumOf(of_keys), &bags);
        numbers.assign(of_rank.begin(), of_rank.end());
        for (uint16_t& number : numbers) {
          number = static_cast<uint16_t>(number + place.counts.bags);
        }
        place.counts.bags += of_slice.bag_counts[rank];
        append(std::span<const uint16_t>(numbers), &place.bags_begin);
        if (!weights.empty()) append(Take(of_rank.size(), &weights), &place.weights_begin);
      }
    }
  }
}

// Rows of a replicated pack are used where this rank looks them up.
void PackExchange::GivePlaces(const Pack& pack, SliceRange micro_batch, BatchIds* ids) {
  const auto float_at = [](Side* side, uint64_t bytes) {
    return reinterpret_cast<float*>(side->rows.data() + bytes);
  };
  const uint32_t owners = pack.is_replicated ? 1 : ranks();
  for (size_t i = 0; i < pack.features.size(); ++i) {
    for (uint32_t owner = 0; owner < owners; ++owner) {
      float* sums = float_at(&own_, PlaceOf(&own_, owner, i).rows_begin);
      float* rows =
          pack.is_replicated ? float_at(&owned_, PlaceOf(&owned_, rank(), i).rows_begin) : sums;
      for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
        SliceIds& of_slice = ids->Of(pack.features[i], slice);
        of_slice.rows[owner] = rows;
        of_slice.sums[owner] = sums;
        rows += uint64_t{of_slice.row_counts()[owner]} * pack.dim;
        sums += uint64_t{of_slice.row_counts()[owner]} * pack.dim;
      }
    }
  }
}

// The own part of the other side has no use, but for the place of the rows that are gathered.
void PackExchange::KeepOwn() {
  const uint32_t own = rank();
  for (Side* const side : {&own_, &owned_}) {
    side->ids.KeepPart(own);
    side->rows.KeepPart(own);
  }
  for (size_t i = 0; i < features_in_pack_; ++i) {
    PlaceOf(&own_, own, i).gathered_begin = PlaceOf(&owned_, own, i).gathered_begin;
  }
}

Status PackExchange::SendIds(const Pack& pack, SliceRange micro_batch, BatchIds* ids) {
  CountIds(pack, micro_batch, *ids);
  EMBANK_RETURN_IF_ERROR(ExchangeCounts(pack));
  PlanParts(pack, pack.is_replicated, &own_);
  const uint64_t gathered = PlanParts(pack, false, &owned_);
  if (pack.is_pooled) Grow(gathered, &gathered_);
  if (KeepsOwn(pack)) KeepOwn();
  WriteIds(pack, micro_batch, *ids);
  GivePlaces(pack, micro_batch, ids);
  return exchanges_.lookups->Run(own_.ids.source(), owned_.ids.target());
}

OwnedBags PackExchange::BagsOf(const Pack& pack, size_t number, uint32_t rank) {
  Side* const side = OwnedSide(pack, rank);
  const Place& place = PlaceOf(side, rank, number);
  const Counts& counts = place.counts;
  return {.touches = ValuesAt<uint16_t>(&side->ids, place.touches_begin, counts.ids),
          .bags = ValuesAt<uint16_t>(&side->ids, place.bags_begin, counts.occurrences),
          .weights = ValuesAt<float>(&side->ids, place.weights_begin, counts.weights),
          .count = counts.bags,
          .dim = pack.dim};
}

// The rows that a rank gets, and then its sums.
float* PackExchange::RowsOf(const Pack& pack, size_t number, uint32_t rank) {
  Side* const side = OwnedSide(pack, rank);
  return reinterpret_cast<float*>(side->rows.data() + PlaceOf(side, rank, number).rows_begin);
}

Status PackExchange::Gather(const Pack& pack, MissingRule rule) {
  EMBANK_CHECK(pack.features.size() == features_in_pack_);
  std::vector<LookupFeature> features;
  for (size_t i = 0; i < pack.features.size(); ++i) {
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      Side* const side = OwnedSide(pack, rank);
      const Place& place = PlaceOf(side, rank, i);
      LookupFeature& feature = features.emplace_back();
      feature.table = features_[pack.features[i]].table;
      feature.keys = ValuesAt<Key>(&side->ids, place.ids_begin, place.counts.ids);
      feature.touches = ValuesAt<uint16_t>(&side->ids, place.touches_begin, place.counts.ids);
      float* const rows =
          pack.is_pooled ? gathered_.data() + place.gathered_begin : RowsOf(pack, i, rank);
      feature.rows = {reinterpret_cast<std::byte*>(rows), RowBytes(pack)};
    }
  }
  EMBANK_RETURN_IF_ERROR(LookupPacked(features, rule));
  for (size_t i = 0; pack.is_pooled && i < pack.features.size(); ++i) {
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      const Place& place = PlaceOf(OwnedSide(pack, rank), rank, i);
      SumRowsOfBags(BagsOf(pack, i, rank), gathered_.data() + place.gathered_begin,
                    RowsOf(pack, i, rank));
    }
  }
  return OkStatus();
}

Status PackExchange::SendRows(const Pack& pack) {
  return pack.is_replicated ? OkStatus()
                            : floats_.Run(exchanges_.lookups, &owned_.rows, &own_.rows);
}

Status PackExchange::SendSums(const Pack& pack) {
  EMBANK_CHECK(pack.features.size() == features_in_pack_);
  return floats_.Run(exchanges_.sums, &own_.rows, &owned_.rows);
}

SumRun PackExchange::RunOf(const Pack& pack, size_t number, uint32_t rank) {
  Side* const side = OwnedSide(pack, rank);
  const Place& place = PlaceOf(side, rank, number);
  float* sums = RowsOf(pack, number, rank);
  if (pack.is_pooled) {
    float* const of_ids = gathered_.data() + place.gathered_begin;
    SumGradientsOfIds(BagsOf(pack, number, rank), sums, of_ids);
    sums = of_ids;
  }
  return {.feature = pack.features[number],
          .ids = {reinterpret_cast<Key*>(side->ids.data() + place.ids_begin), place.counts.ids},
          .sums = sums};
}

}  // namespace embank
