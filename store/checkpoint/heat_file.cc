#include "store/checkpoint/heat_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/fence.h"
#include "store/placement/page_rows.h"
#include "store/table/table.h"

namespace embank {
namespace {

struct HeatOfRow {
  uint32_t upper_hash;
  uint32_t fingerprint;
  uint32_t heat;  // 0: there is no row here
};

// The unit of the files: a block of a sketch, or rows. A block has its epoch where rows have
// kNumber.
struct HeatRows {
  static constexpr uint32_t kNumber = 0xFFFFFFFF;
  static constexpr size_t kRows = 5;

  uint32_t number;
  std::array<HeatOfRow, kRows> rows;
};
static_assert(sizeof(HeatRows) == sizeof(HeatBlock));
static_assert(HeatSketch::kBytesMax / sizeof(HeatBlock) < HeatRows::kNumber);

constexpr uint64_t kFileGrainBytes = 4096;  // so that it can be copied without the page cache
constexpr size_t kChunkBlocks = (size_t{1} << 20) / sizeof(HeatBlock);
// So much is copied under one hold of a lock.
constexpr uint64_t kBlocksAtOnce = 64;

// The rows in memory that were looked up since their heat was written, in the order of memory.
class HeatsInMemory {
 public:
  HeatsInMemory(const StoreContext& store, uint64_t now) : store_(store), now_(now) {}

  // Calls visit(row) for each row, until it returns false. Rows that travel meanwhile may be
  // missing, or be there twice; a free slot may look like a row.
  template <typename Visit>
  void Walk(Visit visit) {
    const uint32_t pages = store_.tier->pages_begun();
    for (uint32_t page = 0; page < pages; ++page) {
      uint32_t slots = 1;
      for (uint32_t first = 0; first < slots; first += kSlotsAtOnce) {
        slots = Collect(page, first);
        for (const HeatOfRow& row : std::span(rows_).first(count_)) {
          if (!visit(row)) return;
        }
      }
    }
  }

 private:
  // Reads a part of a page; returns its number of slots.
  uint32_t Collect(uint32_t page, uint32_t first_slot) {
    count_ = 0;
    return ForEachSlot(*store_.tier, *store_.tables, page, first_slot, [&](const SeenSlot& seen) {
      if ((seen.mark.usage & kGainedFlag) == 0) return;
      if (seen.location.HasDevicePayload() && Seeded(SeededBug::kPayloadHeatNotSaved)) return;
      const Key key = LoadKey(seen.header);
      AcquireFence();
      const RowMark mark = LoadMark(seen.header);
      const uint32_t heat = HeatOf(mark.usage, static_cast<HeatEpoch>(now_));
      if ((mark.usage & kGainedFlag) == 0 || heat == 0) return;
      // The row may have changed meanwhile, but it is the same row.
      const TableId owner = seen.table->id();
      if (TableOf(mark.identity) != owner) return;
      if (TableOf(LoadIdentity(seen.header)) != owner || LoadKey(seen.header) != key) return;
      const KeyHash hash = seen.table->HashOf(key);
      rows_[count_++] = {static_cast<uint32_t>(hash >> 32), HeatBlock::FingerprintOf(hash), heat};
    });
  }

  const StoreContext& store_;
  const uint64_t now_;
  std::array<HeatOfRow, kSlotsAtOnce> rows_;
  size_t count_ = 0;
};

class HeatWriter {
 public:
  HeatWriter(Directory* directory, const std::string& name, const StoreContext& store,
             uint64_t rows_bytes_max)
      : directory_(directory),
        name_(name),
        store_(store),
        rows_bytes_max_(rows_bytes_max),
        now_(store.heat_clock->epochs()) {
    chunk_.reserve(kChunkBlocks);
  }

  StatusOr<HeatFile> Run() {
    EMBANK_RETURN_IF_ERROR(AddRows());
    EMBANK_RETURN_IF_ERROR(AddSketch());
    if (file_ == nullptr && chunk_.empty()) return HeatFile{};
    while (chunk_.size() * sizeof(HeatBlock) % kFileGrainBytes != 0) chunk_.push_back({});
    EMBANK_RETURN_IF_ERROR(Flush());
    EMBANK_CHECK(bytes_ > 0 && bytes_ % kFileGrainBytes == 0);
    EMBANK_RETURN_IF_ERROR(file_->Sync());
    return HeatFile{.bytes = bytes_, .sketch_bytes = store_.heat_sketch->bytes(), .crc = crc_};
  }

  bool made() const { return file_ != nullptr; }

 private:
  uint64_t rows_max() const { return rows_bytes_max_ / sizeof(HeatRows) * HeatRows::kRows; }

  Status AddRows() {
    const uint32_t least = LeastHeat();
    uint64_t left = rows_max();
    HeatRows rows = {.number = HeatRows::kNumber, .rows = {}};
    size_t count = 0;
    Status status;
    HeatsInMemory(store_, now_).Walk([&](const HeatOfRow& row) {
      if (row.heat < least) return true;
      rows.rows[count++] = row;
      if (count == HeatRows::kRows) {
        status = Add(std::bit_cast<HeatBlock>(rows));
        rows.rows = {};
        count = 0;
      }
      return status.ok() && --left > 0;
    });
    EMBANK_RETURN_IF_ERROR(status);
    return count > 0 ? Add(std::bit_cast<HeatBlock>(rows)) : status;
  }

  // A power of two with space for all rows that have this heat.
  uint32_t LeastHeat() const {
    uint64_t slots = 0;
    const uint32_t pages = store_.tier->pages_begun();
    for (uint32_t page = 0; page < pages; ++page) {
      std::optional<EpochTable::Guard> reader;
      slots += store_.tier->SlotsOf(page, &reader).slots;
    }
    if (slots <= rows_max()) return 1;
    std::array<uint64_t, kHeatBits + 1> rows = {};  // by bits of their heat
    HeatsInMemory(store_, now_).Walk([&](const HeatOfRow& row) {
      ++rows[std::bit_width(row.heat)];
      return true;
    });
    uint32_t bits = kHeatBits;
    uint64_t sum = rows[bits];
    while (bits > 1 && sum + rows[bits - 1] <= rows_max()) sum += rows[--bits];
    return 1u << (bits - 1);
  }

  Status AddSketch() {
    const HeatSketch& sketch = *store_.heat_sketch;
    const uint64_t shard_blocks = sketch.blocks() / KeyIndex::kShardCount;
    std::array<HeatBlock, kBlocksAtOnce> copy;
    for (uint64_t first = 0; first < sketch.blocks();) {
      const uint64_t shard_left = shard_blocks - first % shard_blocks;
      const std::span blocks = std::span(copy).first(std::min(kBlocksAtOnce, shard_left));
      {
        KeyIndex::Shard* const shard =
            store_.index->shard(static_cast<uint32_t>(first / shard_blocks));
        ReaderMutexLock lock(&shard->mutex);
        sketch.Copy(first, now_, blocks);
      }
      for (HeatBlock& block : blocks) {
        block.epoch = static_cast<uint32_t>(first++);
        if (!block.IsEmpty()) EMBANK_RETURN_IF_ERROR(Add(block));
      }
    }
    return OkStatus();
  }

  Status Add(const HeatBlock& block) {
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
  const uint64_t rows_bytes_max_;
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

void VisitOne(const HeatFile& file, const HeatBlock& block, VisitHeatOfRow add,
              VisitHeatBlock add_block) {
  if (block.epoch < file.sketch_bytes / sizeof(HeatBlock)) add_block(block.epoch, block);
  if (block.epoch != HeatRows::kNumber) return;
  for (const HeatOfRow& row : std::bit_cast<HeatRows>(block).rows) {
    const KeyHash hash = KeyHash{row.upper_hash} << 32 | row.fingerprint;
    if (row.heat > 0) add(hash, std::min(row.heat, kHeatMax));
  }
}

}  // namespace

StatusOr<HeatFile> SaveHeat(Directory* directory, const std::string& name,
                            const StoreContext& store, uint64_t rows_bytes_max) {
  HeatWriter writer(directory, name, store, rows_bytes_max);
  StatusOr<HeatFile> saved = writer.Run();
  if (!saved.ok() && writer.made()) directory->Remove(name).IgnoreError();
  return saved;
}

Status ReadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                VisitHeatOfRow add, VisitHeatBlock add_block) {
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
    for (const HeatBlock& block : chunk) VisitOne(file, block, add, add_block);
  }
  return crc == file.crc ? OkStatus() : Damaged(path, "the heat of rows is damaged");
}

Status LoadHeat(Directory* directory, const std::string& name, const HeatFile& file,
                HeatSketch* sketch) {
  const uint64_t blocks = file.sketch_bytes / sizeof(HeatBlock);
  Status read = ReadHeat(
      directory, name, file, [&](KeyHash hash, uint32_t heat) { sketch->Put(hash, heat, 0); },
      [&](uint64_t number, const HeatBlock& block) { sketch->Add(blocks, number, block); });
  if (!read.ok()) sketch->Clear();
  return read;
}

}  // namespace embank
