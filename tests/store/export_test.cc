// An export is the last checkpoint as an independent store: changes of it or of its source do not
// affect the other.
#include "store/checkpoint/export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "store/checkpoint/heat_file.h"
#include "store/placement/memory_plan.h"
#include "store/store.h"
#include "tests/support/export_world.h"
#include "tests/support/files_by_path.h"
#include "tests/support/segment_count.h"
#include "tests/support/store_files.h"
#include "tests/support/threads.h"

namespace embank::test::export_test {
namespace {

enum class By { kLinks, kCopies };

class ExportTest : public testing::TestWithParam<By> {
 protected:
  ExportTest() : world_(kExportSeed) {
    MakeLast(&world_);
    last_ = *ReadAll(world_.get());
    ChangeAll(world_.get(), 9.0f);
    world_.disk().SetFaults([this](const DiskCall& call) {
      if (call.kind == DiskCall::Kind::kLink) ++links_;
      const bool to_target = call.path.starts_with("copy/segment-");
      if (call.kind == DiskCall::Kind::kSync && to_target) ++copies_;
      return GetParam() == By::kLinks ? OkStatus() : NoLinks(call);
    });
  }

  // Exports a checkpoint from a copy of the disk.
  Status ExportFrom(SimulatedDisk* disk, Manifest manifest) {
    const auto source = OpenedDirectory(disk, "log");
    const auto pmem = WithPmem() ? OpenedDirectory(disk, kPmemPath) : nullptr;
    ByTier<Directory*> sources;
    sources[Tier::kSsd] = source.get();
    sources[Tier::kPmem] = pmem.get();
    return ExportCheckpoint({.files = disk, .memory = &world_.memory(), .sources = sources},
                            std::move(manifest), "copy", GoOn);
  }

  SpillWorld world_;
  Tables last_;
  std::atomic<int> links_{0};
  std::atomic<int> copies_{0};
};

INSTANTIATE_TEST_SUITE_P(, ExportTest, testing::Values(By::kLinks, By::kCopies),
                         [](const auto& by) {
                           return by.param == By::kLinks ? "Links" : "Copies";
                         });

TEST_P(ExportTest, IsTheLastCheckpointAndNotWhatCameAfter) {
  const Status exported = world_->checkpoints()->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  EXPECT_GT(links_, WithPmem() ? 0 : 1) << "segments that are full";
  const std::string in_pmem = "copy/" + SegmentName(kPmemSegmentIdMin).substr(0, 9);
  EXPECT_EQ(FilesWith(world_.disk(), in_pmem).empty(), !WithPmem()) << "segments of PMem";
  EXPECT_GT(copies_, GetParam() == By::kLinks ? 1 : links_.load());
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", last_));
  world_.SetPath("copy");
  const auto previous = world_.OpenBeside(true);
  world_.SetPath("log");
  EXPECT_TRUE(IsFailedPrecondition(previous.status())) << previous.status();
}

TEST_P(ExportTest, TakesNoSpaceTwiceForWhatIsLinked) {
  const auto bytes = [&] {
    world_.disk().SetCapacity(uint64_t{1} << 40);
    return (uint64_t{1} << 40) - *world_.disk().FreeBytes("copy");
  };
  ASSERT_TRUE(world_.disk().CreateDirectory("copy").ok());
  const uint64_t before = bytes();
  ASSERT_TRUE(world_->checkpoints()->Export("copy", GoOn).ok());
  uint64_t copied = 0;
  for (const std::string& file : FilesWith(world_.disk(), "copy/segment-")) {
    if (world_.disk().NamesOf(file) > 1) continue;
    copied += world_.disk().TakenBytes(file);
    const std::string name = file.substr(file.find('/') + 1);
    EXPECT_LE(world_.disk().TakenBytes(file), world_.disk().TakenBytes(PathOfNamed(name))) << file;
  }
  EXPECT_GE(bytes() - before, copied);
  if (GetParam() == By::kLinks) {
    const auto manifest = DecodeManifest(world_.disk().Contents(ManifestPath(2)));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    uint64_t to_copy = 0;
    for (const SegmentRows& rows : manifest->segments) to_copy += BytesToCopy(rows);
    EXPECT_EQ(copied, to_copy);
  }
  EXPECT_LT(bytes() - before,
            copied + SmallLog().segment_bytes + 2 * HeatSketchBytes(kDramBytes, 0));
}

TEST_P(ExportTest, AndItsSourceDoNotHarmEachOther) {
  ASSERT_TRUE(world_->checkpoints()->Export("copy", GoOn).ok());
  const auto live_through = [&](Store* store) {
    // Erased rows leave space that dirty rows do not account for.
    Table* const table = *store->catalog().Open("t");
    ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(1000, 3000), 1.0f));
    ASSERT_TRUE(store->checkpoints()->Make({}).ok());
    ASSERT_TRUE(Erase(table, KeysFrom(1000, 2900), {}).ok());
    for (int round = 1; round <= 4; ++round) {
      for (float factor = 1.0f; factor < 4.0f; ++factor) {
        ASSERT_NO_FATAL_FAILURE(ChangeAll(store, static_cast<float>(round * 10) + factor));
      }
      ASSERT_TRUE(store->checkpoints()->Make(BlobOf("later")).ok());
    }
    EXPECT_GT(store->logs()->lowest().counters().compacted_rows, 0u);
    EXPECT_GT(store->logs()->lowest().counters().dead_segments, 0u);
  };
  const auto files = ContentsWith(world_.disk(), "copy/");
  ASSERT_NO_FATAL_FAILURE(live_through(world_.get()));
  EXPECT_TRUE(ContentsWith(world_.disk(), "copy/") == files) << "no byte of it was changed";
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", last_));
  const Tables later = *ReadAll(world_.get());
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), later));
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", last_));
}

// The export is used first; the source still has everything that they share.
TEST_P(ExportTest, LivesOnWithoutHarmToItsSource) {
  ASSERT_TRUE(world_->checkpoints()->Make(BlobOf(kExportBlob)).ok());
  const Tables now = *ReadAll(world_.get());
  ASSERT_TRUE(world_->checkpoints()->Export("copy", GoOn).ok());
  world_.Close();
  const auto files = FilesOfStore(world_.disk());
  Tables other;
  {
    const auto store = OpenAt(&world_, "copy");
    ASSERT_TRUE(store.ok()) << store.status();
    for (float factor = 1.0f; factor < 12.0f; ++factor) {
      ASSERT_NO_FATAL_FAILURE(ChangeAll(store->get(), factor));
      ASSERT_TRUE((*store)->checkpoints()->Make(BlobOf(kExportBlob)).ok());
    }
    EXPECT_GT((*store)->logs()->lowest().counters().dead_segments, 0u);
    other = *ReadAll(store->get());
  }
  EXPECT_TRUE(FilesOfStore(world_.disk()) == files) << "no byte of it was changed";
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), now));
  ASSERT_NO_FATAL_FAILURE(ChangeAll(world_.get(), 100.0f));
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", other));
}

// A store that goes on in a segment which the export has in part, and ends it.
TEST_P(ExportTest, HasItsOwnOfSegmentsThatAreNotFull) {
  ASSERT_TRUE(world_->checkpoints()->Export("copy", GoOn).ok());
  Tables mine;
  {
    const auto store = OpenAt(&world_, "copy");
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_NO_FATAL_FAILURE(Put(*(*store)->catalog().Open("t"), KeysFrom(500, 40), 6.0f));
    ASSERT_TRUE((*store)->checkpoints()->Make(BlobOf(kExportBlob)).ok());
    mine = *ReadAll(store->get());
  }
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  const Tables source = *ReadAll(world_.get());
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), source));
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", mine));
}

TEST_P(ExportTest, IsOfTheCheckpointThatTheStoreWasOpenedWith) {
  const Tables first = [&] {
    EXPECT_TRUE(world_.Open(true).ok());
    return *ReadAll(world_.get());
  }();
  ASSERT_NE(first, last_);
  ASSERT_TRUE(world_->checkpoints()->Export("copy", GoOn).ok());
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_TRUE(world_->checkpoints()->Export("copied", GoOn).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copied", last_));
  const auto store = OpenAt(&world_, "copy");
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_NO_FATAL_FAILURE(ExpectIs(store->get(), first));
  // And of an export, too.
  ASSERT_TRUE((*store)->checkpoints()->Export("copy of copy", GoOn).ok());
  const auto second = OpenAt(&world_, "copy of copy");
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_NO_FATAL_FAILURE(ExpectIs(second->get(), first));
}

TEST_P(ExportTest, KeepsItsCheckpointWhileOthersAreMade) {
  bool begun = false;
  // With PMem, whose segments are elsewhere, the SSD has one of the checkpoint.
  const std::string last_file =
      std::string("log/segment-000000000000000") + (WithPmem() ? "1" : "4");
  const auto files_of_last = [&] {
    const std::vector<std::string> files = FilesWith(world_.disk(), "log/segment-");
    return std::count_if(files.begin(), files.end(),
                         [&](const std::string& file) { return file <= last_file; });
  };
  const auto kept = files_of_last();
  // Each checkpoint lets the work aside go on.
  const auto remove_dead = [&] {
    const auto segments = [&] { return FilesWith(world_.disk(), "log/segment-").size(); };
    for (int i = 0; i < 1000 && segments() > SegmentCount(world_->logs()->lowest().segments());
         ++i) {
      EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
    }
    EXPECT_EQ(segments(), SegmentCount(world_->logs()->lowest().segments()));
  };
  ASSERT_GT(kept, WithPmem() ? 0 : 2);
  const Status exported = world_->checkpoints()->Export("copy", [&](uint64_t, uint64_t) {
    if (begun) return true;
    begun = true;
    for (int i = 0; i < 6; ++i) {
      ChangeAll(world_.get(), 10.0f + static_cast<float>(i));
      EXPECT_TRUE(world_->checkpoints()->Make(BlobOf("later")).ok());
    }
    remove_dead();
    EXPECT_EQ(files_of_last(), kept);
    return true;
  });
  ASSERT_TRUE(exported.ok()) << exported;
  remove_dead();
  EXPECT_EQ(files_of_last(), 0) << "its space comes back";
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", last_));
}

TEST_P(ExportTest, TellsHowFarItIsAndEndsWhereItIsTold) {
  std::vector<std::pair<uint64_t, uint64_t>> told;
  ASSERT_TRUE(world_->checkpoints()
                  ->Export("copy",
                           [&](uint64_t done, uint64_t total) {
                             told.emplace_back(done, total);
                             return true;
                           })
                  .ok());
  ASSERT_GT(told.size(), 4u);
  EXPECT_EQ(told.front().first, 0u);
  EXPECT_EQ(told.back().first, told.back().second);
  for (size_t i = 1; i < told.size(); ++i) {
    EXPECT_LT(told[i - 1].first, told[i].first);
    EXPECT_EQ(told[i].second, told.front().second);
  }
  for (const bool is_there : {false, true}) {
    if (is_there) {
      ASSERT_TRUE(world_.disk().CreateDirectory("other").ok());
    }
    for (size_t calls = 1; calls <= told.size(); ++calls) {
      size_t call = 0;
      const Status exported = world_->checkpoints()->Export(
          "other", [&](uint64_t, uint64_t) { return ++call < calls; });
      ASSERT_TRUE(IsCancelled(exported)) << exported;
      ASSERT_EQ(call, calls);
      ASSERT_EQ(FilesWith(world_.disk(), "other/"), std::vector<std::string>());
      ASSERT_EQ(world_.disk().List("other").ok(), is_there);
    }
  }
  ASSERT_TRUE(world_->checkpoints()->Export("other", GoOn).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "other", last_));
}

TEST_P(ExportTest, IsRefusedWhereSomethingIsOrNothingCanBe) {
  EXPECT_TRUE(IsAlreadyExists(world_->checkpoints()->Export("log", GoOn))) << "its own directory";
  ASSERT_TRUE(world_.disk().CreateDirectory("full").ok());
  ASSERT_TRUE(world_.disk().Open("full/a", FileAccess::kCreate, FileCaching::kCached).ok());
  const Status full = world_->checkpoints()->Export("full", GoOn);
  EXPECT_TRUE(IsAlreadyExists(full)) << full;
  EXPECT_NE(full.message().find("full is not empty"), std::string::npos) << full;
  EXPECT_EQ(FilesWith(world_.disk(), "full/"), std::vector<std::string>{"full/a"});
  EXPECT_TRUE(IsNotFound(world_->checkpoints()->Export("no such/copy", GoOn)));
  ASSERT_TRUE(world_->checkpoints()->Export("copy", GoOn).ok());
  EXPECT_TRUE(IsAlreadyExists(world_->checkpoints()->Export("copy", GoOn)));
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", last_));
}

// A crash at the very begin leaves a lock file: no reason to refuse the next one.
TEST_P(ExportTest, TakesADirectoryWithALockFileOfNobody) {
  ASSERT_TRUE(world_.disk().CreateDirectory("copy").ok());
  ASSERT_TRUE(world_.disk().Open("copy/LOCK", FileAccess::kCreate, FileCaching::kCached).ok());
  {
    const auto lock = world_.disk().Lock("copy/LOCK", false);
    const Status used = world_->checkpoints()->Export("copy", GoOn);
    EXPECT_TRUE(IsUnavailable(used)) << used;
  }
  ASSERT_TRUE(world_->checkpoints()->Export("copy", GoOn).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world_, "copy", last_));
}

TEST_P(ExportTest, NamesASegmentThatIsMissing) {
  for (const std::string& file : FilesWith(world_.disk(), "log/segment-")) {
    const std::unique_ptr<SimulatedDisk> disk =
        world_.disk().AfterCrash(world_.disk().changes(), Persistence::kAll, 0);
    disk->SetFaults(GetParam() == By::kLinks ? nullptr : SimulatedDisk::FaultPlan(NoLinks));
    Manifest manifest = *(*CheckpointDirectory::Open(disk.get(), "log", false))->Load(2);
    const bool needed = std::any_of(
        manifest.segments.begin(), manifest.segments.end(),
        [&](const SegmentRows& rows) { return file == SegmentPath(rows.header.segment_id); });
    ASSERT_TRUE(disk->Remove(file).ok());
    const Status exported = ExportFrom(disk.get(), std::move(manifest));
    if (needed) {
      EXPECT_TRUE(IsDataLoss(exported)) << exported;
      EXPECT_NE(exported.message().find(file), std::string::npos) << exported;
      EXPECT_EQ(FilesWith(*disk, "copy/"), std::vector<std::string>());
    } else {
      EXPECT_TRUE(exported.ok()) << exported;
    }
  }
}

TEST_P(ExportTest, NamesACopiedSegmentThatIsCutOff) {
  int lost = 0;
  for (const std::string& file : FilesWith(world_.disk(), "log/segment-")) {
    const auto disk = world_.disk().AfterCrash(world_.disk().changes(), Persistence::kAll, 0);
    disk->SetFaults(GetParam() == By::kLinks ? nullptr : SimulatedDisk::FaultPlan(NoLinks));
    Manifest manifest = *(*CheckpointDirectory::Open(disk.get(), "log", false))->Load(2);
    disk->Truncate(file, 2 * kBlockBytes);
    const Status exported = ExportFrom(disk.get(), std::move(manifest));
    if (exported.ok()) continue;
    ++lost;
    EXPECT_TRUE(IsDataLoss(exported)) << exported;
    EXPECT_NE(exported.message().find(file), std::string::npos) << exported;
    EXPECT_EQ(FilesWith(*disk, "copy/"), std::vector<std::string>());
  }
  EXPECT_GT(lost, WithPmem() ? 0 : 1);
}

TEST(Export, NeedsAPathAndACheckpoint) {
  StoreWorld memory_only;
  EXPECT_EQ(memory_only->checkpoints(), nullptr);
  SpillWorld world(kExportSeed);
  Put(world.Create("t", Optimizer::kNone), KeysFrom(1, 10), 1.0f);
  const Status none = world->checkpoints()->Export("copy", GoOn);
  EXPECT_TRUE(IsFailedPrecondition(none)) << none;
  EXPECT_NE(none.message().find("checkpoint"), std::string::npos) << none;
  EXPECT_FALSE(world.disk().List("copy").ok());
}

TEST(Export, ACheckpointWithoutRowsIsExportedWithItsTables) {
  SpillWorld world(kExportSeed);
  world.Create("t", Optimizer::kNone);
  ASSERT_TRUE(world->checkpoints()->Make(BlobOf(kExportBlob)).ok());
  ASSERT_TRUE(world->checkpoints()->Export("copy", GoOn).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectExport(&world, "copy", {{"t", {}}}));
}

// ---- threads ----

#if defined(__SANITIZE_THREAD__)
constexpr int kExports = 6;
#else
constexpr int kExports = 20;
#endif

// One thread makes checkpoints, each with a blob that describes it; two change another table; one
// exports, and opens its exports.
TEST(Export, BesideThreadsIsOneOfTheCheckpoints) {
  constexpr Key kKeys = 200;
  SpillWorld world(kExportSeed, MakeThreadPool(3));
  Table* const table = world.Create("t", Optimizer::kNone);
  Table* const noise = world.Create("noise", Optimizer::kNone);
  std::atomic<bool> ends{false};
  std::atomic<int> checkpoints{0};
  const auto make_one = [&](float factor) {
    Put(table, KeysFrom(1, kKeys), factor);
    ASSERT_TRUE(world->checkpoints()->Make(std::as_bytes(std::span(&factor, 1))).ok());
    ++checkpoints;
  };
  make_one(1.0f);
  int opened = 0;
  OnThreads(4, [&](uint64_t thread) {
    for (int round = 2; thread == 0 && !ends; ++round) make_one(static_cast<float>(round));
    for (int round = 1; (thread == 1 || thread == 2) && !ends; ++round) {
      Put(noise, KeysFrom(thread * 1000, 300), static_cast<float>(round));
    }
    for (int i = 0; thread == 3 && (i < kExports || checkpoints <= 3); ++i) {
      const std::string path = "copy" + std::to_string(i);
      const int begun = checkpoints;
      const Status exported = world->checkpoints()->Export(path, GoOn);
      EXPECT_TRUE(exported.ok()) << exported;
      StoreOptions options = world.options();
      options.path = path;
      options.pmem_path.clear();
      options.pmem_bytes = 0;
      options.may_create = false;
      ManualClock clock(1000);
      const auto store = Store::Open(options, {.clock = &clock,
                                               .executor = std::make_unique<SimulatedExecutor>(i),
                                               .files = &world.disk(),
                                               .log = SmallLog()});
      EXPECT_TRUE(store.ok()) << store.status();
      if (!store.ok()) continue;
      const auto blob = *(*store)->checkpoints()->Blob();
      float factor = 0;
      std::memcpy(&factor, blob.data(), sizeof factor);
      EXPECT_GE(factor, static_cast<float>(begun));
      Rows rows;
      for (Key key = 1; key <= kKeys; ++key) rows[key] = factor * static_cast<float>(key);
      const auto tables = ReadAll(store->get());
      EXPECT_TRUE(tables.ok()) << tables.status();
      EXPECT_TRUE(tables.ok() && tables->at("t") == rows) << factor;
      ++opened;
    }
    if (thread == 3) ends = true;
  });
  EXPECT_GE(opened, kExports);
  EXPECT_GT(checkpoints, 3);
}

}  // namespace
}  // namespace embank::test::export_test
