// Names of tables that are no UTF-8: no new ones; those that older stores have are opened, and the
// metrics are text all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "bindings/c/embank.h"
#include "store/checkpoint/manifest.h"
#include "tests/support/c_api.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::table_names_test {
namespace {

using testing::HasSubstr;

TEST(TableNames, ANewOneIsUtf8) {
  const StorePtr store = OpenStore();
  const embank_table_options options = TableOptions(1);
  embank_table* table = nullptr;
  for (const char* const name : {"caf\xE9", "caf\xC3", "caf\xED\xA0\x80", "caf\x80"}) {
    EXPECT_EQ(embank_table_create(store.get(), name, &options, &table), EMBANK_INVALID_ARGUMENT);
    EXPECT_THAT(embank_last_error(), HasSubstr("name: byte 0x"));
    EXPECT_THAT(embank_last_error(), HasSubstr("at position 3 "));
    EXPECT_EQ(embank_table_open(store.get(), name, &table), EMBANK_NOT_FOUND);
  }
  EXPECT_EQ(table, nullptr);
  EXPECT_NE(CreateTable(store.get(), "caf\xC3\xA9 \xF0\x9F\x93\xA6 \x01\t", options), nullptr);
  EXPECT_THAT(Metrics(store.get()), HasSubstr("table=\"caf\xC3\xA9 \xF0\x9F\x93\xA6 \x01\t\""));
}

// Changes a table's name in all manifests of a closed store to one that only an older version
// accepted.
void Rename(const std::string& path, const std::string& from, const std::string& to) {
  int renamed = 0;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().filename().string().rfind("MANIFEST-", 0) != 0) continue;
    std::ifstream read(file.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(read), {});
    StatusOr<Manifest> manifest = DecodeManifest(std::as_bytes(std::span(text)));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    for (ManifestTable& table : manifest->tables) {
      if (table.name != from) continue;
      table.name = to;
      ++renamed;
    }
    const std::vector<std::byte> bytes = EncodeManifest(*manifest);
    std::ofstream(file.path(), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  }
  ASSERT_GT(renamed, 0);
}

TEST(TableNames, OneOfAnOlderStoreIsOpenedAndItsMetricsAreText) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() + "/store";
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = uint64_t{32} << 20;
  const uint64_t key = 5;
  const float value = 3.0f;
  {
    const StorePtr store = OpenStore(options);
    embank_table* const table = CreateTable(store.get(), "cafe", TableOptions(1));
    ASSERT_EQ(embank_upsert(table, &key, 1, &value, 0, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }
  ASSERT_NO_FATAL_FAILURE(Rename(path, "cafe", "caf\xE9"));
  const StorePtr store = OpenStore(options);
  embank_table* table = nullptr;
  ASSERT_EQ(embank_table_open(store.get(), "caf\xE9", &table), EMBANK_OK) << embank_last_error();
  float found = 0;
  EXPECT_EQ(embank_lookup(table, &key, 1, EMBANK_MISSING_ZERO, &found, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(found, value);
  const std::string metrics = Metrics(store.get());
  EXPECT_EQ(FirstNotUtf8(metrics), metrics.size());
  EXPECT_THAT(metrics, HasSubstr("table=\"caf\\\\xe9\""));
  EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(embank_table_drop(store.get(), "caf\xE9"), EMBANK_OK) << embank_last_error();
}

}  // namespace
}  // namespace embank::test::table_names_test
