// Stores of older manifest formats: they open, and their next checkpoint upgrades them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "store/checkpoint/manifest.h"
#include "tests/store/pmem_rows.h"
#include "tests/support/sealed_bytes.h"

namespace embank::test::format_upgrade_test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t kVersionAt = 8;
constexpr size_t kPmemAt = 52;  // the next segment in PMem, and the length of an empty path
constexpr size_t kPmemPartBytes = sizeof(uint64_t) + sizeof(uint32_t);
constexpr size_t kTimeAt = kPmemAt + kPmemPartBytes;
constexpr size_t kTimeBytes = sizeof(int64_t);
constexpr size_t kMediumAt = 32;  // in a segment's entry
constexpr size_t kMediumBytes = sizeof(uint32_t);
// Limits, penalties, rounding, expected rows and gradient calls, at the end of a table's entry.
constexpr size_t kRulesBytes = 5 * sizeof(float) + 2 * sizeof(uint32_t) + sizeof(uint64_t);

uint32_t VersionOf(const Bytes& manifest) {
  uint32_t version = 0;
  std::memcpy(&version, manifest.data() + kVersionAt, sizeof version);
  return version;
}

void Erase(Bytes* bytes, size_t at, size_t count) {
  const auto begin = bytes->begin() + static_cast<std::ptrdiff_t>(at);
  bytes->erase(begin, begin + static_cast<std::ptrdiff_t>(count));
}

// The bytes of a manifest with one table and without PMem in an older version, which has no rules
// of a later time, no time, no id of PMem and no lost rows. Version 2 has no PMem and no medium of
// a segment either.
Bytes InVersion(uint32_t version, Bytes bytes) {
  const Manifest manifest = *DecodeManifest(bytes);
  EXPECT_TRUE(manifest.directories[Tier::kPmem].path.empty());
  EXPECT_EQ(manifest.tables.size(), 1u);
  std::vector<size_t> media;
  size_t entries_bytes = 0;
  for (const SegmentRows& rows : manifest.segments) {
    media.push_back(entries_bytes + kMediumAt);
    entries_bytes += kMediumAt + kMediumBytes + rows.bits.size() * sizeof(uint64_t) +
                     rows.keys.size() * sizeof(Key) + rows.tables.size() * sizeof(TableId);
  }
  // After the entries are the heat file's numbers, those of PMem and lost rows, the blob and the
  // checksum.
  constexpr size_t kHeatBytes = 2 * sizeof(uint64_t) + sizeof(uint32_t);
  constexpr size_t kLostBytes = 2 * sizeof(uint64_t);
  const size_t end_bytes = sizeof(uint64_t) + manifest.blob.size() + sizeof(uint32_t);
  const size_t entries_at = bytes.size() - end_bytes - kLostBytes - kHeatBytes - entries_bytes;
  Erase(&bytes, bytes.size() - end_bytes - kLostBytes, kLostBytes);
  for (size_t i = version < 3 ? media.size() : 0; i-- > 0;) {
    Erase(&bytes, entries_at + media[i], kMediumBytes);
  }
  Erase(&bytes, entries_at - sizeof(uint32_t) - kRulesBytes, kRulesBytes);  // before a number
  Erase(&bytes, kTimeAt, kTimeBytes);
  if (version < 3) Erase(&bytes, kPmemAt, kPmemPartBytes);
  PutAt<uint32_t>(bytes, kVersionAt, version);
  SealAgain(bytes);
  return bytes;
}

class FormatUpgrade : public PmemTier, public testing::WithParamInterface<uint32_t> {
 protected:
  std::vector<std::string> Manifests() {
    std::vector<std::string> manifests;
    for (const std::string& file : world_.disk().Files()) {
      if (file.find("log/MANIFEST-") == 0) manifests.push_back(file);
    }
    return manifests;
  }
  void Replace(const std::string& file, const Bytes& bytes) {
    ASSERT_TRUE(world_.disk().Remove(file).ok());
    const auto made = world_.disk().Open(file, FileAccess::kCreate, FileCaching::kCached);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE((*made)->Preallocate(bytes.size()).ok());
    ASSERT_TRUE((*made)->Write(0, bytes).ok());
  }
  void MakeAllOlder() {
    ASSERT_EQ(Manifests().size(), 2u);
    for (const std::string& file : Manifests()) {
      const Bytes bytes = InVersion(GetParam(), world_.disk().Contents(file));
      ASSERT_TRUE(DecodeManifest(bytes).ok()) << DecodeManifest(bytes).status();
      ASSERT_NO_FATAL_FAILURE(Replace(file, bytes));
    }
  }
  // The version of the newest manifest, whose name is the last.
  uint32_t NewestVersion() { return VersionOf(world_.disk().Contents(Manifests().back())); }
};

INSTANTIATE_TEST_SUITE_P(Versions, FormatUpgrade, testing::Values(2u, 3u));

TEST_P(FormatUpgrade, AStoreOfAnOlderFormatIsUpgradedAtItsNextCheckpoint) {
  table_ = world_.Create("t", Optimizer::kAdagrad);
  const auto set_norm = [this](float norm) {
    const auto change = [norm](UpdateRule* rule) { rule->max_gradient_norm = norm; };
    ASSERT_TRUE(table_->ChangeRule(change).ok());
  };
  set_norm(3.0f);
  ++table_->counters().gradient_calls;
  Fill(3000);
  Checkpoint();
  Fill(1000, 2.0f);
  Checkpoint();
  world_.Close();
  ASSERT_NO_FATAL_FAILURE(MakeAllOlder());
  // It also opens with PMem, in which it has no rows yet.
  world_.AddPmemOptions(kLargePmem);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(NewestVersion(), GetParam());
  EXPECT_EQ(pmem_rows(), 0u);
  EXPECT_EQ(table_->options().rule.max_gradient_norm, 0.0f) << "it is what older stores have";
  EXPECT_EQ(table_->counters().gradient_calls, 0u);
  set_norm(4.0f);
  ++table_->counters().gradient_calls;
  ExpectRows(1000, 2.0f);
  Fill(500, 3.0f);
  Checkpoint();
  EXPECT_EQ(NewestVersion(), kManifestFormatVersion);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_GT(pmem_rows(), 0u);
  EXPECT_EQ(table_->options().rule.max_gradient_norm, 4.0f);
  EXPECT_EQ(table_->counters().gradient_calls, 1u);
  EXPECT_EQ(table_->rows(), 3000u);
  ExpectRows(500, 3.0f);
  Fill(3000, 4.0f);
  Checkpoint();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(3000, 4.0f);
}

// Its checkpoint has no time; the others of its facts are counted.
TEST_P(FormatUpgrade, ACheckpointOfAnOlderFormatHasTimeZero) {
  table_ = world_.Create("t", Optimizer::kAdagrad);
  Fill(3000);
  Checkpoint();
  Checkpoint();
  const CheckpointFacts made = *world_->checkpoints()->Facts();
  EXPECT_GT(made.unix_ns, 0);
  world_.Close();
  ASSERT_NO_FATAL_FAILURE(MakeAllOlder());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  const CheckpointFacts opened = *world_->checkpoints()->Facts();
  EXPECT_EQ(opened.unix_ns, 0);
  EXPECT_EQ(opened.checkpoint, made.checkpoint);
  EXPECT_EQ(opened.rows, 3000u);
  EXPECT_EQ(opened.bytes, made.bytes);
  Checkpoint();
  EXPECT_EQ(NewestVersion(), kManifestFormatVersion);
  EXPECT_GE(world_->checkpoints()->Facts()->unix_ns, made.unix_ns);
}

}  // namespace
}  // namespace embank::test::format_upgrade_test
