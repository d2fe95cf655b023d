#include "train/fae/fae_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr std::string_view kUnfinished = ".unfinished";

// The bytes that a sample adds to a payload.
uint64_t PayloadBytes(const ClickBatch& samples, uint32_t sample) {
  uint64_t bytes = sizeof(float) * (1 + samples.dense.size() / samples.samples);
  for (const FeatureIds& feature : samples.features) {
    bytes += feature.OfSample(sample).size() * (sizeof(uint64_t) + sizeof(float));
    if (!feature.offsets.empty()) bytes += sizeof(uint32_t);
  }
  return bytes;
}

// A name is durable once its directory is.
Status SyncDirectoryOf(const std::string& path) {
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (directory.empty()) directory = ".";
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return fae::FileError(errno, StrCat(directory, ": cannot open"));
  const bool is_synced = fsync(descriptor) == 0;
  const int error = errno;
  close(descriptor);
  return is_synced ? OkStatus() : fae::FileError(error, StrCat(directory, ": cannot sync"));
}

}  // namespace

StatusOr<std::unique_ptr<FaeWriter>> FaeWriter::Create(const std::string& path,
                                                       const ClickColumns& columns) {
  const std::string unfinished_path = UnfinishedPath(path);
  std::FILE* const file = std::fopen(unfinished_path.c_str(), "wb");
  if (file == nullptr) return fae::FileError(errno, StrCat(unfinished_path, ": cannot create"));
  std::unique_ptr<FaeWriter> writer(new FaeWriter(path, columns, file));
  EMBANK_RETURN_IF_ERROR(writer->Write(fae::WriteHead()));
  return writer;
}

std::string FaeWriter::UnfinishedPath(const std::string& path) { return StrCat(path, kUnfinished); }

FaeWriter::FaeWriter(std::string path, const ClickColumns& columns, std::FILE* file)
    : path_(std::move(path)),
      unfinished_path_(UnfinishedPath(path_)),
      columns_(columns),
      file_(file) {
  // Blocks are written as a whole.
  std::setvbuf(file, nullptr, _IONBF, 0);
  for (Pending& pending : pending_) pending.samples.Clear(columns_.ids.size());
}

FaeWriter::~FaeWriter() {
  if (file_ != nullptr) unlink(unfinished_path_.c_str());
}

Status FaeWriter::Add(const ClickBatch& samples, uint32_t sample, bool is_hot) {
  EMBANK_RETURN_IF_ERROR(failure_);
  EMBANK_CHECK(samples.features.size() == columns_.ids.size());
  EMBANK_CHECK(samples.dense.size() == uint64_t{samples.samples} * columns_.dense.size());
  Pending& pending = pending_[is_hot];
  if (pending.samples.samples > 0 && !HaveOneForm(pending.samples, samples)) {
    return Keep(InvalidArgumentError(
        StrCat(path_, ": not all samples have labels, or bags and weights for the same features")));
  }
  AppendSample(samples, sample, &pending.samples);
  pending.bytes += PayloadBytes(samples, sample);
  ++samples_;
  const bool is_full =
      pending.samples.samples == fae::kBlockSamples || pending.bytes >= fae::kBlockBytesMax;
  return is_full ? WriteBlock(is_hot) : OkStatus();
}

Status FaeWriter::Finish(FaeHeader header, const HotIds& hot_ids) {
  EMBANK_CHECK(file_ != nullptr);
  EMBANK_CHECK(header.columns.dense == columns_.dense && header.columns.ids == columns_.ids &&
               header.columns.tables == columns_.tables);
  EMBANK_CHECK(hot_ids.table_of_column == HotIds::TablesOfColumns(header.columns.table_names()));
  EMBANK_RETURN_IF_ERROR(failure_);
  for (const bool is_hot : {false, true}) {
    if (pending_[is_hot].samples.samples > 0) EMBANK_RETURN_IF_ERROR(WriteBlock(is_hot));
  }
  header.samples = samples_;
  EMBANK_RETURN_IF_ERROR(WriteEnd(header, hot_ids));
  return Keep(Rename());
}

Status FaeWriter::Keep(const Status& status) {
  failure_.Update(status);
  return failure_;
}

Status FaeWriter::Write(std::string_view bytes) {
  EMBANK_RETURN_IF_ERROR(failure_);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    return Keep(fae::FileError(errno, StrCat(unfinished_path_, ": cannot write")));
  }
  offset_ += bytes.size();
  return OkStatus();
}

Status FaeWriter::WriteBlock(bool is_hot) {
  Pending& pending = pending_[is_hot];
  const std::string payload = fae::WritePayload(pending.samples);
  fae::Block block = {.offset = offset_,
                      .payload_bytes = payload.size(),
                      .is_hot = is_hot,
                      .samples = pending.samples.samples};
  block.crc32c = fae::Crc32cOf(block, payload);
  blocks_.push_back(block);
  pending.samples.Clear(columns_.ids.size());
  pending.bytes = 0;
  EMBANK_RETURN_IF_ERROR(Write(fae::WriteBlockHead(block)));
  return Write(payload);
}

Status FaeWriter::WritePart(const std::string& bytes, fae::Part* part) {
  *part = {.offset = offset_, .bytes = bytes.size(), .crc32c = fae::Crc32cOf(bytes)};
  return Write(bytes);
}

Status FaeWriter::WriteEnd(const FaeHeader& header, const HotIds& hot_ids) {
  fae::Footer footer;
  std::string ids;
  for (const IdPlaces& table : hot_ids.tables) {
    fae::Append(table.size(), &ids);
    fae::Append(table.ids(), &ids);
  }
  EMBANK_RETURN_IF_ERROR(WritePart(ids, &footer.hot_ids));
  std::string index;
  for (const fae::Block& block : blocks_) {
    fae::Append(block.offset, &index);
    fae::Append(block.payload_bytes, &index);
    fae::Append(block.is_hot, &index);
    fae::Append(block.samples, &index);
    fae::Append(block.crc32c, &index);
  }
  EMBANK_RETURN_IF_ERROR(WritePart(index, &footer.index));
  EMBANK_RETURN_IF_ERROR(WritePart(WriteFaeText(header), &footer.text));
  return Write(fae::WriteFooter(footer));
}

// The bytes are durable before the name, so that no crash leaves a name of a part.
Status FaeWriter::Rename() {
  if (fsync(fileno(file_.get())) != 0) {
    return fae::FileError(errno, StrCat(unfinished_path_, ": cannot sync"));
  }
  if (std::rename(unfinished_path_.c_str(), path_.c_str()) != 0) {
    return fae::FileError(errno, StrCat(path_, ": cannot rename ", unfinished_path_, " to it"));
  }
  file_.reset();
  return SyncDirectoryOf(path_);
}

}  // namespace embank
