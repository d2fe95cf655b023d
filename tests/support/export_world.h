// A store with a checkpoint that is worth an export, and stores opened beside it.
#ifndef EMBANK_TESTS_SUPPORT_EXPORT_WORLD_H_
#define EMBANK_TESTS_SUPPORT_EXPORT_WORLD_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test {

inline constexpr uint64_t kExportSeed = 7;
inline const std::string kExportBlob = "last";

inline constexpr auto GoOn = [](uint64_t, uint64_t) { return true; };

// Makes calls fail that may not work between two file systems.
inline Status NoLinks(const DiskCall& call) {
  if (call.kind != DiskCall::Kind::kLink) return OkStatus();
  return UnimplementedError("link: not across file systems");
}

// Makes the last checkpoint: of two row classes, with segments that are full and such that are not.
inline void MakeLast(SpillWorld* world) {
  Table* const table = world->Create("t", Optimizer::kNone);
  Table* const wide = world->Create("wide", Optimizer::kAdagrad);
  Put(table, KeysFrom(1, 150), 1.0f);
  Put(wide, KeysFrom(1, 20), 2.0f);
  ASSERT_TRUE((*world)->checkpoints()->Make(BlobOf("first")).ok());
  LookUp(table, KeysFrom(20, 50));
  Put(table, KeysFrom(100, 130), 3.0f);
  ASSERT_TRUE(Erase(table, KeysFrom(1, 10), {}).ok());
  ASSERT_TRUE((*world)->checkpoints()->Make(BlobOf(kExportBlob)).ok());
}

// Makes changes of all kinds, which no export has; it changes the same rows again and again.
inline void ChangeAll(Store* store, float factor) {
  for (Table* const table : store->catalog().List()) {
    ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(1, 260), factor));
    ASSERT_TRUE(Erase(table, KeysFrom(31, 5), {}).ok());
  }
  const std::string name = "new" + std::to_string(store->catalog().List().size());
  const StatusOr<Table*> added = store->CreateTable(name, OptionsOf(kDim));
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_NO_FATAL_FAILURE(Put(*added, KeysFrom(1, 10), factor));
}

// Opens a store that was made in another directory, beside open ones; it never makes a new one.
inline StatusOr<std::unique_ptr<Store>> OpenAt(SpillWorld* world, const std::string& path,
                                               bool may_create = false) {
  const StoreOptions own = world->options();
  world->SetPath(path);
  // A directory of PMem is made only where the store may be made.
  if (WithPmem()) world->disk().CreateDirectory(world->options().pmem_path).IgnoreError();
  world->options().may_create = may_create;
  auto store = world->OpenBeside();
  world->options() = own;
  return store;
}

inline void ExpectExport(SpillWorld* world, const std::string& path, const Tables& expected) {
  const auto store = OpenAt(world, path);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_NO_FATAL_FAILURE(ExpectIs(store->get(), expected));
  const auto blob = (*store)->checkpoints()->Blob();
  ASSERT_TRUE(blob.ok()) << blob.status();
  const auto expected_blob = BlobOf(kExportBlob);
  EXPECT_TRUE(std::equal(blob->begin(), blob->end(), expected_blob.begin(), expected_blob.end()));
}

// Files whose path begins so.
inline std::vector<std::string> FilesWith(const SimulatedDisk& disk, const std::string& begin) {
  std::vector<std::string> files = disk.Files();
  std::erase_if(files, [&](const std::string& file) { return !file.starts_with(begin); });
  return files;
}

inline std::map<std::string, std::vector<std::byte>> ContentsWith(const SimulatedDisk& disk,
                                                                  const std::string& begin) {
  std::map<std::string, std::vector<std::byte>> contents;
  for (const std::string& file : FilesWith(disk, begin)) contents[file] = disk.Contents(file);
  return contents;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_EXPORT_WORLD_H_
