#include "bench/rank_bytes.h"

#include <memory>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "bench/measured_exchange.h"
#include "train/generator/click_generator.h"
#include "train/models/model_table.h"
#include "train/ranks/local_exchange.h"
#include "train/trainer.h"

namespace embank {
namespace {

constexpr uint32_t kDivisor = 20;
constexpr uint32_t kPlannedAfter = 4;
constexpr uint32_t kSteps = 16;

// Adds the bytes of one step. Its exchanges have the order of BatchPass::AddBatch.
void AddStep(const std::vector<MeasuredExchange::Call>& calls, size_t packs, uint32_t buckets,
             RankBytesFigure* figure) {
  EMBANK_CHECK(calls.size() == 4 * packs + size_t{2} * buckets + 1);
  size_t next = 0;
  const auto add = [&](double* to) { *to += static_cast<double>(calls[next++].bytes); };
  for (size_t pack = 0; pack < packs; ++pack) {
    add(&figure->counts);
    add(&figure->ids);
  }
  for (size_t pack = 0; pack < packs; ++pack) add(&figure->rows);
  for (uint32_t i = 0; i < 2 * buckets; ++i) add(&figure->dense);
  for (size_t pack = 0; pack < packs; ++pack) add(&figure->sums);
  add(&figure->vote);
  figure->exchanges += static_cast<double>(calls.size());
}

Status TrainRank(const TrainerOptions& options, Exchange* exchange, RankBytesFigure* figure) {
  MeasuredExchange measured(exchange);
  EMBANK_ASSIGN_OR_RETURN(const ClickSchema schema,
                          MakeClickSchema("criteo-kaggle", {.divisor = kDivisor}));
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ClickGenerator> generator,
                          ClickGenerator::Create(schema, {}, nullptr));
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                          Trainer::Open(options, generator->columns(), &measured));
  ClickBatch batch;
  std::vector<float> logits;
  for (uint32_t step = 0; step < kPlannedAfter + kSteps; ++step) {
    EMBANK_RETURN_IF_ERROR(generator->Next(options.batch, &batch).status());
    measured.Take();
    const size_t packs = trainer->pass()->plan().packs().size();
    EMBANK_RETURN_IF_ERROR(trainer->Step(batch, &logits).status());
    if (step < kPlannedAfter) continue;
    AddStep(measured.Take(), packs, trainer->pass()->dense().buckets(), figure);
  }
  return OkStatus();
}

StatusOr<RankBytesFigure> RunJob(const std::string& model, uint32_t ranks, uint32_t batch) {
  TrainerOptions options;
  EMBANK_ASSIGN_OR_RETURN(options.model, FindModel(model));
  options.batch = batch;
  options.threads = 1;
  options.store.worker_threads = 1;
  options.packs.warmup_steps = kPlannedAfter;
  const std::vector<std::unique_ptr<Exchange>> exchanges = MakeLocalExchanges(ranks);
  std::vector<RankBytesFigure> figures(ranks);
  std::vector<Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { statuses[rank] = TrainRank(options, exchanges[rank].get(), &figures[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  RankBytesFigure mean = {.model = model, .ranks = ranks};
  constexpr double RankBytesFigure::*kNumbers[] = {
      &RankBytesFigure::counts,   &RankBytesFigure::ids,   &RankBytesFigure::rows,
      &RankBytesFigure::sums,     &RankBytesFigure::dense, &RankBytesFigure::vote,
      &RankBytesFigure::exchanges};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    EMBANK_RETURN_IF_ERROR(statuses[rank]);
    for (const auto number : kNumbers) mean.*number += figures[rank].*number / (kSteps * ranks);
  }
  return mean;
}

}  // namespace

StatusOr<std::vector<RankBytesFigure>> RunRankBytes(const RankBytesOptions& options) {
  std::vector<RankBytesFigure> figures;
  for (const std::string& model : options.models) {
    for (const uint32_t ranks : options.ranks) {
      EMBANK_ASSIGN_OR_RETURN(RankBytesFigure figure, RunJob(model, ranks, options.batch));
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

}  // namespace embank
