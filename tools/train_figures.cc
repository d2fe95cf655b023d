#include "tools/train_figures.h"

#include <array>
#include <cstdio>

#include "base/str_cat.h"
#include "store/store.h"
#include "store/table/table.h"

namespace embank {
namespace {

// Calls `use` for each number of both.
template <typename Use>
void ForEachNumber(TrainWork* a, const TrainWork& b, Use use) {
  constexpr uint64_t TierAnswers::*kAnswers[] = {&TierAnswers::lookups,
                                                 &TierAnswers::hbm,
                                                 &TierAnswers::dram,
                                                 &TierAnswers::pmem,
                                                 &TierAnswers::ssd,
                                                 &TierAnswers::created,
                                                 &TierAnswers::prefetched_pmem,
                                                 &TierAnswers::prefetched_ssd};
  for (const auto number : kAnswers) use(&(a->answers.*number), b.answers.*number);
  constexpr uint64_t TrainWork::*kCounts[] = {&TrainWork::operations, &TrainWork::lookup_batches,
                                              &TrainWork::gradient_batches, &TrainWork::index_walks,
                                              &TrainWork::rows_read};
  for (const auto number : kCounts) use(&(a->*number), b.*number);
  constexpr double StepSeconds::*kSeconds[] = {&StepSeconds::lookup, &StepSeconds::dense,
                                               &StepSeconds::gradients, &StepSeconds::link,
                                               &StepSeconds::device_link};
  for (const auto number : kSeconds) use(&(a->split.*number), b.split.*number);
}

void AddAnswers(const Table& table, TierAnswers* answers) {
  const CallCounts counts = table.counters().calls.Counts(TableVerb::kLookup);
  const auto count = [&](Outcome outcome) {
    return counts.keys_by_outcome[static_cast<size_t>(outcome) - 1];
  };
  const auto found_in = [&](Tier tier) { return counts.found_in[static_cast<size_t>(tier)]; };
  answers->lookups += count(Outcome::kFound) + count(Outcome::kCreated);
  answers->created += count(Outcome::kCreated);
  answers->hbm += found_in(Tier::kHbm);
  answers->dram += found_in(Tier::kDram);
  answers->pmem += found_in(Tier::kPmem);
  answers->ssd += found_in(Tier::kSsd);
  const auto& prefetched_from = table.counters().prefetched_from;
  answers->prefetched_pmem += prefetched_from[static_cast<size_t>(Tier::kPmem)].load();
  answers->prefetched_ssd += prefetched_from[static_cast<size_t>(Tier::kSsd)].load();
}

// Returns the name and the text of each tier that a store has, the fastest one first; without a
// name if there is one.
template <typename Tiers, typename Text>
std::string TextOfEach(const Tiers& of, const StoreOptions& store, Text text_of) {
  if (store.path.empty() && store.hbm_bytes == 0) return text_of(of.dram);
  std::string text = store.hbm_bytes > 0 ? StrCat("HBM ", text_of(of.hbm), ", ") : "";
  StrAppend(&text, "DRAM ", text_of(of.dram));
  if (!store.pmem_path.empty()) StrAppend(&text, ", PMem ", text_of(of.pmem));
  if (!store.path.empty()) StrAppend(&text, ", SSD ", text_of(of.ssd));
  return text;
}

}  // namespace

TrainWork& TrainWork::operator+=(const TrainWork& other) {
  ForEachNumber(this, other, [](auto* number, auto of_other) { *number += of_other; });
  return *this;
}

TrainWork& TrainWork::operator-=(const TrainWork& other) {
  ForEachNumber(this, other, [](auto* number, auto of_other) { *number -= of_other; });
  return *this;
}

TierRows CountRows(const Trainer& trainer) {
  TierRows rows;
  for (Table* const table : trainer.tables()) {
    rows.hbm += table->rows_in(Tier::kHbm);
    rows.pmem += table->rows_in(Tier::kPmem);
    rows.ssd += table->rows_in(Tier::kSsd);
    rows.dram += RowsInDram(*table);
  }
  return rows;
}

TrainWork CountWork(Trainer* trainer) {
  TrainWork work;
  for (Table* const table : trainer->tables()) {
    const auto& calls = table->counters().calls;
    AddAnswers(*table, &work.answers);
    work.lookup_batches += calls.Durations(TableVerb::kLookup).count();
    work.gradient_batches += calls.Durations(TableVerb::kGradients).count();
    work.index_walks += calls.IndexWalks();
  }
  for (const RowLog* const log : trainer->store().logs()->all()) {
    work.rows_read += log->counters().read_rows;
  }
  work.operations = trainer->pass()->trace()->operations();
  work.split = trainer->pass()->seconds();
  return work;
}

std::string TextOf(const TierRows& rows, const StoreOptions& store) {
  return TextOfEach(rows, store, [](uint64_t count) { return StrCat(count); });
}

std::string TextOf(const TierAnswers& answers, const StoreOptions& store) {
  return TextOfEach(answers, store, [&](uint64_t count) {
    std::array<char, 16> ratio;
    std::snprintf(ratio.data(), ratio.size(), "%.3f", answers.RatioOf(count));
    return std::string(ratio.data());
  });
}

}  // namespace embank
