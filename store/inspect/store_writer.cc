#include "store/inspect/store_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "tiers/segment/log_record.h"
#include "tiers/segment/segment_format.h"

namespace embank {

static_assert(StoreWriter::kBufferBytesMin >= kBlockBytes + kRecordBytesMax);

// A segment that takes records. Its length follows from their number, so that the header is written
// last.
class StoreWriter::OpenSegment {
 public:
  static StatusOr<std::unique_ptr<OpenSegment>> Make(Directory* directory,
                                                     const SegmentHeader& header,
                                                     const StoreWriterOptions& options,
                                                     MemoryBudget* budget) {
    EMBANK_ASSIGN_OR_RETURN(
        std::unique_ptr<File> file,
        directory->Open(SegmentName(header.segment_id), FileAccess::kCreate, FileCaching::kDirect));
    EMBANK_ASSIGN_OR_RETURN(
        AlignedBuffer buffer,
        AlignedBuffer::Create(SystemMemorySource(), budget, options.buffer_bytes));
    const uint32_t slots = SegmentGeometry::Of(header.record_bytes, kSegmentBytesMax).slots;
    return std::unique_ptr<OpenSegment>(new OpenSegment(std::move(file), header, std::move(buffer),
                                                        options.buffer_bytes,
                                                        std::min(options.segment_rows_max, slots)));
  }

  uint32_t rows() const { return static_cast<uint32_t>(keys_.size()); }
  bool is_full() const { return rows() == rows_max_; }

  Status Add(const RecordHeader& record, std::span<const std::byte> payload) {
    const uint32_t bytes = header_.record_bytes;
    if (filled_ + bytes > buffer_bytes_) EMBANK_RETURN_IF_ERROR(WriteBlocks());
    const std::span place(buffer_.data() + filled_, bytes);
    EMBANK_CHECK(!is_full() && filled_ + bytes <= buffer_bytes_);
    EMBANK_CHECK(payload.size() == bytes - sizeof record);
    std::memcpy(place.data() + sizeof record, payload.data(), payload.size());
    SealRecord({header_.store_id, header_.segment_id, rows()}, record, place);
    filled_ += bytes;
    keys_.push_back(record.key);
    tables_.push_back(record.table);
    return OkStatus();
  }

  // Writes the rest, the footer and the header, durably except the file's name. The header has the
  // segment's length then.
  Status End(MemoryBudget* budget) {
    EMBANK_CHECK(rows() > 0 && rows() <= rows_max_);
    header_.segment_bytes = SegmentGeometry::BytesFor(header_.record_bytes, rows());
    const auto geometry = SegmentGeometry::Of(header_.record_bytes, header_.segment_bytes);
    EMBANK_CHECK(geometry.slots >= rows());
    const uint64_t rest_bytes = RoundUp(filled_, kBlockBytes);
    std::fill(buffer_.data() + filled_, buffer_.data() + rest_bytes, std::byte{0});
    EMBANK_RETURN_IF_ERROR(file_->Write(begin_, {buffer_.data(), rest_bytes}));
    EMBANK_ASSIGN_OR_RETURN(
        const AlignedBuffer footer,
        AlignedBuffer::Create(SystemMemorySource(), budget, geometry.footer_bytes));
    const std::span footer_bytes(footer.data(), geometry.footer_bytes);
    EncodeSegmentFooter(header_, {keys_, tables_}, footer_bytes);
    EMBANK_RETURN_IF_ERROR(file_->Write(geometry.footer_offset, footer_bytes));
    const std::span block(buffer_.data(), kBlockBytes);
    EncodeSegmentHeader(header_, block);
    EMBANK_RETURN_IF_ERROR(file_->Write(0, block));
    return file_->Sync();
  }

  SegmentRows Describe() const {
    SegmentRows described = {.header = header_,
                             .tier = Tier::kSsd,
                             .used_slots = rows(),
                             .bits = std::vector<uint64_t>(RoundUp(rows(), 64) / 64, ~uint64_t{0}),
                             .keys = {},
                             .tables = {}};
    if (rows() % 64 != 0) described.bits.back() = (uint64_t{1} << (rows() % 64)) - 1;
    return described;
  }

 private:
  OpenSegment(std::unique_ptr<File> file, const SegmentHeader& header, AlignedBuffer buffer,
              uint64_t buffer_bytes, uint32_t rows_max)
      : file_(std::move(file)),
        header_(header),
        buffer_(std::move(buffer)),
        buffer_bytes_(buffer_bytes),
        rows_max_(rows_max) {
    keys_.reserve(rows_max);
    tables_.reserve(rows_max);
  }

  Status WriteBlocks() {
    const uint64_t bytes = RoundDown(filled_, kBlockBytes);
    EMBANK_CHECK(bytes > 0 && begin_ % kBlockBytes == 0);
    EMBANK_RETURN_IF_ERROR(file_->Write(begin_, {buffer_.data(), bytes}));
    std::memmove(buffer_.data(), buffer_.data() + bytes, filled_ - bytes);
    begin_ += bytes;
    filled_ -= bytes;
    return OkStatus();
  }

  const std::unique_ptr<File> file_;
  SegmentHeader header_;
  const AlignedBuffer buffer_;
  const uint64_t buffer_bytes_;
  const uint32_t rows_max_;
  uint64_t begin_ = kBlockBytes;  // the place of the buffer in the file
  uint64_t filled_ = 0;
  std::vector<Key> keys_;
  std::vector<TableId> tables_;
};

StatusOr<std::unique_ptr<StoreWriter>> StoreWriter::Make(FileSystem* files, const std::string& path,
                                                         StoreWriterOptions options) {
  EMBANK_CHECK(options.buffer_bytes >= kBufferBytesMin && options.buffer_bytes % kBlockBytes == 0 &&
               options.segment_rows_max > 0);
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointDirectory> directory,
                          CheckpointDirectory::OpenVacant(files, path));
  return std::unique_ptr<StoreWriter>(new StoreWriter(std::move(directory), std::move(options)));
}

StoreWriter::StoreWriter(std::unique_ptr<CheckpointDirectory> directory, StoreWriterOptions options)
    : directory_(std::move(directory)), options_(std::move(options)) {
  manifest_.store_id = options_.store_id;
  manifest_.checkpoint = 1;
  manifest_.previous = 1;
  manifest_.seed = options_.seed;
  manifest_.tables = options_.tables;
  std::vector<RowClass>& classes = manifest_.row_classes;
  for (size_t i = 0; i < manifest_.tables.size(); ++i) {
    EMBANK_CHECK(manifest_.tables[i].id == i);
    const RowClass row_class = RowClassOf(manifest_.tables[i].options);
    const auto found = std::ranges::find(classes, row_class);
    classes_.push_back(static_cast<uint32_t>(found - classes.begin()));
    if (found == classes.end()) classes.push_back(row_class);
  }
  segments_.resize(classes.size());
}

StoreWriter::~StoreWriter() = default;

Status StoreWriter::BeginSegment(uint32_t row_class) {
  const SegmentHeader header = {
      .store_id = options_.store_id,
      .segment_id = manifest_.next_segment_ids[Tier::kSsd]++,
      .row_class = row_class,
      .record_bytes = RecordBytesOf(manifest_.row_classes[row_class].slot_bytes),
      .segment_bytes = 0};
  EMBANK_ASSIGN_OR_RETURN(segments_[row_class],
                          OpenSegment::Make(directory_->files(), header, options_, &budget_));
  return OkStatus();
}

Status StoreWriter::EndSegment(uint32_t row_class) {
  EMBANK_RETURN_IF_ERROR(segments_[row_class]->End(&budget_));
  manifest_.segments.push_back(segments_[row_class]->Describe());
  written_bytes_ += manifest_.segments.back().header.segment_bytes;
  segments_[row_class].reset();
  return OkStatus();
}

Status StoreWriter::Add(size_t table, Key key, uint32_t heat, std::span<const std::byte> payload) {
  EMBANK_CHECK(table < classes_.size() && heat <= kHeatMax);
  const uint32_t row_class = classes_[table];
  std::unique_ptr<OpenSegment>& segment = segments_[row_class];
  if (segment == nullptr) EMBANK_RETURN_IF_ERROR(BeginSegment(row_class));
  EMBANK_RETURN_IF_ERROR(segment->Add({.crc = 0,
                                       .row_class = static_cast<uint16_t>(row_class),
                                       .table = static_cast<TableId>(table),
                                       .key = key,
                                       .sequence = manifest_.next_sequence++,
                                       .heat = heat,
                                       .checkpoint = manifest_.checkpoint},
                                      payload));
  return segment->is_full() ? EndSegment(row_class) : OkStatus();
}

Status StoreWriter::Finish(std::span<const std::byte> blob, int64_t unix_ns, uint64_t rows_lost) {
  EMBANK_CHECK(blob.size() <= kBlobBytesMax && manifest_.blob.empty());
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i] != nullptr) EMBANK_RETURN_IF_ERROR(EndSegment(i));
  }
  // No manifest may outlive a crash without its segments.
  EMBANK_RETURN_IF_ERROR(directory_->files()->Sync());
  manifest_.unix_ns = unix_ns;
  manifest_.rows_lost = rows_lost;
  manifest_.blob.assign(blob.begin(), blob.end());
  bool in_doubt = false;
  return directory_->Keep(manifest_, &in_doubt);
}

}  // namespace embank
