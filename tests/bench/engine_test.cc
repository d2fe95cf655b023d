#include "bench/engine.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "bench/absl_engine.h"
#include "bench/embank_engine.h"
#include "bench/libcuckoo_engine.h"
#include "bench/table_options.h"
#include "tiers/row/row_layout.h"

namespace embank::engine_test {
namespace {

using MakeEngine = StatusOr<std::unique_ptr<Engine>> (*)(const EngineConfig&);

const std::map<std::string, MakeEngine>& Peers() {
  static const std::map<std::string, MakeEngine> peers = {{"absl", MakeAbslEngine},
                                                          {"libcuckoo", MakeLibcuckooEngine}};
  return peers;
}

// One batch's answer.
struct Answer {
  std::vector<std::byte> rows;
  std::vector<uint8_t> outcomes;
  bool operator==(const Answer&) const = default;
};

class Caller {
 public:
  Caller(Engine* engine, const TableShape& shape) : engine_(engine), shape_(shape) {}

  Answer Fill(KeySpan keys) {
    return Ask(keys, [&](BatchAnswer answer) { return engine_->Fill(keys, answer); });
  }
  Answer Lookup(KeySpan keys) {
    return Ask(keys, [&](BatchAnswer answer) { return engine_->Lookup(keys, answer); });
  }
  Answer Update(KeySpan keys, const std::vector<float>& gradients) {
    return Ask(keys, [&](BatchAnswer answer) {
      return engine_->Update(keys, gradients.data(), answer.outcomes);
    });
  }

 private:
  Answer Ask(KeySpan keys, const std::function<Status(BatchAnswer)>& call) {
    Answer answer;
    answer.rows.resize(keys.size() * shape_.dim * ValueBytes(shape_.value_type));
    answer.outcomes.resize(keys.size());
    EXPECT_TRUE(call({answer.rows.data(), answer.outcomes.data()}).ok());
    return answer;
  }

  Engine* const engine_;
  const TableShape shape_;
};

std::vector<Key> SomeKeys(uint64_t n, uint64_t universe, uint64_t seed) {
  const CounterRandom random(seed);
  std::vector<Key> keys(n);
  for (uint64_t i = 0; i < n; ++i) keys[i] = random.Bits(random.Bits(i) % universe);
  keys[0] = 0;
  keys[n / 2] = ~Key{0};
  return keys;
}

std::vector<float> SomeGradients(uint64_t n, uint32_t dim, uint64_t seed) {
  const CounterRandom random(seed);
  std::vector<float> gradients(n * dim);
  for (uint64_t i = 0; i < gradients.size(); ++i) gradients[i] = random.UnitFloat(i) - 0.5f;
  return gradients;
}

// The peers do the same work as Embank: every answer is the same bits, with hundreds of duplicates.
void ExpectEnginesAgree(const TableShape& shape, uint32_t threads) {
  constexpr uint64_t kBatch = 700;
  const EngineConfig config{shape, 42, threads, 0};
  for (const auto& [name, make_peer] : Peers()) {
    const std::unique_ptr<Engine> reference = *MakeEmbankEngine(config);
    const std::unique_ptr<Engine> peer = *make_peer(config);
    Caller ours(reference.get(), shape);
    Caller theirs(peer.get(), shape);
    for (uint64_t round = 0; round < 12; ++round) {
      const std::vector<Key> keys = SomeKeys(kBatch, round % 3 == 0 ? 5000 : 12, round % 4);
      ASSERT_EQ(ours.Lookup(keys).outcomes, theirs.Lookup(keys).outcomes) << name << round;
      ASSERT_EQ(ours.Fill(keys), theirs.Fill(keys)) << name << round;
      if (shape.optimizer != Optimizer::kNone) {
        const std::vector<float> gradients = SomeGradients(kBatch, shape.dim, round);
        const std::vector<Key> some = SomeKeys(kBatch, 40, round);
        ASSERT_EQ(ours.Update(some, gradients), theirs.Update(some, gradients)) << name << round;
      }
      ASSERT_EQ(ours.Lookup(keys), theirs.Lookup(keys)) << name << round;
    }
  }
}

TEST(Engine, PeersAgreeWithEmbankForEveryOptimizer) {
  for (const Optimizer optimizer :
       {Optimizer::kNone, Optimizer::kSgd, Optimizer::kAdagrad, Optimizer::kRowwiseAdagrad,
        Optimizer::kAdam, Optimizer::kFtrl}) {
    ExpectEnginesAgree({7, ValueType::kF32, optimizer}, 1);
  }
}

TEST(Engine, PeersAgreeWithEmbankForEveryType) {
  for (const ValueType type : {ValueType::kF16, ValueType::kBf16}) {
    ExpectEnginesAgree({33, type, Optimizer::kAdagrad}, 1);
  }
}

TEST(Engine, PeersWithShardsAgreeToo) {
  ExpectEnginesAgree({16, ValueType::kF32, Optimizer::kAdagrad}, 2);
}

// Two threads update disjoint keys and read each other's: every row ends as if alone.
TEST(Engine, PeersTolerateConcurrentWriters) {
  constexpr uint64_t kBatch = 512;
  constexpr uint64_t kRounds = 40;
  const TableShape shape{8, ValueType::kF32, Optimizer::kAdagrad};
  const EngineConfig config{shape, 42, 2, 0};
  const std::vector<Key> first = SomeKeys(kBatch, 3000, 1);
  std::vector<Key> second;
  for (const Key key : first) second.push_back(key ^ 1);
  second[0] = 2;  // SomeKeys has both 0 and 2^64 - 1, whose partners are 1 and 2^64 - 2
  const std::vector<float> gradients = SomeGradients(kBatch, shape.dim, 9);
  const auto work = [&](Engine* engine, const std::vector<Key>& own,
                        const std::vector<Key>& other) {
    Caller caller(engine, shape);
    for (uint64_t round = 0; round < kRounds; ++round) {
      caller.Fill(own);
      caller.Update(own, gradients);
      caller.Lookup(other);
    }
  };
  const std::unique_ptr<Engine> alone = *MakeEmbankEngine(config);
  work(alone.get(), first, first);
  work(alone.get(), second, second);
  const Answer expected_first = Caller(alone.get(), shape).Lookup(first);
  const Answer expected_second = Caller(alone.get(), shape).Lookup(second);
  for (const auto& [name, make_peer] : Peers()) {
    const std::unique_ptr<Engine> peer = *make_peer(config);
    std::thread other([&] { work(peer.get(), second, first); });
    work(peer.get(), first, second);
    other.join();
    EXPECT_EQ(Caller(peer.get(), shape).Lookup(first), expected_first) << name;
    EXPECT_EQ(Caller(peer.get(), shape).Lookup(second), expected_second) << name;
  }
}

// A table that is told its size has the index for it from the beginning.
TEST(Engine, EmbankHasTheIndexForRowsThatWereAnnounced) {
  EXPECT_EQ(ExpectedRowsLog2(0), 0u);
  EXPECT_EQ(ExpectedRowsLog2(1 << 20), 20u);
  EXPECT_EQ(ExpectedRowsLog2((1 << 20) + 1), 21u);
  const auto index_bytes = [](uint64_t rows) {
    const EngineConfig config{{8, ValueType::kF32, Optimizer::kNone}, 42, 1, rows};
    return (*(*MakeEmbankEngine(config))->Memory()).index_bytes;
  };
  EXPECT_GT(index_bytes(4'000'000), index_bytes(0) + 8 * 4'000'000);
}

TEST(Engine, MemoryCountsIndexAndRows) {
  constexpr uint64_t kRows = 400'000;
  const TableShape shape{8, ValueType::kF32, Optimizer::kNone};
  const EngineConfig config{shape, 42, 1, 0};
  std::vector<Key> keys(kRows);
  for (uint64_t i = 0; i < kRows; ++i) keys[i] = i;
  for (const MakeEngine make : {&MakeEmbankEngine, &MakeAbslEngine, &MakeLibcuckooEngine}) {
    const std::unique_ptr<Engine> engine = *make(config);
    const EngineMemory empty = *engine->Memory();
    Caller(engine.get(), shape).Fill(keys);
    const EngineMemory full = *engine->Memory();
    EXPECT_GE(full.index_bytes, 8 * kRows);
    EXPECT_LE(full.index_bytes, 200 * kRows);
    EXPECT_GT(full.index_bytes, empty.index_bytes);
    EXPECT_GE(full.total_bytes, full.index_bytes + 48 * kRows);
  }
}

}  // namespace
}  // namespace embank::engine_test
