// The file of hot and cold batches: its bytes, and the text that says how it was made.
//
//   | head | block | block | ... | hot ids | index | text | footer |
//
// A block has samples of one class, in the order of the log. The layout is in docs/file_formats.md.
// All numbers are little-endian.
#ifndef EMBANK_TRAIN_FAE_FAE_FORMAT_H_
#define EMBANK_TRAIN_FAE_FAE_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "train/samples/click_batch.h"

namespace embank {

// A whole file of a log, as it is stored.
struct LogFile {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  bool operator==(const LogFile&) const = default;
};

// A file is for one log, budget and layout of rows: others have other hot ids (Adnan et al. 2021,
// sections 1.2 and 4.2).
struct FaeHeader {
  ClickColumns columns = {};
  std::vector<LogFile> files = {};  // of the log
  uint64_t budget_bytes = 0;
  double sampled_share = 0.0;  // of the log's samples, 0 to 1
  double counted_share =
      0.0;            // so is this; above the sampled share, 1: small logs are counted whole
  uint64_t seed = 0;  // of the sample
  // A hot row of a large table has this share of the lookups in it, or more. Infinity: all tables
  // are small.
  double threshold = 0.0;
  std::vector<uint32_t> dims = {};  // of each id feature
  // The bytes of a hot row of each id feature, with its states, and rows and states of its other
  // tables.
  std::vector<uint32_t> row_bytes = {};
  std::string row_optimizer = {};  // its name
  std::string model = {};          // so is this
  uint64_t bound_bytes = 0;        // the estimate's upper bound of hot_bytes
  uint64_t hot_bytes = 0;
  uint64_t samples = 0;  // hot and cold ones
};

// Returns the header as lines of words and a value. Names and words have one line each.
std::string WriteFaeText(const FaeHeader& header);
// Reads them. DATA_LOSS: a line is missing or damaged; the message has its words.
StatusOr<FaeHeader> ParseFaeText(std::string_view text);

// Reads a file and returns the size and checksum of its bytes as stored. `progress` is called with
// the bytes that were read so far. Blocks on reads. NOT_FOUND and the like name the file.
StatusOr<LogFile> SumOfFile(const std::string& path, FunctionRef<void(uint64_t bytes)> progress);

// Returns the first difference of two headers that makes hot ids differ, as a phrase for a person:
// "the budget is 1024 bytes, and not 2048". Empty: there is none.
std::string DifferenceOf(const FaeHeader& is, const FaeHeader& wanted);

// Returns whether samples of two batches may be in one: both have labels or none, and bags and
// weights for the same features.
bool HaveOneForm(const ClickBatch& a, const ClickBatch& b);

// The layout of the file.
namespace fae {

static_assert(std::endian::native == std::endian::little, "arrays are written as they are");

inline constexpr std::string_view kMagic = {"EMBFAE1\0", 8};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kHeadBytes = 8 + 4 + 4;  // magic number, version, checksum of both

// A block of 26 features has 4,096 x (26 x 8 + 13 x 4 + 4) bytes = 1 MiB, which a disk reads in a
// few milliseconds. Bags may be long, so bytes are bounded, too.
inline constexpr uint32_t kBlockSamples = 4096;
inline constexpr uint64_t kBlockBytesMax = 4 << 20;  // a block ends with the sample that reaches it

inline constexpr uint32_t kBlockMagic = 0x42454146;  // "FAEB"
// The place of a block; its first bytes are the same numbers.
struct Block {
  uint64_t offset = 0;  // of its first byte, which is that of kBlockMagic
  uint64_t payload_bytes = 0;
  uint32_t is_hot = 0;
  uint32_t samples = 0;
  uint32_t crc32c = 0;  // of the offset, the three numbers after it, and the payload
};
inline constexpr uint64_t kBlockHeadBytes = 4 + 4 + 4 + 4 + 8;
inline constexpr uint64_t kIndexEntryBytes = 8 + 8 + 4 + 4 + 4;

inline constexpr uint32_t kFooterMagic = 0x46454146;  // "FAEF"
struct Part {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};
// The parts follow each other without gaps: hot ids, index, text.
struct Footer {
  Part hot_ids;
  Part index;
  Part text;
};
inline constexpr uint64_t kPartBytes = 8 + 8 + 4;
inline constexpr uint64_t kFooterBytes = 3 * kPartBytes + 8 + 4 + 4;

// Appends the bytes of a number.
template <typename Number>
requires std::is_arithmetic_v<Number>
void Append(Number number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof number);
}
// Appends the bytes of an array of numbers.
template <std::ranges::contiguous_range Numbers>
void Append(const Numbers& numbers, std::string* bytes) {
  const auto all = std::as_bytes(std::span(numbers));
  bytes->append(reinterpret_cast<const char*>(all.data()), all.size());
}

// The bytes of a part, which are taken from its front.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  // Takes a number. Returns false, and takes nothing, where fewer bytes are left.
  template <typename Number>
  bool Take(Number* number) {
    if (rest_.size() < sizeof(Number)) return false;
    std::memcpy(number, rest_.data(), sizeof(Number));
    rest_.remove_prefix(sizeof(Number));
    return true;
  }
  // Takes an array. Memory is allocated only where all of its bytes are left.
  template <typename Number>
  bool Take(uint64_t count, std::vector<Number>* numbers) {
    if (count > rest_.size() / sizeof(Number)) return false;
    numbers->resize(count);
    if (count > 0) std::memcpy(numbers->data(), rest_.data(), count * sizeof(Number));
    rest_.remove_prefix(count * sizeof(Number));
    return true;
  }

  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// Returns a status for errno after a failed call, as ErrnoStatus does; UNAVAILABLE for errors that
// it does not know.
Status FileError(int error, std::string_view what);

// Returns the checksum of bytes.
uint32_t Crc32cOf(std::string_view bytes);
// Returns the first bytes of every file of this version.
std::string WriteHead();
// Returns the first bytes of a block.
std::string WriteBlockHead(const Block& block);
// Returns the checksum of a block with this payload.
uint32_t Crc32cOf(const Block& block, std::string_view payload);
// Returns the samples as a payload.
std::string WritePayload(const ClickBatch& samples);
// Reads them, whose number is that of the block. False: the bytes are no payload.
bool ReadPayload(std::string_view payload, const Block& block, const ClickColumns& columns,
                 ClickBatch* samples);
// Returns the last bytes of a file.
std::string WriteFooter(const Footer& footer);

}  // namespace fae
}  // namespace embank

#endif  // EMBANK_TRAIN_FAE_FAE_FORMAT_H_
