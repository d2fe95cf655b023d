#include "bench/rank_exchange.h"

#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/threads/clock.h"
#include "bench/kv_samples.h"
#include "bench/measured_exchange.h"
#include "bench/rank_ids.h"
#include "train/dense/slices.h"
#include "train/pipeline/unique_partition.h"
#include "train/ranks/mpi_module.h"
#include "train/ranks/pack_exchange.h"

namespace embank {
namespace {

// The batches come again, so that their sizes change and their memory is there.
constexpr uint32_t kBatches = 8;
constexpr uint32_t kWarmUpExchanges = 2 * kBatches;

double MicrosecondsSince(uint64_t begin_ns) {
  return static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-3;
}

// The ids of a rank in a batch.
class BatchOfRank {
 public:
  BatchOfRank(const RankIds& source, uint32_t batch, uint32_t samples, const Exchange& exchange)
      : own_(OwnOf(exchange)),
        ids_(std::vector<uint32_t>(RankIds::kFields, exchange.ranks()), own_),
        partition_(exchange.ranks()) {
    for (uint32_t field = 0; field < RankIds::kFields; ++field) {
      for (uint32_t slice = own_.begin; slice < own_.end; ++slice) {
        const SampleRange range = SliceOf(samples, kSlicesDefault, slice);
        SliceMemory& memory = memory_.emplace_back();
        memory.ids =
            source.Of(field, uint64_t{batch} * samples + range.begin, range.end - range.begin);
        memory.unique.resize(memory.ids.size());
        memory.touches.resize(memory.ids.size());
        memory.index.resize(memory.ids.size());
      }
    }
    MakeUnique();
  }

  // Finds the distinct ids, as a step does right before it sends them.
  void MakeUnique() {
    SliceMemory* memory = memory_.data();
    for (uint32_t field = 0; field < RankIds::kFields; ++field) {
      for (uint32_t slice = own_.begin; slice < own_.end; ++slice, ++memory) {
        const uint32_t count = partition_.Run(memory->ids, RankIds::TableHashOf(field),
                                              {memory->unique, memory->touches, memory->index});
        SliceIds& of_slice = ids_.Of(field, slice);
        of_slice.ids = std::span(memory->unique).first(count);
        of_slice.touches = std::span(memory->touches).first(count);
        std::ranges::copy(partition_.counts(), of_slice.counts.begin());
      }
    }
  }

  SliceRange slices() const { return own_; }
  BatchIds* ids() { return &ids_; }
  // The number of ids whose rows a rank has.
  uint64_t OwnedBy(uint32_t rank) const {
    uint64_t sum = 0;
    for (uint32_t field = 0; field < RankIds::kFields; ++field) {
      for (uint32_t slice = own_.begin; slice < own_.end; ++slice) {
        sum += ids_.Of(field, slice).counts[rank];
      }
    }
    return sum;
  }

 private:
  struct SliceMemory {
    std::vector<Key> ids;
    std::vector<Key> unique;
    std::vector<uint16_t> touches;
    std::vector<IdPlace> index;
  };

  static SliceRange OwnOf(const Exchange& exchange) {
    const SampleRange own = SliceOf(kSlicesDefault, exchange.ranks(), exchange.rank());
    return {own.begin, own.end};
  }

  const SliceRange own_;
  BatchIds ids_;
  UniquePartition partition_;
  std::vector<SliceMemory> memory_;  // by field and slice
};

// Which units of rows a rank sends to each one, or receives from it, in MPI's words.
struct MpiSide {
  std::vector<int> units;
  std::vector<int> begins;

  void Lay() {
    begins.assign(units.size(), 0);
    std::exclusive_scan(units.begin(), units.end(), begins.begin(), 0);
  }
};

// One MPI_Alltoallv of as many bytes of rows as a step has.
class RowsAlone {
 public:
  explicit RowsAlone(uint32_t ranks) : ranks_(ranks) {
    EMBANK_CHECK(MPI_Type_contiguous(kExchangeUnitBytes, MPI_BYTE, &unit_) == MPI_SUCCESS);
    EMBANK_CHECK(MPI_Type_commit(&unit_) == MPI_SUCCESS);
  }
  RowsAlone(const RowsAlone&) = delete;
  RowsAlone& operator=(const RowsAlone&) = delete;
  ~RowsAlone() { MPI_Type_free(&unit_); }

  // All ranks call it for their parts of a batch.
  void Add(const BatchOfRank& batch, uint32_t dim) {
    Sizes& sizes = batches_.emplace_back();
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      const uint64_t bytes = batch.OwnedBy(rank) * dim * sizeof(float);
      sizes.received.units.push_back(
          static_cast<int>((bytes + kExchangeUnitBytes - 1) / kExchangeUnitBytes));
    }
    sizes.sent.units.resize(ranks_);
    EMBANK_CHECK(MPI_Alltoall(sizes.received.units.data(), 1, MPI_INT, sizes.sent.units.data(), 1,
                              MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (auto& [side, memory] : {std::pair(&sizes.sent, &sent_), {&sizes.received, &received_}}) {
      side->Lay();
      const auto units = static_cast<size_t>(side->begins.back() + side->units.back());
      if (memory->size() < units) memory->resize(units);
    }
  }

  void Run(uint32_t batch) {
    const Sizes& sizes = batches_[batch];
    EMBANK_CHECK(MPI_Alltoallv(sent_.data(), sizes.sent.units.data(), sizes.sent.begins.data(),
                               unit_, received_.data(), sizes.received.units.data(),
                               sizes.received.begins.data(), unit_, MPI_COMM_WORLD) == MPI_SUCCESS);
  }

 private:
  struct alignas(kExchangeUnitBytes) Unit {
    std::byte bytes[kExchangeUnitBytes] = {};
  };
  struct Sizes {
    MpiSide sent;
    MpiSide received;
  };

  const uint32_t ranks_;
  MPI_Datatype unit_ = MPI_DATATYPE_NULL;
  std::vector<Sizes> batches_;
  std::vector<Unit> sent_;
  std::vector<Unit> received_;
};

// The times of all rounds, in microseconds.
struct Rounds {
  std::vector<double> rows_alone, step, ratio, counts, ids, rows, rest;
};

class ExchangeRun {
 public:
  ExchangeRun(uint32_t dim, std::vector<BatchOfRank>* batches, Exchange* exchange)
      : batches_(*batches),
        exchange_(exchange),
        features_(RankIds::kFields, EmbeddingFeature{.dim = dim}),
        step_(features_, {&exchange_, &exchange_}, ValueType::kF32),
        rows_alone_(exchange->ranks()) {
    pack_.dim = dim;
    pack_.features.resize(RankIds::kFields);
    std::iota(pack_.features.begin(), pack_.features.end(), 0u);
    for (const BatchOfRank& batch : batches_) rows_alone_.Add(batch, dim);
  }

  StatusOr<RankExchangeFigure> Run(uint32_t rounds) {
    RankExchangeFigure figure = {.dim = pack_.dim};
    for (uint32_t round = 0; round < kWarmUpExchanges + rounds; ++round) {
      EMBANK_RETURN_IF_ERROR(RunRound(round, round < kBatches ? &figure : nullptr));
      if (round + 1 == kWarmUpExchanges) rounds_ = {};
    }
    figure.rows_alone_us = Median(rounds_.rows_alone);
    figure.step_us = Median(rounds_.step);
    figure.ratio = Median(rounds_.ratio);
    figure.ratio_of_least =
        *std::ranges::min_element(rounds_.rows_alone) / *std::ranges::min_element(rounds_.step);
    figure.counts_us = Median(rounds_.counts);
    figure.ids_us = Median(rounds_.ids);
    figure.rows_us = Median(rounds_.rows);
    figure.rest_us = Median(rounds_.rest);
    return figure;
  }

 private:
  // Both go first in half of the rounds. Adds bytes to the figure, if there is one.
  Status RunRound(uint32_t round, RankExchangeFigure* figure) {
    const uint32_t batch = round % kBatches;
    double rows_alone_us = 0.0;
    double step_us = 0.0;
    for (uint32_t turn = 0; turn < 2; ++turn) {
      batches_[batch].MakeUnique();
      EMBANK_RETURN_IF_ERROR(exchange_.Barrier());
      const uint64_t begin_ns = SteadyClock()->NowNs();
      if ((round / kBatches + turn) % 2 == 0) {
        rows_alone_.Run(batch);
        rows_alone_us = MicrosecondsSince(begin_ns);
      } else {
        BatchOfRank& of_rank = batches_[batch];
        EMBANK_RETURN_IF_ERROR(step_.SendIds(pack_, of_rank.slices(), of_rank.ids()));
        EMBANK_RETURN_IF_ERROR(step_.SendRows(pack_));
        step_us = MicrosecondsSince(begin_ns);
      }
    }
    Note(step_us, figure);
    rounds_.rows_alone.push_back(MaxOverRanks(&exchange_, rows_alone_us));
    rounds_.step.push_back(MaxOverRanks(&exchange_, step_us));
    rounds_.ratio.push_back(rounds_.rows_alone.back() / rounds_.step.back());
    exchange_.Take();
    return OkStatus();
  }

  void Note(double step_us, RankExchangeFigure* figure) {
    const std::vector<MeasuredExchange::Call> calls = exchange_.Take();
    EMBANK_CHECK(calls.size() == 3);  // counts, ids, rows
    const auto time_of = [&](size_t i) { return static_cast<double>(calls[i].ns) * 1e-3; };
    rounds_.counts.push_back(time_of(0));
    rounds_.ids.push_back(time_of(1));
    rounds_.rows.push_back(time_of(2));
    rounds_.rest.push_back(step_us - time_of(0) - time_of(1) - time_of(2));
    if (figure == nullptr) return;
    figure->id_bytes += (calls[0].bytes + calls[1].bytes) / kBatches;
    figure->row_bytes += calls[2].bytes / kBatches;
  }

  std::vector<BatchOfRank>& batches_;
  MeasuredExchange exchange_;
  const std::vector<EmbeddingFeature> features_;
  Pack pack_;
  PackExchange step_;
  RowsAlone rows_alone_;
  Rounds rounds_;
};

}  // namespace

StatusOr<std::unique_ptr<Exchange>> JoinRanks() {
  int threads = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads) != MPI_SUCCESS) {
    return UnavailableError("MPI_Init_thread");
  }
  return OpenMpiExchange();
}

void LeaveRanks() { MPI_Finalize(); }

StatusOr<std::vector<RankExchangeFigure>> RunRankExchange(const RankExchangeOptions& options,
                                                          Exchange* exchange) {
  const RankIds ids;
  std::vector<BatchOfRank> batches;
  for (uint32_t batch = 0; batch < kBatches; ++batch) {
    batches.emplace_back(ids, batch, options.samples, *exchange);
  }
  std::vector<RankExchangeFigure> figures;
  for (const uint32_t dim : options.dims) {
    EMBANK_ASSIGN_OR_RETURN(RankExchangeFigure figure,
                            ExchangeRun(dim, &batches, exchange).Run(options.rounds));
    figures.push_back(figure);
  }
  return figures;
}

}  // namespace embank
