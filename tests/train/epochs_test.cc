// Epochs and the order of samples: each sample once an epoch, whatever the batches are.
#include "train/samples/epochs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "train/data/click_text.h"
#include "train/samples/shuffled_samples.h"

namespace embank::test::epochs_test {
namespace {

using Samples = std::vector<std::string>;

constexpr uint32_t kSamples = 1000;

// Samples whose dense feature, id and bag follow from their numbers.
class NumberedSamples final : public ClickSource {
 public:
  explicit NumberedSamples(uint32_t samples) : samples_(samples) {}

  const ClickColumns& columns() const override { return columns_; }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override {
    batch->Clear(columns_.ids.size());
    for (; batch->samples < samples_max && position_ < samples_; ++position_) {
      const auto number = static_cast<uint32_t>(position_);
      AppendRow({.label = static_cast<float>(number % 2),
                 .dense = {static_cast<float>(number)},
                 .ids = {7 * position_, 0, 0},
                 .bags = {{.feature = 1, .ids = std::vector<uint64_t>(number % 3, number)},
                          {.feature = 2,
                           .ids = std::vector<uint64_t>(number % 2, number),
                           .weights =
                               std::vector<float>(number % 2, 0.5f * static_cast<float>(number))}}},
                batch);
    }
    return batch->samples;
  }
  DataPosition position() const override { return position_; }
  Status SkipTo(DataPosition position) override {
    position_ = position.place;
    return OkStatus();
  }
  double FractionRead() const override { return static_cast<double>(position_) / samples_; }

 private:
  const ClickColumns columns_ = {.dense = {"d"}, .ids = {"i", "b", "w"}};
  const uint32_t samples_;
  uint64_t position_ = 0;
};

std::unique_ptr<ClickSource> Data(uint32_t samples = kSamples) {
  return std::make_unique<NumberedSamples>(samples);
}

// The samples from a source's position on, each as a line of text.
Samples Rest(ClickSource* source, uint32_t samples_max = 64) {
  Samples all;
  ClickBatch batch;
  double fraction = source->FractionRead();
  for (;;) {
    const StatusOr<uint32_t> samples = source->Next(samples_max, &batch);
    EXPECT_TRUE(samples.ok()) << samples.status();
    EXPECT_GE(source->FractionRead(), fraction);
    fraction = source->FractionRead();
    EXPECT_LE(fraction, 1.0);
    if (!samples.ok() || *samples == 0) return all;
    EXPECT_LE(*samples, samples_max);
    EXPECT_TRUE(CheckBatch(batch, source->columns()).ok());
    const std::string text = TextOf(batch);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      all.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
}

Samples Sorted(Samples samples) {
  std::ranges::sort(samples);
  return samples;
}

ShuffledSamples Shuffled(uint32_t window, uint64_t seed = 1) {
  return ShuffledSamples(Data(), window, seed);
}

TEST(ShuffledSamples, GiveEachSampleOfAWindowOnce) {
  const Samples in_order = Rest(Data().get());
  ASSERT_EQ(in_order.size(), kSamples);
  for (const uint32_t window : {1u, 2u, 7u, 250u, kSamples, 3 * kSamples}) {
    SCOPED_TRACE(window);
    ShuffledSamples source = Shuffled(window);
    const Samples given = Rest(&source);
    ASSERT_EQ(given.size(), kSamples);
    for (size_t begin = 0; begin < kSamples; begin += window) {
      const size_t end = std::min<size_t>(begin + window, kSamples);
      const auto part = [&](const Samples& all) {
        return Sorted({all.begin() + static_cast<ptrdiff_t>(begin),
                       all.begin() + static_cast<ptrdiff_t>(end)});
      };
      ASSERT_EQ(part(given), part(in_order));
    }
    EXPECT_EQ(given == in_order, window == 1);
  }
}

TEST(ShuffledSamples, HaveAnOrderByTheSeedAlone) {
  ShuffledSamples first = Shuffled(100);
  const Samples given = Rest(&first);
  for (const uint32_t samples_max : {1u, 33u, 100u, 512u}) {
    ShuffledSamples again = Shuffled(100);
    EXPECT_EQ(Rest(&again, samples_max), given);
  }
  ShuffledSamples other = Shuffled(100, 2);
  EXPECT_NE(Rest(&other), given);
  // Windows have orders of their own: the places of their samples differ.
  const Samples in_order = Rest(Data().get());
  const auto places = [&](size_t window) {
    std::vector<size_t> found;
    for (size_t i = 0; i < 100; ++i) {
      const auto begin = in_order.begin() + static_cast<ptrdiff_t>(100 * window);
      found.push_back(
          static_cast<size_t>(std::find(begin, begin + 100, given[100 * window + i]) - begin));
    }
    return found;
  };
  EXPECT_NE(places(0), places(1));
}

// Each sample comes to each place of a window about as often as to others.
TEST(ShuffledSamples, AreUniform) {
  constexpr uint32_t kWindow = 4;
  constexpr uint32_t kOrders = 4000;
  const Samples in_order = Rest(Data(kWindow).get());
  uint32_t counts[kWindow][kWindow] = {};
  for (uint64_t seed = 0; seed < kOrders; ++seed) {
    ShuffledSamples source(Data(kWindow), kWindow, seed);
    const Samples given = Rest(&source);
    for (uint32_t i = 0; i < kWindow; ++i) {
      ++counts[i][std::ranges::find(in_order, given[i]) - in_order.begin()];
    }
  }
  for (const auto& of_place : counts) {
    // Five standard deviations.
    for (const uint32_t count : of_place) EXPECT_NEAR(count, kOrders / kWindow, 137);
  }
}

// Up to `count` samples.
Samples Some(ClickSource* source, uint32_t count) {
  Samples all;
  ClickBatch batch;
  while (all.size() < count) {
    const auto left = static_cast<uint32_t>(count - all.size());
    const StatusOr<uint32_t> samples = source->Next(std::min(left, 33u), &batch);
    EXPECT_TRUE(samples.ok()) << samples.status();
    if (!samples.ok() || *samples == 0) return all;
    std::istringstream text(TextOf(batch));
    for (std::string line; std::getline(text, line);) all.push_back(line);
  }
  return all;
}

// The data grow twice, each time behind a place in a whole window, in the last one, or at the end.
TEST(ShuffledSamples, GiveAppendedSamplesOnce) {
  constexpr uint32_t kEnds[] = {900, 960, 1400};
  const Samples expected = Sorted(Rest(Data(kEnds[2]).get()));
  for (const uint32_t first : {0u, 40u, 250u, 600u, 751u, 800u, 899u, 900u}) {
    for (const uint32_t second : {0u, 1u, 50u, 99u, 101u, 130u, 170u, 1400u}) {
      SCOPED_TRACE(testing::Message() << first << ", " << second);
      DataPosition position;
      Samples given;
      for (const auto& [end, count] :
           {std::pair(kEnds[0], first), {kEnds[1], second}, {kEnds[2], kEnds[2]}}) {
        ShuffledSamples source(Data(end), 250, 1);
        ASSERT_TRUE(source.SkipTo(position).ok());
        const Samples some = Some(&source, count);
        given.insert(given.end(), some.begin(), some.end());
        position = source.position();
        EXPECT_EQ(position.place, given.size());
      }
      EXPECT_EQ(Sorted(given), expected);
    }
  }
}

// A position is where the same data go on.
TEST(Epochs, GoOnAtAnyPosition) {
  constexpr uint32_t kEpochs = 3;
  const auto open = [](uint32_t epoch) -> StatusOr<std::unique_ptr<ClickSource>> {
    return std::make_unique<ShuffledSamples>(Data(), 300, epoch);
  };
  const auto whole = *Epochs::Open(open, kEpochs);
  const Samples all = Rest(whole.get());
  EXPECT_EQ(whole->FractionRead(), 1.0);
  ASSERT_EQ(all.size(), kEpochs * kSamples);
  const auto epoch = [&](uint32_t i) {
    return Samples(all.begin() + i * kSamples, all.begin() + (i + 1) * kSamples);
  };
  EXPECT_NE(epoch(0), epoch(1)) << "each epoch has an order of its own";
  for (uint32_t i = 0; i < kEpochs; ++i) EXPECT_EQ(Sorted(epoch(i)), Sorted(Rest(Data().get())));

  const auto source = *Epochs::Open(open, kEpochs);
  ClickBatch batch;
  for (size_t given = 0; given < all.size();) {
    const uint32_t samples = *source->Next(90, &batch);
    ASSERT_GT(samples, 0u);
    given += samples;
    EXPECT_EQ(source->epoch(), (given - 1) / kSamples) << "a batch of two epochs";
    const auto other = *Epochs::Open(open, kEpochs);
    ASSERT_TRUE(other->SkipTo(source->position()).ok());
    EXPECT_EQ(other->position(), source->position());
    EXPECT_EQ(Rest(other.get()), Samples(all.begin() + static_cast<ptrdiff_t>(given), all.end()));
  }
  // More epochs can be given later, and fewer cannot.
  const auto more = *Epochs::Open(open, kEpochs + 1);
  ASSERT_TRUE(more->SkipTo(source->position()).ok());
  EXPECT_EQ(Rest(more.get()).size(), kSamples);
  const auto fewer = *Epochs::Open(open, kEpochs - 1);
  EXPECT_THAT(fewer->SkipTo(source->position()).message(),
              testing::HasSubstr("--epochs is 2, and the data go on in epoch 3: give --epochs 3"));
  const auto shorter = *Epochs::Open(
      [](uint32_t) -> StatusOr<std::unique_ptr<ClickSource>> {
        return std::make_unique<ShuffledSamples>(Data(10), 4, 1);
      },
      kEpochs);
  EXPECT_THAT(shorter->SkipTo(source->position()).message(),
              testing::HasSubstr("have 10 samples, and not 1000"));
}

TEST(Epochs, TellHowFarTheySkipped) {
  const auto source = *Epochs::Open(
      [](uint32_t) -> StatusOr<std::unique_ptr<ClickSource>> { return Data(5000); }, 2);
  ClickBatch batch;
  while (source->epoch() == 0) ASSERT_GT(*source->Next(900, &batch), 0u);
  ASSERT_EQ(*source->Next(3100, &batch), 3100u);
  const auto other = *Epochs::Open(
      [](uint32_t) -> StatusOr<std::unique_ptr<ClickSource>> { return Data(5000); }, 2);
  std::vector<std::pair<double, uint64_t>> told;
  ASSERT_TRUE(other
                  ->SkipTo(source->position(),
                           [&](double fraction, uint64_t position) {
                             told.emplace_back(fraction, position);
                           })
                  .ok());
  EXPECT_EQ(told, (std::vector<std::pair<double, uint64_t>>{
                      {0.256, 1024}, {0.512, 2048}, {0.768, 3072}, {1.0, 4000}}));
  EXPECT_EQ(other->position(), source->position());
}

TEST(Epochs, TellThatOneCannotBeOpened) {
  const auto source = *Epochs::Open(
      [](uint32_t epoch) -> StatusOr<std::unique_ptr<ClickSource>> {
        if (epoch == 1) return NotFoundError("the log is gone");
        return Data(5);
      },
      2);
  ClickBatch batch;
  ASSERT_EQ(*source->Next(100, &batch), 5u);
  EXPECT_EQ(source->Next(100, &batch).status().message(), "the log is gone");
}

}  // namespace
}  // namespace embank::test::epochs_test
