// The schedule of phases, and hot and cold batches: each once an epoch, whatever the losses are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/str_cat.h"
#include "tests/bench/temporary_file.h"
#include "train/fae/fae_file.h"
#include "train/fae/fae_writer.h"
#include "train/fae/hot_cold_samples.h"
#include "train/fae/shuffle_schedule.h"
#include "train/samples/epochs.h"

namespace embank::test::hot_cold_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> RatesOf(const std::vector<double>& losses) {
  ShuffleSchedule schedule;
  std::vector<double> rates;
  for (const double loss : losses) {
    schedule.ApplyLoss(loss);
    rates.push_back(schedule.rate());
  }
  return rates;
}

TEST(ShuffleSchedule, HasTheRatesOfTheReference) {
  EXPECT_THAT(RatesOf({.50, .49, .48, .47, .46, .47, .47, .46, .45, .44, .43}),
              ElementsAre(50, 50, 50, 50, 100, 50, 25, 25, 25, 25, 50));
  EXPECT_THAT(RatesOf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
              ElementsAre(50, 25, 12.5, 6.25, 3.125, 1.5625, 1, 1, 1, 1, 1));
  // Falls are counted anew after a doubling.
  EXPECT_THAT(RatesOf({9, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}),
              ElementsAre(50, 25, 25, 25, 25, 50, 50, 50, 50, 100, 100));
  EXPECT_THAT(RatesOf({kNaN, .5, .5, kNaN, .4, .3}), ElementsAre(25, 25, 12.5, 6.25, 6.25, 6.25));
  EXPECT_THAT(RatesOf({kInfinity, kInfinity, 5, -kInfinity, -kInfinity}),
              ElementsAre(50, 25, 25, 25, 12.5));
}

TEST(ShuffleSchedule, HasPhasesOfAShareOfBatches) {
  struct Case {
    std::vector<double> losses;  // first
    uint64_t batches;
    uint64_t expected;
  };
  const std::vector<double> to_one = {1, 2, 3, 4, 5, 6, 7};
  const std::vector<double> to_hundred = {5, 4, 3, 2, 1};
  for (const auto& [losses, batches, expected] :
       {Case{{}, 0, 1}, Case{{}, 1, 1}, Case{{}, 7, 4}, Case{{}, 8, 4}, Case{to_one, 99, 1},
        Case{to_one, 100, 1}, Case{to_one, 101, 2}, Case{to_one, 700, 7}, Case{to_one, 2900, 29},
        Case{{1, 2}, 5, 2}, Case{to_hundred, 12345, 12345}}) {
    ShuffleSchedule schedule;
    for (const double loss : losses) schedule.ApplyLoss(loss);
    EXPECT_EQ(schedule.PhaseBatches(batches), expected) << schedule.rate() << " of " << batches;
  }
}

TEST(ShuffleSchedule, GoesOnFromItsText) {
  const CounterRandom random(3);
  ShuffleSchedule schedule;
  for (uint32_t i = 0; i < 300; ++i) {
    const auto read = ShuffleSchedule::FromText(schedule.ToText());
    ASSERT_TRUE(read) << schedule.ToText();
    EXPECT_EQ(*read, schedule);
    const double loss = random.UnitDouble(i);
    schedule.ApplyLoss(loss < 0.05 ? kNaN : loss < 0.1 ? kInfinity : loss / (1 + i));
  }
  for (const char* const text :
       {"", "50", "50 0", "50 0 ", "0.5 0 none", "101 0 none", "nan 0 none", "50 4 none",
        "50 -1 none", "50 0 nan", "50 0 x", "50 0 none x", "50  0 none"}) {
    EXPECT_FALSE(ShuffleSchedule::FromText(text)) << text;
  }
}

// A file with numbers of samples of each class, whose id is their number in their class.
class File {
 public:
  File(uint32_t cold, uint32_t hot) : file_(".fae") {
    const ClickColumns columns = {.dense = {}, .ids = {"number"}};
    auto writer = *FaeWriter::Create(file_.path(), columns);
    ClickBatch batch;
    for (uint32_t i = 0; i < std::max(cold, hot); ++i) {
      batch.Clear(1);
      AppendRow({.label = 0.0f, .ids = {i}}, &batch);
      for (const auto& [is_hot, samples] : {std::pair(false, cold), {true, hot}}) {
        if (i >= samples) continue;
        EXPECT_EQ(writer->Add(batch, 0, is_hot), OkStatus());
      }
    }
    HotIds hot_ids;
    hot_ids.tables.resize(1);
    hot_ids.table_of_column = {0};
    EXPECT_EQ(writer->Finish({.columns = columns, .dims = {4}, .row_bytes = {16}}, hot_ids),
              OkStatus());
    opened_ = *FaeFile::Open(file_.path());
  }

  std::unique_ptr<HotColdSamples> Samples(uint32_t batch, bool hot_only = false,
                                          const ShuffleSchedule& schedule = {}) const {
    return std::make_unique<HotColdSamples>(opened_, batch, schedule,
                                            HotColdOptions{.hot_only = hot_only});
  }

 private:
  const TemporaryFile file_;
  std::shared_ptr<const FaeFile> opened_;
};

// "c0+4" for a cold batch of 4 samples from number 0 on; a batch that ends a phase has " |" after
// it.
std::string NameOf(const ClickBatch& batch) {
  const std::vector<uint64_t>& ids = batch.features[0].ids;
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], ids[0] + i);
  EXPECT_EQ(batch.labels.size(), batch.samples);
  return StrCat(batch.is_hot ? "h" : "c", ids[0], "+", batch.samples, batch.ends_phase ? " |" : "");
}

// The loss of a phase by the samples that were given before its end: so it is the same for a source
// that goes on.
class Losses {
 public:
  explicit Losses(uint64_t seed) : random_(seed) {}
  double At(uint64_t place) const {
    const double loss = random_.UnitDouble(place);
    return loss < 0.1 ? kNaN : std::floor(loss * 20.0);
  }

 private:
  CounterRandom random_;
};

// The batches from a source's position on, with losses that are told, or with none.
std::vector<std::string> Rest(HotColdSamples* source, uint32_t batch_samples,
                              const Losses* losses) {
  std::vector<std::string> texts;
  ClickBatch batch;
  for (;;) {
    if (source->awaits_loss() && losses != nullptr) {
      source->ApplyLoss(losses->At(source->position().place));
    }
    const StatusOr<uint32_t> samples = source->Next(batch_samples, &batch);
    EXPECT_TRUE(samples.ok()) << samples.status();
    if (!samples.ok() || *samples == 0) return texts;
    EXPECT_EQ(source->awaits_loss(), batch.ends_phase);
    texts.push_back(NameOf(batch));
    if (texts.size() > 100'000) return texts;
  }
}

TEST(HotColdSamples, AlternateInPhases) {
  struct Case {
    uint32_t cold;
    uint32_t hot;
    std::vector<std::string> expected;
  };
  const Case cases[] = {
      {22,
       13,
       {"c0+4", "c4+4", "c8+4 |", "h0+4", "h4+4 |", "c12+4", "c16+4", "c20+2 |", "h8+4",
        "h12+1 |"}},
      {4, 0, {"c0+4 |"}},
      {0, 9, {"h0+4", "h4+4", "h8+1 |"}},
      {9, 0, {"c0+4", "c4+4", "c8+1 |"}},
      // Where hot batches are at their end, cold ones go on to theirs.
      {17, 4, {"c0+4", "c4+4", "c8+4 |", "h0+4 |", "c12+4", "c16+1 |"}},
      {4, 13, {"c0+4 |", "h0+4", "h4+4", "h8+4", "h12+1 |"}},
      {0, 0, {}},
  };
  for (const auto& [cold, hot, expected] : cases) {
    const File file(cold, hot);
    EXPECT_EQ(Rest(file.Samples(4).get(), 4, nullptr), expected) << cold << ", " << hot;
    std::vector<std::string> hot_ones;
    for (std::string text : expected) {
      if (text[0] == 'h') hot_ones.push_back(text.substr(0, text.find(' ')));
    }
    if (!hot_ones.empty()) hot_ones.back() += " |";
    EXPECT_EQ(Rest(file.Samples(4, /*hot_only=*/true).get(), 4, nullptr), hot_ones);
  }
}

TEST(HotColdSamples, HavePhasesByTheLosses) {
  const File file(32, 32);
  const auto source = file.Samples(4);
  ClickBatch batch;
  std::vector<std::string> given;
  // Rates 50, 25 and 12.5 percent of eight batches.
  for (const double loss : {0.5, 0.6, 0.7, 0.8, 0.9}) {
    do {
      ASSERT_EQ(*source->Next(4, &batch), 4u);
      given.push_back(NameOf(batch));
    } while (!source->awaits_loss());
    source->ApplyLoss(loss);
    EXPECT_FALSE(source->awaits_loss());
  }
  EXPECT_EQ(source->schedule().rate(), 3.125);
  EXPECT_THAT(given, ElementsAre("c0+4", "c4+4", "c8+4", "c12+4 |", "h0+4", "h4+4", "h8+4",
                                 "h12+4 |", "c16+4", "c20+4 |", "h16+4 |", "c24+4 |"));
}

// No batch is lost, given twice or mixed, and the first one is cold.
TEST(HotColdSamples, GiveEachBatchOnceForAnyLosses) {
  for (const auto& [cold, hot] :
       {std::pair(999u, 500u), {3u, 801u}, {600u, 1u}, {700u, 0u}, {0u, 700u}, {9000u, 9000u}}) {
    const File file(cold, hot);
    for (const uint32_t batch : {1u, 7u, 50u, 5000u}) {
      std::vector<std::string> expected;
      for (const auto& [letter, samples] : {std::pair("c", cold), {"h", hot}}) {
        for (uint32_t at = 0; at < samples; at += batch) {
          expected.push_back(StrCat(letter, at, "+", std::min(batch, samples - at)));
        }
      }
      std::ranges::sort(expected);
      for (uint64_t seed = 0; seed < 6; ++seed) {
        SCOPED_TRACE(testing::Message() << cold << ", " << hot << ", " << batch << ", " << seed);
        const Losses losses(seed);
        const auto source = file.Samples(batch);
        std::vector<std::string> given = Rest(source.get(), batch, &losses);
        EXPECT_EQ(source->FractionRead(), 1.0);
        EXPECT_EQ(source->position().place, cold + hot);
        if (cold > 0) {
          EXPECT_EQ(given.front()[0], 'c');
        }
        EXPECT_TRUE(given.back().ends_with(" |"));
        for (std::string& text : given) text = text.substr(0, text.find(' '));
        std::ranges::sort(given);
        EXPECT_EQ(given, expected);
      }
    }
  }
}

TEST(HotColdSamples, GiveAMillionSamplesInTheirOrder) {
  constexpr uint32_t kCold = 600'001;
  constexpr uint32_t kHot = 399'999;
  const File file(kCold, kHot);
  for (const uint32_t batch : {999u, 1000u, 1024u, 8192u, 500'000u}) {
    SCOPED_TRACE(batch);
    std::vector<uint64_t> next = {0, 0};
    for (const std::string& text : Rest(file.Samples(batch).get(), batch, nullptr)) {
      const bool is_hot = text[0] == 'h';
      const uint64_t left = (is_hot ? kHot : kCold) - next[is_hot];
      const std::string expected =
          StrCat(text.substr(0, 1), next[is_hot], "+", std::min<uint64_t>(batch, left));
      ASSERT_EQ(text.substr(0, text.find(' ')), expected);
      next[is_hot] += std::min<uint64_t>(batch, left);
    }
    EXPECT_THAT(next, ElementsAre(kCold, kHot));
  }
}

// Other sources of the file go on at each position, before its loss and after it.
TEST(HotColdSamples, GoOnAtAnyPosition) {
  for (const auto& [cold, hot] : {std::pair(151u, 92u), {120u, 3u}, {2u, 60u}, {50u, 0u}}) {
    const File file(cold, hot);
    for (const bool hot_only : {false, true}) {
      if (hot_only && hot == 0) continue;
      const Losses losses(cold + 8);
      const auto whole = file.Samples(4, hot_only);
      const std::vector<std::string> all = Rest(whole.get(), 4, &losses);
      const auto source = file.Samples(4, hot_only);
      const auto expect_rest = [&](size_t given) {
        // As a checkpoint keeps it.
        DataPosition kept = source->position().place;
        kept.order = std::string_view(std::string(std::string_view(source->position().order)));
        const auto other = file.Samples(4, hot_only);
        ASSERT_EQ(other->SkipTo(kept), OkStatus()) << std::string_view(kept.order);
        EXPECT_EQ(other->position(), source->position());
        EXPECT_EQ(other->awaits_loss(), source->awaits_loss());
        EXPECT_EQ(other->FractionRead(), source->FractionRead());
        EXPECT_EQ(Rest(other.get(), 4, &losses),
                  std::vector<std::string>(all.begin() + static_cast<ptrdiff_t>(given), all.end()));
      };
      ClickBatch batch;
      for (size_t given = 0; given < all.size(); ++given) {
        expect_rest(given);
        if (source->awaits_loss()) {
          source->ApplyLoss(losses.At(source->position().place));
          expect_rest(given);
        }
        ASSERT_GT(*source->Next(4, &batch), 0u);
      }
      expect_rest(all.size());
    }
  }
}

TEST(HotColdSamples, RefuseAPositionOfOthers) {
  const File file(100, 60);
  const auto source = file.Samples(4);
  ClickBatch batch;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(*source->Next(4, &batch), 4u);
  const DataPosition position = source->position();
  const auto message = [&](const HotColdSamples& other, DataPosition at, StatusCode code) {
    HotColdSamples copy = other;
    const DataPosition before = copy.position();
    const Status status = copy.SkipTo(at);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(copy.position(), before);
    return std::string(status.message());
  };
  EXPECT_EQ(message(*file.Samples(8), position, StatusCode::kInvalidArgument),
            "--batch was 4 at the checkpoint, and is 8: hot and cold batches go on in their size "
            "alone");
  EXPECT_THAT(message(*file.Samples(4, true), position, StatusCode::kInvalidArgument),
              HasSubstr("in all batches, and not in hot ones alone"));
  EXPECT_THAT(
      message(*file.Samples(4), file.Samples(4, true)->position(), StatusCode::kInvalidArgument),
      HasSubstr("in hot batches alone"));
  EXPECT_THAT(message(*File(8, 60).Samples(4), position, StatusCode::kOutOfRange),
              HasSubstr("the file has 2 cold batches, and the checkpoint is after 3"));
  EXPECT_THAT(message(*file.Samples(4), 12, StatusCode::kInvalidArgument),
              HasSubstr("a place in a log"));
  EXPECT_EQ(file.Samples(4)->SkipTo(DataPosition()), OkStatus());
  DataPosition other = position;
  other.place = 13;
  EXPECT_THAT(message(*file.Samples(4), other, StatusCode::kInvalidArgument),
              HasSubstr("none of these"));
  const std::string order(std::string_view(position.order));
  EXPECT_EQ(order, "batch 4 hot-only 0 cold 3 hot 0 phase 0 given 3 awaits 0 schedule 50 0 none");
  for (const auto& [from, to] : {std::pair("batch 4 ", "batch "),
                                 {"hot-only 0", "hot-only 2"},
                                 {"cold 3", "cold -3"},
                                 {"hot 0 ", ""},
                                 {"phase 0", "phase 2"},
                                 {"given 3", "given 4"},
                                 {"given 3", "given x"},
                                 {"awaits 0", "awaits no"},
                                 {" schedule 50 0 none", ""},
                                 {"50 0 none", "50 9 none"},
                                 {"batch 4", "a batch 4"}}) {
    std::string changed = order;
    changed.replace(changed.find(from), std::string(from).size(), to);
    DataPosition at = position.place;
    at.order = std::string_view(changed);
    EXPECT_THAT(message(*file.Samples(4), at, StatusCode::kInvalidArgument),
                HasSubstr("is none of these hot and cold batches"))
        << changed;
  }
}

// Epochs of hot and cold batches, whose schedule goes on, at any position.
TEST(HotColdSamples, GoOnInEpochs) {
  constexpr uint32_t kEpochs = 3;
  const File file(90, 41);
  const Losses losses(77);
  struct Run {
    HotColdSamples* present = nullptr;
    std::unique_ptr<Epochs> epochs;
  };
  const auto open = [&](Run* run) {
    run->epochs = *Epochs::Open(
        [run, &file](uint32_t) -> StatusOr<std::unique_ptr<ClickSource>> {
          const auto schedule =
              run->present == nullptr ? ShuffleSchedule() : run->present->schedule();
          auto source = file.Samples(4, /*hot_only=*/false, schedule);
          run->present = source.get();
          return source;
        },
        kEpochs);
  };
  const auto next = [&](Run* run) {
    if (run->present->awaits_loss()) {
      run->present->ApplyLoss(losses.At(run->epochs->position().place));
    }
    ClickBatch batch;
    const StatusOr<uint32_t> samples = run->epochs->Next(4, &batch);
    EXPECT_TRUE(samples.ok()) << samples.status();
    return samples.value_or(0) == 0 ? std::string() : NameOf(batch);
  };
  const auto rest = [&](Run* run) {
    std::vector<std::string> texts;
    for (std::string text = next(run); !text.empty(); text = next(run)) texts.push_back(text);
    return texts;
  };
  Run whole;
  open(&whole);
  const std::vector<std::string> all = rest(&whole);
  EXPECT_EQ(all.size(), kEpochs * (23u + 11u));
  EXPECT_NE(whole.present->schedule().rate(), ShuffleSchedule::kRateFirst);
  Run run;
  open(&run);
  for (size_t given = 0; given < all.size(); ++given) {
    Run other;
    open(&other);
    ASSERT_EQ(other.epochs->SkipTo(run.epochs->position()), OkStatus());
    EXPECT_EQ(other.epochs->position(), run.epochs->position());
    ASSERT_EQ(rest(&other),
              std::vector<std::string>(all.begin() + static_cast<ptrdiff_t>(given), all.end()));
    EXPECT_EQ(next(&run), all[given]);
  }
}

}  // namespace
}  // namespace embank::test::hot_cold_test
