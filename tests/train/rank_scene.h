// The trainers of the ranks of a job.
#ifndef EMBANK_TESTS_TRAIN_RANK_SCENE_H_
#define EMBANK_TESTS_TRAIN_RANK_SCENE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/threads.h"
#include "tests/train/trained_rows.h"
#include "tests/train/trainer_scene.h"
#include "train/ranks/exchange.h"
#include "train/ranks/local_exchange.h"
#include "train/ranks/rank_team.h"

namespace embank::test {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr uint64_t kSteps = 10;  // each takes up to ten times as long
#else
inline constexpr uint64_t kSteps = 40;
#endif

// The trainers of all ranks of a job, each on a thread of its own.
class Job {
 public:
  // A step takes milliseconds: who waits this long waits for a rank that has ended.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  static constexpr uint64_t kTimeLimitNs = kExchangeTimeLimitNs;
#else
  static constexpr uint64_t kTimeLimitNs = 10'000'000'000;
#endif
  using OptionsOfRank = std::function<TrainerOptions(uint32_t rank)>;

  explicit Job(uint32_t ranks)
      : trainers_(ranks), exchanges_(MakeLocalExchanges(ranks, {.time_limit_ns = kTimeLimitNs})) {}

  // Returns the status of all ranks.
  Status Open(const OptionsOfRank& options_of) {
    return OnRanks([&](uint32_t rank) {
      StatusOr<std::unique_ptr<Trainer>> trainer =
          Trainer::Open(options_of(rank), DataColumns(), exchanges_[rank].get());
      if (!trainer.ok()) return trainer.status();
      trainers_[rank] = *std::move(trainer);
      return OkStatus();
    });
  }

  // Returns the status of all ranks for call(rank).
  Status OnRanks(const std::function<Status(uint32_t)>& call) {
    std::vector<Status> statuses(trainers_.size());
    OnThreads(trainers_.size(),
              [&](uint64_t rank) { statuses[rank] = call(static_cast<uint32_t>(rank)); });
    for (const Status& status : statuses) EXPECT_EQ(status, statuses[0]);
    return statuses[0];
  }

  // Returns the losses of all ranks.
  std::vector<double> TrainTo(uint64_t step, uint64_t checkpoint_at = 0, uint32_t staleness = 0) {
    std::vector<std::vector<double>> losses(trainers_.size());
    OnThreads(trainers_.size(), [&](uint64_t rank) {
      losses[rank] = Train(trainers_[rank].get(), step, checkpoint_at, staleness);
    });
    for (const std::vector<double>& of_rank : losses) EXPECT_EQ(of_rank, losses[0]);
    return losses[0];
  }

  // Expects the weights of a trainer of one rank, and all of its rows, each on its owner or, if the
  // table is replicated, on all ranks.
  void ExpectState(Trainer* one) {
    for (const auto& trainer : trainers_) {
      EXPECT_TRUE(std::ranges::equal(trainer->weights(), one->weights()));
    }
    for (size_t i = 0; i < one->tables().size(); ++i) {
      const TableRows expected = RowsIn(one->tables()[i]);
      TableRows all;
      uint64_t rows = 0;
      for (const auto& trainer : trainers_) {
        const TableRows of_rank = RowsIn(trainer->tables()[i]);
        rows += of_rank.size();
        all.insert(of_rank.begin(), of_rank.end());
        if (!replicated_.contains(i)) continue;
        EXPECT_EQ(of_rank, expected) << one->tables()[i]->name();
      }
      EXPECT_TRUE(all == expected) << one->tables()[i]->name();
      EXPECT_EQ(rows, expected.size() * (replicated_.contains(i) ? trainers_.size() : 1));
    }
  }

  void set_replicated(std::set<size_t> tables) { replicated_ = std::move(tables); }
  Trainer* trainer(uint32_t rank) { return trainers_[rank].get(); }
  Exchange* exchange(uint32_t rank) { return exchanges_[rank].get(); }

 private:
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::set<size_t> replicated_;
};

inline TrainerOptions OfRanks(const std::string& model, uint32_t ranks) {
  TrainerOptions options = OptionsOf(model);
  options.micro_batches = std::min(2u, options.slices / ranks);
  options.packs.warmup_steps = 7;
  return options;
}

// A model whose rows cost little beside their way through the tiers.
inline ClickModel ModelOfSums() {
  const auto make = [](const ModelInputs& inputs) {
    LayerGraph graph(inputs);
    graph.Linear(graph.Concat({graph.Dense(), graph.Sum(graph.Features())}), 1);
    return graph;
  };
  return {.name = "sums", .make = make, .dim_min = 2};
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_RANK_SCENE_H_
