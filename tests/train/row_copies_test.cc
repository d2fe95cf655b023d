// The way of a row between its owner's slot and the place where it is used: one copy and the wire.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "store/store.h"
#include "tests/support/threads.h"
#include "train/pipeline/embedding_pass.h"
#include "train/ranks/local_exchange.h"
#include "train/ranks/sharded_rows.h"

namespace embank::test::row_copies_test {
namespace {

constexpr uint32_t kRanks = 2;
constexpr uint32_t kSlices = 4;
constexpr uint32_t kSamples = 40;
constexpr uint32_t kDim = 4;

// Notes the buffers of the last call. No unit of rows of four values is padding.
class NotedExchange final : public Exchange {
 public:
  explicit NotedExchange(Exchange* exchange)
      : Exchange(exchange->rank(), exchange->ranks()), exchange_(exchange) {}

  Status Run(const ExchangeSource& source, const ExchangeTarget& target) override {
    // The memory itself is not constant.
    sent_ = FloatsOf(const_cast<std::byte*>(source.buffer), source.parts);
    received_ = FloatsOf(target.buffer, target.parts);
    return exchange_->Run(source, target);
  }
  std::unique_ptr<Exchange> Duplicate() override { return exchange_->Duplicate(); }
  Status Barrier() override { return exchange_->Barrier(); }
  void Abort(std::string_view reason) override { exchange_->Abort(reason); }

  std::span<float> sent() const { return sent_; }
  std::span<float> received() const { return received_; }

 private:
  static std::span<float> FloatsOf(std::byte* buffer, std::span<const ExchangePart> parts) {
    uint64_t end = 0;
    for (const ExchangePart& part : parts) end = std::max(end, part.begin + part.bytes);
    return {reinterpret_cast<float*>(buffer), end / sizeof(float)};
  }

  Exchange* const exchange_;
  std::span<float> sent_;
  std::span<float> received_;
};

// A rank with one feature, of which each sample has an id of its own.
struct Rank {
  explicit Rank(Exchange* of_rank) : exchange(of_rank) {
    store = *Store::Open({.worker_threads = 1, .path = {}, .pmem_path = {}}, {});
    TableOptions options;
    options.dim = kDim;
    const std::vector<EmbeddingFeature> features = {
        {.table = *store->CreateTable("t", options), .column = 0, .dim = kDim}};
    const SampleRange of_slices = SliceOf(kSlices, kRanks, exchange.rank());
    slices = {of_slices.begin, of_slices.end};
    rows = std::make_unique<ShardedRows>(features, slices, RowExchanges{&exchange, &exchange});
    pass = std::make_unique<EmbeddingPass>(features, kSlices, slices, rows.get());
    batch.samples = kSamples;
    batch.features.resize(1);
    for (Key id = 0; id < kSamples; ++id) batch.features[0].ids.push_back(id);
  }

  void ShuffleIds() {
    pass->Begin(&batch);
    for (uint32_t slice = slices.begin; slice < slices.end; ++slice) pass->MakeUnique(pack, slice);
    EXPECT_TRUE(rows->ShuffleIds(pack, slices, pass->ids()).ok());
  }
  void Gather(MissingRule rule) { EXPECT_TRUE(rows->Gather(pack, slices, rule, pass->ids()).ok()); }
  void ShuffleRows() { EXPECT_TRUE(rows->ShuffleRows(pack, slices).ok()); }

  // Whether all vectors of its slices whose rows the other rank has are of this value. Those that
  // it has itself do not travel.
  bool HasVectorsOf(float value) {
    for (uint32_t slice = slices.begin; slice < slices.end; ++slice) {
      pass->StitchReduce(pack, slice);
      const ConstMatrix vectors = pass->Vectors(0, slice);
      const uint32_t first = SliceOf(kSamples, kSlices, slice).begin;
      for (uint32_t sample = 0; sample < vectors.rows; ++sample) {
        const KeyHash hash = pass->features()[0].table->HashOf(first + sample);
        if (OwnerOf(hash, kRanks) == exchange.rank()) continue;
        for (const float of_vector : vectors.Row(sample)) {
          if (of_vector != value) return false;
        }
      }
    }
    return true;
  }

  NotedExchange exchange;
  std::unique_ptr<Store> store;
  SliceRange slices = {0, 0};
  std::unique_ptr<SparseRows> rows;
  std::unique_ptr<EmbeddingPass> pass;
  ClickBatch batch;
  const Pack pack = {.dim = kDim, .features = {0}};
};

// Calls body(rank) for both ranks at once.
template <typename Body>
void OnRanks(const Body& body) {
  const std::vector<std::unique_ptr<Exchange>> exchanges = MakeLocalExchanges(kRanks);
  OnThreads(kRanks, [&](uint64_t number) {
    Rank rank(exchanges[number].get());
    body(&rank);
  });
}

// A lookup leaves the memory of an absent row as it is: what stood there before travels.
TEST(RowCopies, AnOwnerLooksRowsUpWhereTheyAreSentFrom) {
  OnRanks([](Rank* rank) {
    rank->ShuffleIds();
    rank->Gather(MissingRule::kSkip);
    rank->ShuffleRows();
    const std::span<float> sent = rank->exchange.sent();
    const std::span<float> received = rank->exchange.received();
    rank->ShuffleIds();
    std::ranges::fill(sent, 5.0f);
    std::ranges::fill(received, 5.0f);
    rank->Gather(MissingRule::kSkip);
    rank->ShuffleRows();
    EXPECT_EQ(rank->exchange.sent().data(), sent.data());
    EXPECT_TRUE(rank->HasVectorsOf(5.0f)) << "rank " << rank->exchange.rank();
  });
}

TEST(RowCopies, RowsAreUsedWhereTheyAreReceived) {
  OnRanks([](Rank* rank) {
    rank->ShuffleIds();
    rank->Gather(MissingRule::kCreate);
    rank->ShuffleRows();
    std::ranges::fill(rank->exchange.received(), 7.0f);
    EXPECT_TRUE(rank->HasVectorsOf(7.0f)) << "rank " << rank->exchange.rank();
  });
}

}  // namespace
}  // namespace embank::test::row_copies_test
