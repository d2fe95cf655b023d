#include "train/fae/fae_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

bool IsAfter(const fae::Part& part, const fae::Part& before) {
  return part.offset == before.offset + before.bytes;
}

}  // namespace

StatusOr<std::shared_ptr<const FaeFile>> FaeFile::Open(const std::string& path) {
  // Opening a pipe would wait for its writer.
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return fae::FileError(errno, StrCat(path, ": cannot open"));
  if (!S_ISREG(status.st_mode)) return InvalidArgumentError(StrCat(path, " is no regular file"));
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return fae::FileError(errno, StrCat(path, ": cannot open"));
  std::shared_ptr<FaeFile> opened(new FaeFile(path, file));
  EMBANK_RETURN_IF_ERROR(opened->ReadAll());
  return std::shared_ptr<const FaeFile>(std::move(opened));
}

FaeFile::FaeFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

bool FaeFile::Is(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const FilePointer file(std::fopen(path.c_str(), "rb"));
  std::string head(fae::kMagic.size(), '\0');
  return file != nullptr && std::fread(head.data(), 1, head.size(), file.get()) == head.size() &&
         head == fae::kMagic;
}

size_t FaeFile::BlockOf(bool is_hot, uint64_t sample) const {
  const std::vector<uint64_t>& begins = begins_[is_hot];
  return static_cast<size_t>(std::ranges::upper_bound(begins, sample) - begins.begin()) - 1;
}

Status FaeFile::Damaged(uint64_t offset, const char* part) const {
  return DataLossError(StrCat(path_, ": damaged at byte ", offset, ": ", part,
                              "; copy the file anew, or calibrate again"));
}

// The bytes are inside of the file, as its size was.
Status FaeFile::Read(uint64_t offset, uint64_t bytes, std::string* out) const {
  out->resize(bytes);
  for (uint64_t read = 0; read < bytes;) {
    const ssize_t count = pread(fileno(file_.get()), out->data() + read, bytes - read,
                                static_cast<off_t>(offset + read));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return fae::FileError(errno, StrCat(path_, ": cannot read at byte ", offset + read));
    }
    if (count == 0) return Damaged(offset + read, "the file ends there");
    read += static_cast<uint64_t>(count);
  }
  return OkStatus();
}

Status FaeFile::ReadPart(const fae::Part& part, const char* name, std::string* out) const {
  EMBANK_RETURN_IF_ERROR(Read(part.offset, part.bytes, out));
  return fae::Crc32cOf(*out) == part.crc32c ? OkStatus() : Damaged(part.offset, name);
}

Status FaeFile::ReadAll() {
  struct stat status {};
  if (fstat(fileno(file_.get()), &status) != 0) {
    return fae::FileError(errno, StrCat(path_, ": cannot read"));
  }
  file_bytes_ = static_cast<uint64_t>(status.st_size);
  EMBANK_RETURN_IF_ERROR(ReadHead());
  EMBANK_ASSIGN_OR_RETURN(const fae::Footer footer, ReadFooter());
  EMBANK_RETURN_IF_ERROR(ReadText(footer.text));
  EMBANK_RETURN_IF_ERROR(ReadIndex(footer.index, footer.hot_ids.offset));
  return ReadHotIds(footer.hot_ids);
}

Status FaeFile::ReadHead() {
  std::string head;
  EMBANK_RETURN_IF_ERROR(Read(0, std::min(file_bytes_, fae::kHeadBytes), &head));
  if (!std::string_view(head).starts_with(fae::kMagic)) {
    return DataLossError(StrCat(path_, ": no file of hot and cold batches: byte 0 begins none"));
  }
  fae::Bytes bytes(std::string_view(head).substr(fae::kMagic.size()));
  uint32_t version = 0;
  uint32_t crc32c = 0;
  if (!bytes.Take(&version) || !bytes.Take(&crc32c)) return Damaged(0, "the head is cut off");
  const std::string_view summed = std::string_view(head).substr(0, head.size() - sizeof crc32c);
  if (fae::Crc32cOf(summed) != crc32c || version == 0) return Damaged(0, "the head");
  if (version == fae::kVersion) return OkStatus();
  return FailedPreconditionError(StrCat(path_, ": written by a newer Embank: it has version ",
                                        version, ", and this one reads ", fae::kVersion));
}

StatusOr<fae::Footer> FaeFile::ReadFooter() const {
  if (file_bytes_ < fae::kHeadBytes + fae::kFooterBytes) {
    return Damaged(file_bytes_, "the file ends there");
  }
  const uint64_t offset = file_bytes_ - fae::kFooterBytes;
  std::string bytes;
  EMBANK_RETURN_IF_ERROR(Read(offset, fae::kFooterBytes, &bytes));
  const std::string_view summed = std::string_view(bytes).substr(0, bytes.size() - 4);
  fae::Bytes rest(bytes);
  fae::Footer footer;
  uint64_t file_bytes = 0;
  uint32_t magic = 0;
  uint32_t crc32c = 0;
  bool is_whole = true;
  for (fae::Part* const part : {&footer.hot_ids, &footer.index, &footer.text}) {
    is_whole = is_whole && rest.Take(&part->offset) && rest.Take(&part->bytes) &&
               rest.Take(&part->crc32c) && part->bytes <= file_bytes_ &&
               part->offset <= file_bytes_;
  }
  is_whole =
      is_whole && rest.Take(&file_bytes) && rest.Take(&magic) && rest.Take(&crc32c) && rest.empty();
  if (!is_whole || magic != fae::kFooterMagic || crc32c != fae::Crc32cOf(summed)) {
    return Damaged(offset, "the footer, or the file is cut off");
  }
  const fae::Part end = {.offset = offset};
  const bool is_dense = IsAfter(footer.index, footer.hot_ids) &&
                        IsAfter(footer.text, footer.index) && IsAfter(end, footer.text) &&
                        footer.hot_ids.offset >= fae::kHeadBytes && file_bytes == file_bytes_;
  if (!is_dense) return Damaged(offset, "the footer is that of another file");
  return footer;
}

Status FaeFile::ReadText(const fae::Part& part) {
  std::string text;
  EMBANK_RETURN_IF_ERROR(ReadPart(part, "the text", &text));
  StatusOr<FaeHeader> header = ParseFaeText(text);
  if (!header.ok()) {
    return Damaged(part.offset, StrCat("the text: ", header.status().message()).c_str());
  }
  header_ = *std::move(header);
  return OkStatus();
}

Status FaeFile::ReadIndex(const fae::Part& part, uint64_t blocks_end) {
  std::string text;
  EMBANK_RETURN_IF_ERROR(ReadPart(part, "the index", &text));
  fae::Bytes bytes(text);
  uint64_t end = fae::kHeadBytes;
  while (!bytes.empty()) {
    fae::Block block;
    const bool is_block = bytes.Take(&block.offset) && bytes.Take(&block.payload_bytes) &&
                          bytes.Take(&block.is_hot) && bytes.Take(&block.samples) &&
                          bytes.Take(&block.crc32c) && block.is_hot <= 1 && block.samples > 0;
    const bool is_inside = is_block && block.offset == end &&
                           blocks_end - end >= fae::kBlockHeadBytes &&
                           block.payload_bytes <= blocks_end - end - fae::kBlockHeadBytes;
    if (!is_inside) return Damaged(part.offset, "the index has a block that is none");
    end += fae::kBlockHeadBytes + block.payload_bytes;
    blocks_[block.is_hot].push_back(block);
    begins_[block.is_hot].push_back(begins_[block.is_hot].back() + block.samples);
  }
  const bool has_all = end == blocks_end && samples(false) + samples(true) == header_.samples;
  return has_all ? OkStatus() : Damaged(part.offset, "the index lacks blocks");
}

Status FaeFile::ReadHotIds(const fae::Part& part) {
  std::string text;
  EMBANK_RETURN_IF_ERROR(ReadPart(part, "the hot ids", &text));
  fae::Bytes bytes(text);
  auto hot_ids = std::make_shared<HotIds>();
  hot_ids->table_of_column = HotIds::TablesOfColumns(header_.columns.table_names());
  const auto& of_columns = hot_ids->table_of_column;
  hot_ids->tables.resize(of_columns.empty() ? 0 : *std::ranges::max_element(of_columns) + 1);
  for (IdPlaces& table : hot_ids->tables) {
    uint32_t count = 0;
    std::vector<Key> ids;
    if (!bytes.Take(&count) || count > IdPlaces::kIdsMax || !bytes.Take(count, &ids)) {
      return Damaged(part.offset, "the hot ids lack some");
    }
    for (uint32_t place = 0; place < count; ++place) {
      if (table.Add(ids[place]) != place) return Damaged(part.offset, "a hot id is there twice");
    }
  }
  if (!bytes.empty()) return Damaged(part.offset, "there are too many hot ids");
  hot_ids_ = std::move(hot_ids);
  return OkStatus();
}

Status FaeFile::ReadBlock(bool is_hot, size_t number, ClickBatch* samples) const {
  const fae::Block& block = blocks_[is_hot][number];
  std::string bytes;
  EMBANK_RETURN_IF_ERROR(Read(block.offset, fae::kBlockHeadBytes + block.payload_bytes, &bytes));
  const std::string_view payload = std::string_view(bytes).substr(fae::kBlockHeadBytes);
  const bool is_whole = std::string_view(bytes).starts_with(fae::WriteBlockHead(block)) &&
                        fae::Crc32cOf(block, payload) == block.crc32c &&
                        fae::ReadPayload(payload, block, header_.columns, samples);
  return is_whole ? OkStatus() : Damaged(block.offset, "a block of samples");
}

}  // namespace embank
