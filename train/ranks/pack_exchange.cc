#include "train/ranks/pack_exchange.h"

#include <cstring>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/packed/packed_lookup.h"

namespace embank {
namespace {

// The ids of a slice that go to a rank.
struct IdsOfRank {
  std::span<const Key> ids;
  std::span<const uint16_t> touches;
};

IdsOfRank IdsFor(const SliceIds& slice, uint32_t rank, bool is_replicated) {
  if (is_replicated) return {slice.ids, slice.touches};
  uint32_t begin = 0;
  for (uint32_t owner = 0; owner < rank; ++owner) begin += slice.counts[owner];
  return {slice.ids.subspan(begin, slice.counts[rank]),
          slice.touches.subspan(begin, slice.counts[rank])};
}

void Append(const void* from, uint64_t bytes, std::byte** to) {
  if (bytes == 0) return;
  std::memcpy(*to, from, bytes);
  *to += bytes;
}

}  // namespace

// All ids of a replicated pack go to each rank.
void PackExchange::CountIds(const Pack& pack, SliceRange micro_batch, const BatchIds& ids) {
  features_in_pack_ = pack.features.size();
  EMBANK_CHECK(features_in_pack_ > 0);
  own_.places.assign(ranks() * features_in_pack_, {});
  owned_.places.assign(ranks() * features_in_pack_, {});
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    for (size_t i = 0; i < features_in_pack_; ++i) {
      uint32_t& count = PlaceOf(&own_, rank, i).count;
      for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
        count += ids.Of(pack.features[i], slice).counts[pack.is_replicated ? 0 : rank];
      }
    }
  }
}

Status PackExchange::ExchangeCounts(const Pack& pack) {
  const uint64_t bytes = pack.features.size() * sizeof(uint32_t);
  const std::vector<uint64_t> of_ranks(ranks(), bytes);
  own_.counts.Lay(of_ranks);
  owned_.counts.Lay(of_ranks);
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    std::byte* next = own_.counts.data() + own_.counts.parts()[rank].begin;
    for (size_t i = 0; i < pack.features.size(); ++i) {
      const size_t number = Seeded(SeededBug::kCountsSwapped) ? pack.features.size() - 1 - i : i;
      Append(&PlaceOf(&own_, rank, number).count, sizeof(uint32_t), &next);
    }
    own_.counts.ClearPadding(rank, bytes);
  }
  EMBANK_RETURN_IF_ERROR(exchange_->Run(own_.counts.source(), owned_.counts.target()));
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    const std::byte* const from = owned_.counts.data() + owned_.counts.parts()[rank].begin;
    for (size_t i = 0; i < pack.features.size(); ++i) {
      std::memcpy(&PlaceOf(&owned_, rank, i).count, from + i * sizeof(uint32_t), sizeof(uint32_t));
    }
  }
  return OkStatus();
}

// Lays out ids, touches and rows by the counts of a side.
void PackExchange::PlanParts(const Pack& pack, bool is_one_part, Side* side) {
  std::vector<uint64_t> ids_bytes;
  std::vector<uint64_t> rows_bytes;
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    uint64_t count = 0;
    for (size_t i = 0; i < pack.features.size(); ++i) {
      Place& place = PlaceOf(side, rank, i);
      place.ids_begin = count * sizeof(Key);
      place.touches_begin = count * sizeof(uint16_t);
      place.rows_begin = count * RowBytes(pack);
      count += place.count;
    }
    for (size_t i = 0; i < pack.features.size(); ++i) {
      PlaceOf(side, rank, i).touches_begin += count * sizeof(Key);
    }
    ids_bytes.push_back(count * (sizeof(Key) + sizeof(uint16_t)));
    rows_bytes.push_back(count * RowBytes(pack));
  }
  if (is_one_part) {
    side->ids.LayOne(ids_bytes[0], ranks());
    side->rows.LayOne(rows_bytes[0], ranks());
  } else {
    side->ids.Lay(ids_bytes);
    side->rows.Lay(rows_bytes);
  }
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    side->ids.ClearPadding(rank, ids_bytes[rank]);
    side->rows.ClearPadding(rank, rows_bytes[rank]);
    for (size_t i = 0; i < pack.features.size(); ++i) {
      Place& place = PlaceOf(side, rank, i);
      place.ids_begin += side->ids.parts()[rank].begin;
      place.touches_begin += side->ids.parts()[rank].begin;
      place.rows_begin += side->rows.parts()[rank].begin;
    }
  }
}

void PackExchange::WriteIds(const Pack& pack, SliceRange micro_batch, const BatchIds& ids) {
  const uint32_t ranks_written = pack.is_replicated ? 1 : ranks();
  for (uint32_t rank = 0; rank < ranks_written; ++rank) {
    for (size_t i = 0; i < pack.features.size(); ++i) {
      const Place& place = PlaceOf(&own_, rank, i);
      std::byte* next_id = own_.ids.data() + place.ids_begin;
      std::byte* next_touches = own_.ids.data() + place.touches_begin;
      for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
        const IdsOfRank some = IdsFor(ids.Of(pack.features[i], slice), rank, pack.is_replicated);
        Append(some.ids.data(), some.ids.size_bytes(), &next_id);
        Append(some.touches.data(), some.touches.size_bytes(), &next_touches);
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
      float* rows = pack.is_replicated
                        ? float_at(&owned_, PlaceOf(&owned_, exchange_->rank(), i).rows_begin)
                        : sums;
      for (uint32_t slice = micro_batch.begin; slice < micro_batch.end; ++slice) {
        SliceIds& of_slice = ids->Of(pack.features[i], slice);
        of_slice.rows[owner] = rows;
        of_slice.sums[owner] = sums;
        rows += uint64_t{of_slice.counts[owner]} * pack.dim;
        sums += uint64_t{of_slice.counts[owner]} * pack.dim;
      }
    }
  }
}

Status PackExchange::SendIds(const Pack& pack, SliceRange micro_batch, BatchIds* ids) {
  CountIds(pack, micro_batch, *ids);
  EMBANK_RETURN_IF_ERROR(ExchangeCounts(pack));
  PlanParts(pack, pack.is_replicated, &own_);
  PlanParts(pack, false, &owned_);
  WriteIds(pack, micro_batch, *ids);
  GivePlaces(pack, micro_batch, ids);
  return exchange_->Run(own_.ids.source(), owned_.ids.target());
}

Status PackExchange::Gather(const Pack& pack, MissingRule rule) {
  EMBANK_CHECK(pack.features.size() == features_in_pack_);
  std::vector<LookupFeature> features;
  for (size_t i = 0; i < pack.features.size(); ++i) {
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      const Place& place = PlaceOf(&owned_, rank, i);
      const std::byte* const ids = owned_.ids.data();
      LookupFeature& feature = features.emplace_back();
      feature.table = features_[pack.features[i]].table;
      feature.keys = {reinterpret_cast<const Key*>(ids + place.ids_begin), place.count};
      feature.touches = {reinterpret_cast<const uint16_t*>(ids + place.touches_begin), place.count};
      feature.rows = {owned_.rows.data() + place.rows_begin, RowBytes(pack)};
    }
  }
  return LookupPacked(features, rule);
}

Status PackExchange::SendRows(const Pack& pack) {
  return pack.is_replicated ? OkStatus() : exchange_->Run(owned_.rows.source(), own_.rows.target());
}

Status PackExchange::SendSums(const Pack& pack) {
  EMBANK_CHECK(pack.features.size() == features_in_pack_);
  return exchange_->Run(own_.rows.source(), owned_.rows.target());
}

SumRun PackExchange::RunOf(const Pack& pack, size_t number, uint32_t rank) {
  const Place& place = PlaceOf(&owned_, rank, number);
  return {.feature = pack.features[number],
          .ids = {reinterpret_cast<Key*>(owned_.ids.data() + place.ids_begin), place.count},
          .sums = reinterpret_cast<float*>(owned_.rows.data() + place.rows_begin)};
}

}  // namespace embank
