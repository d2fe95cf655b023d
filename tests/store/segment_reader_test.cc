#include "store/checkpoint/segment_reader.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/files_by_path.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_files.h"

namespace embank::test::segment_reader_test {
namespace {

// A store of one checkpoint, closed.
class ReadingSegments : public testing::Test {
 protected:
  ReadingSegments() : world_(9) {
    Put(world_.Create("t", Optimizer::kNone), KeysFrom(1, 200), 1.0f);
    EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
    world_.Close();
    manifest_ = *DecodeManifest(world_.disk().Contents(ManifestPath(1)));
  }
  // The slots that were visited, of which all had a whole record.
  std::vector<uint32_t> Read(SegmentReader* reader, const SegmentHeader& header,
                             const std::vector<uint64_t>& wanted) {
    std::vector<uint32_t> slots;
    SegmentRows named = {};
    named.header = header;
    EXPECT_TRUE(reader->Open(named).ok());
    reader->ReadRecords(
        wanted, [&](uint32_t slot, const Status& read, std::span<const std::byte> record) {
          EXPECT_TRUE(read.ok()) << read;
          EXPECT_TRUE(RecordIsWhole({header.store_id, header.segment_id, slot}, record)) << slot;
          slots.push_back(slot);
        });
    return slots;
  }

  SpillWorld world_;
  Manifest manifest_;
};

TEST_F(ReadingSegments, InPiecesOrInOneGivesTheSameRecords) {
  ASSERT_GT(manifest_.segments.size(), 2u);
  const auto log = OpenedDirectory(&world_.disk(), "log");
  SegmentReader large(log.get());
  SegmentReader small(log.get(), RoundUp(kRecordScratchBytes, kBlockBytes));
  uint64_t rows = 0;
  for (const SegmentRows& segment : manifest_.segments) {
    const std::vector<uint32_t> slots = Read(&large, segment.header, segment.bits);
    EXPECT_EQ(Read(&small, segment.header, segment.bits), slots);
    rows += slots.size();
  }
  EXPECT_EQ(rows, 200u);
  EXPECT_GT(small.read_bytes(), large.read_bytes()) << "blocks between two pieces are read twice";
}

// Each slot alone, and the first and last of all.
TEST_F(ReadingSegments, OnlyWhatIsWantedIsVisited) {
  const auto log = OpenedDirectory(&world_.disk(), "log");
  SegmentReader reader(log.get(), RoundUp(kRecordScratchBytes, kBlockBytes));
  const SegmentRows& segment = manifest_.segments[0];
  std::vector<uint64_t> none(segment.bits.size());
  EXPECT_TRUE(Read(&reader, segment.header, none).empty());
  uint32_t last = 0;
  for (uint32_t slot = 0; slot < segment.used_slots; ++slot) {
    if (!HasBit(segment.bits, slot)) continue;
    std::vector<uint64_t> wanted = none;
    wanted[slot / 64] |= uint64_t{1} << (slot % 64);
    EXPECT_EQ(Read(&reader, segment.header, wanted), std::vector<uint32_t>{slot});
    last = slot;
  }
  std::vector<uint64_t> ends = none;
  ends[0] |= 1;
  ends[last / 64] |= uint64_t{1} << (last % 64);
  EXPECT_EQ(Read(&reader, segment.header, ends), (std::vector<uint32_t>{0, last}));
}

}  // namespace
}  // namespace embank::test::segment_reader_test
