#include "store/checkpoint/heat_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/index/key_index.h"
#include "store/placement/heat_clock.h"
#include "store/table/store_rows.h"
#include "store/table/table.h"
#include "store/table/table_directory.h"

namespace embank {
namespace {

// In a file a block has its number in place of its epoch. Five rows in place of a block are no
// longer written, but read.
struct HeatRows {
  struct Row {
    uint32_t upper_hash;
    uint32_t fingerprint;
    uint32_t heat;  // 0: there is no row here
  };
  static constexpr uint32_t kNumber = 0xFFFFFFFF;

  uint32_t number;
  std::array<Row, 5> rows;
};
static_assert(sizeof(HeatRows) == sizeof(HeatBlock));
static_assert(HeatSketch::kBytesMax / sizeof(HeatBlock) < HeatRows::kNumber);

constexpr uint64_t kFileGrainBytes = 4096;  // so that it can be copied without the page cache
constexpr size_t kChunkBlocks = (size_t{1} << 20) / sizeof(HeatBlock);
// One hold of a shard's lock collects at most kBlocksAtOnce blocks, and the blocks of some 1,000
// rows, in 40 us. One block has 340 of the smallest rows in the mean where ssd_bytes limits the
// sketch.
constexpr uint64_t kBlocksAtOnce = 64;
constexpr uint64_t kRowsAtOnce = 1024;
constexpr size_t kHeadersAhead = 64;

class HeatWriter {
 public:
  HeatWriter(Directory* directory, const std::string& name, const StoreContext& store,
             uint64_t sketch_bytes)
      : directory_(directory),
        name_(name),
        store_(store),
        blocks_(sketch_bytes / sizeof(HeatBlock)),
        blocks_at_once_(std::clamp<uint64_t>(
            kRowsAtOnce * blocks_ / std::max<uint64_t>(store.store_rows->count(), 1), 1,
            kBlocksAtOnce)),
        now_(store.heat_clock->epochs()) {
    EMBANK_CHECK(HeatSketch::IsSize(sketch_bytes));
    chunk_.reserve(kChunkBlocks);
  }

  StatusOr<HeatFile> Run() {
    const uint64_t shard_blocks = blocks_ / KeyIndex::kShardCount;
    std::array<HeatBlock, kBlocksAtOnce> collected;
    for (uint64_t first = 0; first < blocks_;) {
      const uint64_t shard_left = shard_blocks - first % shard_blocks;
      const std::span blocks = std::span(collected).first(std::min(blocks_at_once_, shard_left));
      Collect(first, blocks);
      for (HeatBlock& block : blocks) {
        block.epoch = static_cast<uint32_t>(first++);
        if (!block.IsEmpty()) EMBANK_RETURN_IF_ERROR(Append(block));
      }
    }
    if (file_ == nullptr && chunk_.empty()) return HeatFile{};
    while (chunk_.size() * sizeof(HeatBlock) % kFileGrainBytes != 0) chunk_.push_back({});
    EMBANK_RETURN_IF_ERROR(Flush());
    EMBANK_CHECK(bytes_ > 0 && bytes_ % kFileGrainBytes == 0);
    EMBANK_RETURN_IF_ERROR(file_->Sync());
    return HeatFile{.bytes = bytes_, .sketch_bytes = blocks_ * sizeof(HeatBlock), .crc = crc_};
  }

  bool made() const { return file_ != nullptr; }

 private:
  // Collects blocks of one shard, from `first` on. Under its lock no row travels, so that each is
  // in memory or in the sketch.
  void Collect(uint64_t first, std::span<HeatBlock> blocks) {
    const KeyHash first_hash = HeatSketch::FirstHashOf(first, blocks_);
    const KeyHash last_hash = HeatSketch::FirstHashOf(first + blocks.size(), blocks_) - 1;
    KeyIndex::Shard* const shard = store_.index->shard(KeyIndex::ShardOf(first_hash));
    ReaderMutexLock lock(&shard->mutex);
    for (size_t i = 0; i < blocks.size(); ++i) {
      blocks[i] = store_.heat_sketch->BlockIn(blocks_, first + i, now_);
    }
    // Misses of the cache overlap, and no memory is taken under the lock.
    std::array<const RowHeader*, kHeadersAhead> rows;
    size_t count = 0;
    const auto put = [&] {
      for (const RowHeader* const row : std::span(rows).first(count)) PutRow(*row, first, blocks);
      count = 0;
    };
    store_.index->VisitHashes(shard, first_hash, last_hash, [&](Location location) {
      if (location.IsInLog()) return;
      if (location.HasDevicePayload() && Seeded(SeededBug::kPayloadHeatNotSaved)) return;
      const auto* const header = reinterpret_cast<const RowHeader*>(store_.tier->Row(location));
      __builtin_prefetch(header);
      rows[count++] = header;
      if (count == rows.size()) put();
    });
    put();
  }

  void PutRow(const RowHeader& row, uint64_t first, std::span<HeatBlock> blocks) const {
    const RowMark mark = LoadMark(&row);
    const uint32_t heat = HeatOf(mark.usage, static_cast<HeatEpoch>(now_));
    if ((mark.usage & kGainedFlag) == 0 || heat == 0) return;
    const TableId owner = TableOf(mark.identity);
    EMBANK_CHECK(owner != kNoTable);
    const Table* const table = store_.tables->Get(owner);
    EMBANK_CHECK(table != nullptr);
    const KeyHash hash = table->HashOf(LoadKey(&row));
    const uint64_t block = HeatSketch::BlockOf(hash, blocks_) - first;
    EMBANK_CHECK(block < blocks.size());
    blocks[block].Put(HeatBlock::FingerprintOf(hash), heat);
  }

  Status Append(const HeatBlock& block) {
    chunk_.push_back(block);
    return chunk_.size() < kChunkBlocks ? OkStatus() : Flush();
  }

  Status Flush() {
    if (file_ == nullptr) {
      Status removed = directory_->Remove(name_);
      if (!removed.ok() && !IsNotFound(removed)) return removed;
      EMBANK_ASSIGN_OR_RETURN(file_,
                              directory_->Open(name_, FileAccess::kCreate, FileCaching::kCached));
    }
    const std::span bytes = std::as_bytes(std::span(chunk_));
    EMBANK_RETURN_IF_ERROR(file_->Write(bytes_, bytes));
    crc_ = ExtendCrc32c(crc_, bytes);
    bytes_ += bytes.size();
    chunk_.clear();
    return OkStatus();
  }

  Directory* const directory_;
  const std::string& name_;
  const StoreContext& store_;
  const uint64_t blocks_;
  const uint64_t blocks_at_once_;
  const uint64_t now_;
  std::unique_ptr<File> file_;
  std::vector<HeatBlock> chunk_;
  uint64_t bytes_ = 0;
  uint32_t crc_ = 0;
};

Status Damaged(const std::string& path, std::string_view what) {
  return DataLossError(StrCat(path, ": ", what));
}

bool IsSize(const HeatFile& file) {
  return HeatSketch::IsSize(file.sketch_bytes) && file.bytes % kFileGrainBytes == 0 &&
         file.bytes <= file.sketch_bytes + HeatSketch::kBytesMax;
}

void AddTo(HeatSketch* sketch, const HeatFile& file, const HeatBlock& block) {
  const uint64_t blocks = file.sketch_bytes / sizeof(HeatBlock);
  if (block.epoch < blocks) sketch->Add(blocks, block.epoch, block);
  if (block.epoch != HeatRows::kNumber) return;
  for (const HeatRows::Row& row : std::bit_cast<HeatRows>(block).rows) {
    const KeyHash hash = KeyHash{row.upper_hash} << 32 | row.fingerprint;
    if (row.heat > 0) sketch->Put(hash, std::min(row.heat, kHeatMax), 0);
  }
}

Status ReadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                HeatSketch* sketch) {
  const std::string path = directory->PathOf(name);
  if (!IsSize(file)) return Damaged(path, "no such file is so long");
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> source,
                          directory->Open(name, FileAccess::kRead, FileCaching::kCached));
  EMBANK_ASSIGN_OR_RETURN(const uint64_t size_bytes, source->SizeBytes());
  if (size_bytes != file.bytes) {
    return Damaged(path, StrCat("it has ", size_bytes, " bytes, not ", file.bytes));
  }
  const uint64_t blocks = file.bytes / sizeof(HeatBlock);
  std::vector<HeatBlock> chunk(std::min<uint64_t>(blocks, kChunkBlocks));
  uint32_t crc = 0;
  for (uint64_t first = 0; first < blocks; first += chunk.size()) {
    chunk.resize(std::min<uint64_t>(chunk.size(), blocks - first));
    EMBANK_RETURN_IF_ERROR(
        source->Read(first * sizeof(HeatBlock), std::as_writable_bytes(std::span(chunk))));
    crc = ExtendCrc32c(crc, std::as_bytes(std::span(chunk)));
    if (sketch == nullptr) continue;
    for (const HeatBlock& block : chunk) AddTo(sketch, file, block);
  }
  return crc == file.crc ? OkStatus() : Damaged(path, "the heat of rows is damaged");
}

}  // namespace

StatusOr<HeatFile> SaveHeat(Directory* directory, const std::string& name,
                            const StoreContext& store, uint64_t sketch_bytes) {
  HeatWriter writer(directory, name, store, sketch_bytes);
  StatusOr<HeatFile> saved = writer.Run();
  if (!saved.ok() && writer.made()) directory->Remove(name).IgnoreError();
  return saved;
}

Status LoadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                HeatSketch* sketch) {
  Status read = ReadHeat(directory, name, file, sketch);
  if (!read.ok() && sketch != nullptr) sketch->Clear();
  return read;
}

}  // namespace embank
