// The least ssd_bytes that a table's refusal names: with it rows are made and kept, with less not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::ssd_need_test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct Shape {
  uint32_t dim;
  int32_t optimizer;
};

// The tables of a store, of a row class each.
using Shapes = std::vector<Shape>;

StorePtr Open(const std::string& path, uint64_t ssd_bytes) {
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  options.ssd_bytes = ssd_bytes;
  options.dram_bytes = 16 * kMiB;
  options.worker_threads = 1;
  return OpenStore(options);
}

std::string NameOf(size_t i) { return "t" + std::to_string(i); }

// Makes the tables: OK, or why the first one that has no space is refused.
embank_status Create(embank_store* store, const Shapes& shapes, std::vector<embank_table*>* tables,
                     std::string* message) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    embank_table* table = nullptr;
    const embank_table_options options = TableOptions(shapes[i].dim, shapes[i].optimizer);
    const embank_status status = embank_table_create(store, NameOf(i).c_str(), &options, &table);
    *message = status == EMBANK_OK ? "" : embank_last_error();
    if (status != EMBANK_OK) return status;
    tables->push_back(table);
  }
  return EMBANK_OK;
}

// The number of bytes that a refusal names.
uint64_t NeedIn(const std::string& message) {
  const std::string before = "needs at least ";
  const size_t at = message.find(before);
  return at == std::string::npos ? 0
                                 : std::strtoull(message.c_str() + at + before.size(), nullptr, 10);
}

class SsdNeed : public testing::Test {
 protected:
  std::string NewPath() { return scratch_.path() + "/" + std::to_string(stores_++); }

  // From 3 MiB on, as the refusals say.
  uint64_t FindNeed(const Shapes& shapes) {
    uint64_t ssd_bytes = 3 * kMiB;
    for (size_t tries = 0; tries <= shapes.size(); ++tries) {
      const StorePtr store = Open(NewPath(), ssd_bytes);
      std::vector<embank_table*> tables;
      std::string message;
      const embank_status status = Create(store.get(), shapes, &tables, &message);
      if (status == EMBANK_OK) return ssd_bytes;
      EXPECT_EQ(status, EMBANK_RESOURCE_EXHAUSTED);
      EXPECT_THAT(message, HasSubstr("ssd_bytes is " + std::to_string(ssd_bytes)));
      EXPECT_GT(NeedIn(message), ssd_bytes) << message;
      ssd_bytes = NeedIn(message);
    }
    ADD_FAILURE() << "what the refusals name is refused";
    return ssd_bytes;
  }

  // One row of each table: made, changed and checkpointed again and again, and found.
  void ExpectHolds(const Shapes& shapes, uint64_t ssd_bytes) {
    const std::string path = NewPath();
    std::vector<float> row(4096);
    const uint64_t key = 7;
    {
      const StorePtr store = Open(path, ssd_bytes);
      std::vector<embank_table*> tables;
      std::string message;
      ASSERT_EQ(Create(store.get(), shapes, &tables, &message), EMBANK_OK) << message;
      for (int round = 0; round < 60; ++round) {
        row[0] = static_cast<float>(round);
        for (embank_table* const table : tables) {
          ASSERT_EQ(embank_upsert(table, &key, 1, row.data(), 0, nullptr), EMBANK_OK)
              << "round " << round << ": " << embank_last_error();
        }
        ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK)
            << "round " << round << ": " << embank_last_error();
      }
    }
    const StorePtr store = Open(path, ssd_bytes);
    for (size_t i = 0; i < shapes.size(); ++i) {
      embank_table* table = nullptr;
      ASSERT_EQ(embank_table_open(store.get(), NameOf(i).c_str(), &table), EMBANK_OK);
      ASSERT_EQ(embank_lookup(table, &key, 1, EMBANK_MISSING_ZERO, row.data(), 0, nullptr),
                EMBANK_OK);
      EXPECT_EQ(row[0], 59.0f);
    }
  }

  const ScratchDirectory scratch_;
  int stores_ = 0;
};

TEST_F(SsdNeed, TheBytesOfARefusalSufficeAndNoFewerDo) {
  const std::vector<Shapes> all = {
      {{4, EMBANK_OPT_NONE}},
      {{4, EMBANK_OPT_ADAM}},
      {{64, EMBANK_OPT_ADAGRAD}},
      {{4096, EMBANK_OPT_NONE}},
      {{4096, EMBANK_OPT_ADAM}},
      {{4, EMBANK_OPT_NONE}, {8, EMBANK_OPT_NONE}, {512, EMBANK_OPT_FTRL}, {12, EMBANK_OPT_SGD}},
  };
  int refused = 0;
  for (const Shapes& shapes : all) {
    SCOPED_TRACE("dim " + std::to_string(shapes[0].dim) + ", optimizer " +
                 std::to_string(shapes[0].optimizer) + ", of " + std::to_string(shapes.size()));
    const uint64_t need = FindNeed(shapes);
    std::printf("%zu tables, the first of dim %u: %llu bytes\n", shapes.size(), shapes[0].dim,
                static_cast<unsigned long long>(need));
    ExpectHolds(shapes, need);
    if (need == 3 * kMiB) continue;
    ++refused;
    const StorePtr store = Open(NewPath(), need - 1);
    std::vector<embank_table*> tables;
    std::string message;
    EXPECT_EQ(Create(store.get(), shapes, &tables, &message), EMBANK_RESOURCE_EXHAUSTED);
    EXPECT_EQ(NeedIn(message), need) << message;
  }
  EXPECT_GE(refused, 3) << "3 MiB hold no row of small dims";
}

TEST_F(SsdNeed, ARefusedTableLeavesTheOthersAsTheyWere) {
  const StorePtr store = Open(NewPath(), 6 * kMiB);
  std::vector<embank_table*> tables;
  std::string message;
  embank_table* first = CreateTable(store.get(), "first", TableOptions(4096));
  const embank_status status =
      Create(store.get(), {{1, EMBANK_OPT_NONE}, {5, EMBANK_OPT_NONE}, {9, EMBANK_OPT_NONE}},
             &tables, &message);
  EXPECT_EQ(status, EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_GT(NeedIn(message), 6 * kMiB) << message;
  const std::vector<float> row(4096, 1.0f);
  const uint64_t key = 1;
  EXPECT_EQ(embank_upsert(first, &key, 1, row.data(), 0, nullptr), EMBANK_OK)
      << embank_last_error();
  EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
}

}  // namespace
}  // namespace embank::test::ssd_need_test
