#include "tiers/segment/log_record.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/seeded_bug.h"

namespace embank {
namespace {

static_assert(std::endian::native == std::endian::little);

uint32_t ChecksumOf(const RecordPlace& place, std::span<const std::byte> record) {
  if (Seeded(SeededBug::kNoSalt)) return ExtendCrc32c(0, record.subspan(4));
  std::array<std::byte, 20> salt;
  std::memcpy(salt.data(), &place.store_id, 8);
  std::memcpy(salt.data() + 8, &place.segment_id, 8);
  std::memcpy(salt.data() + 16, &place.slot, 4);
  return ExtendCrc32c(ExtendCrc32c(0, salt), record.subspan(sizeof(RecordHeader::crc)));
}

}  // namespace

void SealRecord(const RecordPlace& place, RecordHeader header, std::span<std::byte> record) {
  EMBANK_CHECK(record.size() >= sizeof header);
  std::memcpy(record.data(), &header, sizeof header);
  header.crc = ChecksumOf(place, record);
  std::memcpy(record.data(), &header.crc, sizeof header.crc);
}

bool RecordIsWhole(const RecordPlace& place, std::span<const std::byte> record) {
  EMBANK_CHECK(record.size() >= sizeof(RecordHeader));
  if (Seeded(SeededBug::kNoChecksum)) return true;
  return LoadRecordHeader(record).crc == ChecksumOf(place, record);
}

RecordHeader LoadRecordHeader(std::span<const std::byte> record) {
  RecordHeader header;
  EMBANK_CHECK(record.size() >= sizeof header);
  std::memcpy(&header, record.data(), sizeof header);
  return header;
}

}  // namespace embank
