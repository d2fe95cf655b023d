// Any bytes as a record: whole at its own place alone, and in no bit another.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "tests/fuzz/fuzz_input.h"
#include "tiers/segment/log_record.h"

namespace embank::test {

void FuzzOne(std::span<const std::byte> bytes) {
  FuzzInput input(bytes);
  const RecordPlace place = {.store_id = input.Take<uint64_t>(),
                             .segment_id = input.Take<uint64_t>(),
                             .slot = input.Take<uint32_t>()};
  const auto other_bit = input.Take<uint32_t>();
  std::vector<std::byte> record(input.rest().begin(), input.rest().end());
  record.resize(std::clamp<size_t>(record.size() / 16 * 16, 48, kRecordBytesMax));
  const RecordHeader header = LoadRecordHeader(record);
  RecordIsWhole(place, record);
  SealRecord(place, header, record);
  EMBANK_CHECK(RecordIsWhole(place, record));
  const RecordHeader sealed = LoadRecordHeader(record);
  EMBANK_CHECK(sealed.key == header.key && sealed.table == header.table &&
               sealed.sequence == header.sequence && sealed.checkpoint == header.checkpoint);

  RecordPlace elsewhere = place;
  elsewhere.slot ^= 1u << other_bit % 32;
  EMBANK_CHECK(!RecordIsWhole(elsewhere, record));
  elsewhere = place;
  elsewhere.segment_id ^= uint64_t{1} << other_bit % 64;
  EMBANK_CHECK(!RecordIsWhole(elsewhere, record));
  elsewhere = place;
  elsewhere.store_id ^= uint64_t{1} << other_bit % 64;
  EMBANK_CHECK(!RecordIsWhole(elsewhere, record));
  record[other_bit / 8 % record.size()] ^= std::byte{1} << other_bit % 8;
  EMBANK_CHECK(!RecordIsWhole(place, record));
}

}  // namespace embank::test
