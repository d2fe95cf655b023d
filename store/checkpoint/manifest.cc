#include "store/checkpoint/manifest.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <type_traits>
#include <utility>

#include "base/crc32c.h"
#include "base/memory/memory.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/placement/heat_sketch.h"
#include "tiers/segment/log_record.h"

namespace embank {
namespace {

constexpr uint64_t kMagic = 0x314E414D424D45u;  // "EMBMAN1" and a zero

class Writer {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    PutAll(std::span(&value, 1));
  }
  template <typename T>
  void PutAll(std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <typename T>
  void PutAll(std::span<T> values) {
    PutAll(std::span<const T>(values));
  }
  std::vector<std::byte> Take() { return std::move(bytes_); }
  uint32_t Checksum() const { return ExtendCrc32c(0, bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// After the end it reads zeros, and is not ok.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T Get() {
    T value{};
    const std::span<const std::byte> bytes = Take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  template <typename T>
  std::vector<T> GetAll(uint64_t count) {
    if (count > bytes_.size() / sizeof(T)) ok_ = false;
    if (!ok_) return {};
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), Take(count * sizeof(T)).data(), count * sizeof(T));
    return values;
  }
  // Whether so many things of at least that size may follow.
  bool MayHave(uint64_t count, uint64_t bytes_each) {
    ok_ = ok_ && count <= bytes_.size() / bytes_each;
    return ok_;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }

 private:
  std::span<const std::byte> Take(uint64_t count) {
    if (count > bytes_.size()) ok_ = false;
    if (!ok_) return {};
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

void PutTable(const ManifestTable& table, Writer* writer) {
  const TableOptions& options = table.options;
  writer->Put<uint32_t>(table.id);
  writer->Put<uint32_t>(static_cast<uint32_t>(table.name.size()));
  writer->PutAll(std::span(table.name.data(), table.name.size()));
  writer->Put<uint32_t>(options.dim);
  writer->Put<uint32_t>(static_cast<uint32_t>(options.value_type));
  writer->Put<uint32_t>(static_cast<uint32_t>(options.optimizer));
  for (const float number :
       {options.rule.learning_rate, options.rule.beta1, options.rule.beta2, options.rule.epsilon,
        options.rule.weight_decay, options.rule.initial_accumulator}) {
    writer->Put<float>(number);
  }
  writer->Put<uint32_t>(static_cast<uint32_t>(options.initializer.kind));
  writer->Put<float>(options.initializer.a);
  writer->Put<float>(options.initializer.b);
  writer->Put<uint32_t>(static_cast<uint32_t>(options.eviction));
  writer->Put<uint32_t>(static_cast<uint32_t>(options.on_full));
  for (const float number :
       {options.rule.max_gradient_norm, options.rule.max_gradient_value, options.rule.ftrl_l1,
        options.rule.ftrl_l2, options.rule.decoupled_weight_decay}) {
    writer->Put<float>(number);
  }
  writer->Put<uint32_t>(static_cast<uint32_t>(options.rule.rounding));
  writer->Put<uint32_t>(options.expected_rows_log2);
  const bool is_saved = !Seeded(SeededBug::kGradientCallsNotSaved);
  writer->Put<uint64_t>(is_saved ? table.gradient_calls : 0);
}
// In the oldest version.
constexpr uint64_t kTableBytesMin = 4 + 4 + 1 + 3 * 4 + 6 * 4 + 3 * 4 + 2 * 4;

// The version since which tables have limits of gradients, penalties and rounding, and count their
// gradient calls.
constexpr uint32_t kRulesVersion = 4;

// Reads what a table has since kRulesVersion.
void GetRules(Reader* reader, ManifestTable* table) {
  UpdateRule& rule = table->options.rule;
  for (float* const number : {&rule.max_gradient_norm, &rule.max_gradient_value, &rule.ftrl_l1,
                              &rule.ftrl_l2, &rule.decoupled_weight_decay}) {
    *number = reader->Get<float>();
  }
  rule.rounding = static_cast<Rounding>(reader->Get<uint32_t>());
  table->options.expected_rows_log2 = reader->Get<uint32_t>();
  table->gradient_calls = reader->Get<uint64_t>();
}

StatusOr<ManifestTable> GetTable(uint32_t version, Reader* reader) {
  ManifestTable table = {};
  const auto id = reader->Get<uint32_t>();
  const std::vector<char> name = reader->GetAll<char>(reader->Get<uint32_t>());
  TableOptions& options = table.options;
  options.dim = reader->Get<uint32_t>();
  options.value_type = static_cast<ValueType>(reader->Get<uint32_t>());
  options.optimizer = static_cast<Optimizer>(reader->Get<uint32_t>());
  for (float* const number :
       {&options.rule.learning_rate, &options.rule.beta1, &options.rule.beta2,
        &options.rule.epsilon, &options.rule.weight_decay, &options.rule.initial_accumulator}) {
    *number = reader->Get<float>();
  }
  options.initializer.kind = static_cast<InitializerKind>(reader->Get<uint32_t>());
  options.initializer.a = reader->Get<float>();
  options.initializer.b = reader->Get<float>();
  options.eviction = static_cast<EvictionPolicy>(reader->Get<uint32_t>());
  options.on_full = static_cast<OnFull>(reader->Get<uint32_t>());
  if (version >= kRulesVersion) GetRules(reader, &table);
  if (!reader->ok() || id >= kNoTable) return DataLossError("truncated table entry");
  table.id = static_cast<TableId>(id);
  table.name.assign(name.begin(), name.end());
  EMBANK_RETURN_IF_ERROR(ValidateTableName(table.name));
  EMBANK_RETURN_IF_ERROR(Validate(options));
  return table;
}

void PutClass(const RowClass& row_class, Writer* writer) {
  writer->Put<uint32_t>(row_class.slot_bytes);
  writer->Put<uint32_t>(static_cast<uint32_t>(row_class.eviction));
  writer->Put<uint32_t>(static_cast<uint32_t>(row_class.on_full));
}
constexpr uint64_t kClassBytes = 3 * sizeof(uint32_t);

RowClass GetClass(Reader* reader) {
  RowClass row_class;
  row_class.slot_bytes = reader->Get<uint32_t>();
  row_class.eviction = static_cast<EvictionPolicy>(reader->Get<uint32_t>());
  row_class.on_full = static_cast<OnFull>(reader->Get<uint32_t>());
  return row_class;
}

// The versions since which manifests know of PMem; and of its id, lost rows, and when their
// checkpoint was made.
constexpr uint32_t kPmemVersion = 3;
constexpr uint32_t kTimeVersion = 4;

void PutSegment(const SegmentRows& rows, Writer* writer) {
  writer->Put<uint64_t>(rows.header.segment_id);
  writer->Put<uint64_t>(rows.header.segment_bytes);
  writer->Put<uint32_t>(rows.header.row_class);
  writer->Put<uint32_t>(rows.header.record_bytes);
  writer->Put<uint32_t>(rows.used_slots);
  writer->Put<uint32_t>(rows.keys.empty() ? 0 : 1);
  const bool is_told = !Seeded(SeededBug::kMediumNotInManifest);
  writer->Put<uint32_t>(static_cast<uint32_t>(is_told ? rows.tier : Tier::kSsd));
  writer->PutAll(std::span(rows.bits));
  writer->PutAll(std::span(rows.keys));
  writer->PutAll(std::span(rows.tables));
}
constexpr uint64_t kSegmentRowsBytesMin = 2 * 8 + 5 * 4;

bool HasRows(const SegmentRows& rows) {
  return std::ranges::any_of(rows.bits, [](uint64_t word) { return word != 0; });
}

bool HasRowsAfterUsedSlots(const SegmentRows& rows) {
  const uint32_t in_last = rows.used_slots % 64;
  return in_last != 0 && rows.bits.back() >> in_last != 0;
}

StatusOr<SegmentRows> GetSegment(uint64_t store_id, uint32_t version, Reader* reader) {
  SegmentRows rows = {};
  rows.header.store_id = store_id;
  rows.header.segment_id = reader->Get<uint64_t>();
  rows.header.segment_bytes = reader->Get<uint64_t>();
  rows.header.row_class = reader->Get<uint32_t>();
  rows.header.record_bytes = reader->Get<uint32_t>();
  rows.used_slots = reader->Get<uint32_t>();
  const auto has_keys = reader->Get<uint32_t>();
  if (version >= kPmemVersion) rows.tier = static_cast<Tier>(reader->Get<uint32_t>());
  // A location has few bits for the tier: the number of a damaged manifest may have more.
  const Location begin = LocationIn(rows.tier, 0);
  const bool has_medium = begin.IsInLog() && begin.tier() == rows.tier;
  if (!has_medium || !reader->ok() || !IsSound(rows.header) || has_keys > 1 ||
      rows.used_slots >
          SegmentGeometry::Of(rows.header.record_bytes, rows.header.segment_bytes).slots) {
    return DataLossError("invalid segment header");
  }
  rows.bits = reader->GetAll<uint64_t>(RoundUp(rows.used_slots, 64) / 64);
  if (has_keys == 1) {
    rows.keys = reader->GetAll<Key>(rows.used_slots);
    rows.tables = reader->GetAll<TableId>(rows.used_slots);
  }
  bool sound = reader->ok();
  for (const TableId table : rows.tables) sound = sound && table <= kNoTable;
  if (!sound) return DataLossError("truncated segment entry");
  if (!HasRows(rows)) {
    return DataLossError(StrCat("segment ", rows.header.segment_id, " has no row"));
  }
  if (HasRowsAfterUsedSlots(rows)) {
    return DataLossError(
        StrCat("segment ", rows.header.segment_id, " has a row after its used slots"));
  }
  return rows;
}

Status CheckClasses(const std::vector<RowClass>& row_classes) {
  std::set<RowClass> classes;
  for (const RowClass& row_class : row_classes) {
    const uint32_t size = row_class.slot_bytes;
    const bool is_sound = size % kLocationUnitBytes == 0 && size > sizeof(RowHeader) &&
                          IsSound({.store_id = 0,
                                   .segment_id = 0,
                                   .row_class = 0,
                                   .record_bytes = RecordBytesOf(size),
                                   .segment_bytes = kSegmentBytesMax});
    const bool has_policy =
        row_class.eviction >= EvictionPolicy::kLru && row_class.eviction <= EvictionPolicy::kLfu;
    const bool has_rule =
        row_class.on_full == OnFull::kRefuse || row_class.on_full == OnFull::kForget;
    if (!is_sound || !has_policy || !has_rule || !classes.insert(row_class).second) {
      return DataLossError(StrCat("invalid or duplicate row class of ", size, " bytes"));
    }
  }
  return OkStatus();
}

Status CheckClosed(const Manifest& manifest) {
  if (manifest.previous > manifest.checkpoint) {
    return DataLossError("the previous checkpoint is newer than the checkpoint");
  }
  std::set<TableId> ids;
  std::set<std::string_view> names;
  for (const ManifestTable& table : manifest.tables) {
    const bool is_new = ids.insert(table.id).second && names.insert(table.name).second;
    if (!is_new) return DataLossError("duplicate table id or name");
  }
  if (manifest.next_segment_ids[Tier::kSsd] > kPmemSegmentIdMin ||
      manifest.next_segment_ids[Tier::kPmem] < kPmemSegmentIdMin) {
    return DataLossError("next segment id out of range");
  }
  std::set<uint64_t> segments;
  for (const SegmentRows& rows : manifest.segments) {
    const SegmentHeader& header = rows.header;
    const bool has_class =
        header.row_class < manifest.row_classes.size() &&
        header.record_bytes == RecordBytesOf(manifest.row_classes[header.row_class].slot_bytes);
    const bool is_new = segments.insert(header.segment_id).second;
    const Tier numbered = NumberedIn(header.segment_id);
    const bool has_number = header.segment_id < manifest.next_segment_ids[numbered] &&
                            (numbered == rows.tier || rows.IsInStoreDirectory());
    const char* const wrong = !has_class    ? "unknown row class or wrong record size"
                              : !is_new     ? "duplicate segment id"
                              : !has_number ? "segment id out of range"
                                            : nullptr;
    if (wrong != nullptr) {
      return DataLossError(StrCat("segment ", header.segment_id, ": ", wrong));
    }
  }
  return OkStatus();
}

// A table that asked for LRU while CLOCK stood for it has its rows in a class of CLOCK, and stays
// there.
void KeepClasses(Manifest* manifest) {
  const std::vector<RowClass>& classes = manifest->row_classes;
  for (ManifestTable& table : manifest->tables) {
    const RowClass row_class = RowClassOf(table.options);
    const bool is_there = std::find(classes.begin(), classes.end(), row_class) != classes.end();
    const bool is_lru = row_class.eviction == EvictionPolicy::kLru;
    if (is_lru && !is_there) table.options.eviction = EvictionPolicy::kClock;
  }
}

StatusOr<Manifest> GetManifest(uint32_t version, Reader* reader) {
  Manifest manifest;
  manifest.checkpoint = reader->Get<uint32_t>();
  manifest.previous = reader->Get<uint32_t>();
  manifest.store_id = reader->Get<uint64_t>();
  manifest.seed = reader->Get<uint64_t>();
  manifest.next_segment_ids[Tier::kSsd] = reader->Get<uint64_t>();
  manifest.next_sequence = reader->Get<uint64_t>();
  if (version >= kPmemVersion) {
    manifest.next_segment_ids[Tier::kPmem] = reader->Get<uint64_t>();
    const std::vector<char> path = reader->GetAll<char>(reader->Get<uint32_t>());
    manifest.directories[Tier::kPmem].path.assign(path.begin(), path.end());
  }
  if (version >= kTimeVersion) manifest.unix_ns = reader->Get<int64_t>();
  const auto classes = reader->Get<uint32_t>();
  if (!reader->MayHave(classes, kClassBytes)) return DataLossError("truncated");
  for (uint32_t i = 0; i < classes; ++i) manifest.row_classes.push_back(GetClass(reader));
  const auto tables = reader->Get<uint32_t>();
  if (!reader->MayHave(tables, kTableBytesMin)) return DataLossError("truncated");
  for (uint32_t i = 0; i < tables; ++i) {
    EMBANK_ASSIGN_OR_RETURN(ManifestTable table, GetTable(version, reader));
    manifest.tables.push_back(std::move(table));
  }
  const auto segments = reader->Get<uint32_t>();
  if (!reader->MayHave(segments, kSegmentRowsBytesMin - sizeof(uint32_t))) {
    return DataLossError("truncated");
  }
  for (uint32_t i = 0; i < segments; ++i) {
    EMBANK_ASSIGN_OR_RETURN(SegmentRows rows, GetSegment(manifest.store_id, version, reader));
    manifest.segments.push_back(std::move(rows));
  }
  manifest.heat.bytes = reader->Get<uint64_t>();
  manifest.heat.sketch_bytes = reader->Get<uint64_t>();
  manifest.heat.crc = reader->Get<uint32_t>();
  const bool has_heat = manifest.heat.bytes != 0 || manifest.heat.sketch_bytes != 0;
  if (has_heat && !HeatSketch::IsSize(manifest.heat.sketch_bytes)) {
    return DataLossError("invalid size of the heat sketch");
  }
  if (version >= kTimeVersion) {
    manifest.directories[Tier::kPmem].id = reader->Get<uint64_t>();
    manifest.rows_lost = reader->Get<uint64_t>();
  }
  manifest.blob = reader->GetAll<std::byte>(reader->Get<uint64_t>());
  if (!reader->done()) return DataLossError("wrong length");
  EMBANK_RETURN_IF_ERROR(CheckClasses(manifest.row_classes));
  EMBANK_RETURN_IF_ERROR(CheckClosed(manifest));
  KeepClasses(&manifest);
  return manifest;
}

}  // namespace

uint64_t ManifestBytesMax(const Manifest& tables, uint64_t ssd_bytes, uint64_t segment_bytes_min,
                          uint64_t segment_bytes, uint64_t blob_bytes) {
  // Each class has open segments for two streams, and one segment may wait for its footer.
  constexpr uint64_t kUnfinishedSegments = 3;
  uint64_t slots_max = 0;
  uint64_t unfinished_slots = 0;
  for (const RowClass& row_class : tables.row_classes) {
    const uint64_t slots =
        SegmentGeometry::Of(RecordBytesOf(row_class.slot_bytes), segment_bytes).slots;
    slots_max = std::max(slots_max, slots);
    unfinished_slots += kUnfinishedSegments * slots;
  }
  const uint64_t segments = ssd_bytes / segment_bytes;
  // Small ones together have no more bits, each in whole words.
  const uint64_t segments_max =
      std::max(segments, std::min<uint64_t>(ssd_bytes / segment_bytes_min, kSegmentsMax));
  return EncodeManifest(tables).size() + blob_bytes +
         segments * (kSegmentRowsBytesMin + RoundUp(slots_max, 64) / 8) +
         (segments_max - segments) * (kSegmentRowsBytesMin + sizeof(uint64_t)) +
         unfinished_slots * (sizeof(Key) + sizeof(TableId));
}

uint64_t CountRows(const Manifest& manifest) {
  uint64_t rows = 0;
  for (const SegmentRows& segment : manifest.segments) rows += segment.CountRows();
  return rows;
}

std::vector<std::string> OtherPathsOf(const Manifest& manifest) {
  std::vector<std::string> paths;
  for (const LogDirectory& directory : manifest.directories.values) {
    if (!directory.path.empty()) paths.push_back(directory.path);
  }
  return paths;
}

std::vector<std::byte> EncodeManifest(const Manifest& manifest) {
  const LogDirectory& pmem = manifest.directories[Tier::kPmem];
  Writer writer;
  writer.Put<uint64_t>(kMagic);
  writer.Put<uint32_t>(kManifestFormatVersion);
  writer.Put<uint32_t>(manifest.checkpoint);
  writer.Put<uint32_t>(manifest.previous);
  writer.Put<uint64_t>(manifest.store_id);
  writer.Put<uint64_t>(manifest.seed);
  writer.Put<uint64_t>(manifest.next_segment_ids[Tier::kSsd]);
  writer.Put<uint64_t>(manifest.next_sequence);
  writer.Put<uint64_t>(manifest.next_segment_ids[Tier::kPmem]);
  writer.Put<uint32_t>(static_cast<uint32_t>(pmem.path.size()));
  writer.PutAll(std::span(pmem.path.data(), pmem.path.size()));
  writer.Put<int64_t>(manifest.unix_ns);
  writer.Put<uint32_t>(static_cast<uint32_t>(manifest.row_classes.size()));
  for (const RowClass& row_class : manifest.row_classes) PutClass(row_class, &writer);
  writer.Put<uint32_t>(static_cast<uint32_t>(manifest.tables.size()));
  for (const ManifestTable& table : manifest.tables) PutTable(table, &writer);
  writer.Put<uint32_t>(static_cast<uint32_t>(manifest.segments.size()));
  for (const SegmentRows& rows : manifest.segments) PutSegment(rows, &writer);
  writer.Put<uint64_t>(manifest.heat.bytes);
  writer.Put<uint64_t>(manifest.heat.sketch_bytes);
  writer.Put<uint32_t>(manifest.heat.crc);
  writer.Put<uint64_t>(pmem.id);
  writer.Put<uint64_t>(manifest.rows_lost);
  writer.Put<uint64_t>(manifest.blob.size());
  writer.PutAll(std::span(manifest.blob));
  writer.Put<uint32_t>(writer.Checksum());
  return writer.Take();
}

StatusOr<Manifest> DecodeManifest(std::span<const std::byte> bytes) {
  constexpr size_t kFrontBytes = sizeof(uint64_t) + sizeof(uint32_t);
  constexpr size_t kCrcBytes = sizeof(uint32_t);
  const Status damaged = DataLossError("the manifest is damaged");
  if (bytes.size() < kFrontBytes + kCrcBytes) return damaged;
  const std::span<const std::byte> body = bytes.first(bytes.size() - kCrcBytes);
  Reader reader(body);
  if (reader.Get<uint64_t>() != kMagic) return damaged;
  if (Reader(bytes.last(kCrcBytes)).Get<uint32_t>() != ExtendCrc32c(0, body)) return damaged;
  const auto version = reader.Get<uint32_t>();
  if (version < kManifestFormatVersionMin || version > kManifestFormatVersion) {
    return FailedPreconditionError(
        StrCat("the manifest's format is version ", version, "; this library reads versions ",
               kManifestFormatVersionMin, " to ", kManifestFormatVersion));
  }
  StatusOr<Manifest> manifest = GetManifest(version, &reader);
  if (manifest.ok()) return manifest;
  return DataLossError(StrCat("the manifest is damaged: ", manifest.status().message()));
}

}  // namespace embank
