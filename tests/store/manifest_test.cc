#include "store/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/sealed_bytes.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_record.h"

namespace embank::test::manifest_test {
namespace {

using Bytes = std::vector<std::byte>;

ManifestTable TableOf(TableId id, const std::string& name, uint32_t dim, Optimizer optimizer) {
  ManifestTable table = {.id = id, .name = name, .options = {}};
  table.options.dim = dim;
  table.options.optimizer = optimizer;
  return table;
}

SegmentRows SegmentOf(uint64_t segment_id, uint32_t row_class, uint32_t slot_bytes, uint32_t used,
                      bool with_keys) {
  SegmentRows rows = {.header = {.store_id = 0xABCDEF0123456789,
                                 .segment_id = segment_id,
                                 .row_class = row_class,
                                 .record_bytes = RecordBytesOf(slot_bytes),
                                 .segment_bytes = 64 * kBlockBytes},
                      .used_slots = used,
                      .bits = std::vector<uint64_t>((used + 63) / 64, 0xA5A5A5A5A5A5A5A5),
                      .keys = {},
                      .tables = {}};
  if (used % 64 != 0) rows.bits.back() &= (uint64_t{1} << used % 64) - 1;
  for (uint32_t i = 0; with_keys && i < used; ++i) {
    rows.keys.push_back(uint64_t{i} << 40 | segment_id);
    rows.tables.push_back(i % 3 == 0 ? kNoTable : static_cast<TableId>(i % 7));
  }
  return rows;
}

// Something of everything.
Manifest Rich() {
  Manifest manifest;
  manifest.store_id = 0xABCDEF0123456789;
  manifest.checkpoint = 41;
  manifest.previous = 39;
  manifest.seed = 0xFFFFFFFFFFFFFFFE;
  manifest.next_segment_ids[Tier::kSsd] = 1000;
  manifest.next_sequence = uint64_t{1} << 50;
  constexpr Optimizer kOptimizers[] = {Optimizer::kNone,    Optimizer::kSgd,
                                       Optimizer::kAdagrad, Optimizer::kRowwiseAdagrad,
                                       Optimizer::kAdam,    Optimizer::kFtrl};
  constexpr ValueType kTypes[] = {ValueType::kF32, ValueType::kF16, ValueType::kBf16};
  for (uint32_t i = 0; i < std::size(kOptimizers); ++i) {
    const std::string name = i == 0 ? std::string(255, 'n') : "table " + std::to_string(i);
    ManifestTable table = TableOf(i == 5 ? kNoTable - 1 : static_cast<TableId>(3 * i), name,
                                  16 + 40 * i, kOptimizers[i]);
    table.options.value_type = kTypes[i % 3];
    table.options.rule = {.learning_rate = 0.125f + static_cast<float>(i),
                          .beta1 = 0.5f,
                          .beta2 = 0.75f,
                          .epsilon = 1e-5f,
                          .weight_decay = 0.0625f,
                          .initial_accumulator = 2.0f};
    table.options.rule.max_gradient_norm = 2.0f + static_cast<float>(i);
    table.options.rule.max_gradient_value = 3.0f;
    const bool is_ftrl = table.options.optimizer == Optimizer::kFtrl;
    table.options.rule.ftrl_l1 = is_ftrl ? 0.5f : 0.0f;
    table.options.rule.ftrl_l2 = is_ftrl ? 0.25f : 0.0f;
    table.options.rule.decoupled_weight_decay = is_ftrl ? 0.0f : 0.75f;
    const bool is_wide = table.options.value_type == ValueType::kF32;
    table.options.rule.rounding = is_wide ? Rounding::kNearest : Rounding::kStochastic;
    table.options.expected_rows_log2 = i;
    table.gradient_calls = (uint64_t{1} << 40) + i;
    table.options.initializer = {static_cast<InitializerKind>(i % 4), -0.5f, 1.5f};
    table.options.eviction = static_cast<EvictionPolicy>(i % 3);
    manifest.row_classes.push_back(RowClassOf(table.options));
    manifest.tables.push_back(std::move(table));
  }
  const auto size_of = [&](size_t i) { return manifest.row_classes[i].slot_bytes; };
  manifest.segments = {SegmentOf(7, 0, size_of(0), 1, false), SegmentOf(9, 1, size_of(1), 64, true),
                       SegmentOf(8, 4, size_of(4), 65, true),
                       SegmentOf(999, 5, size_of(5), 5, false)};
  manifest.heat = {.bytes = 8192, .sketch_bytes = 4096, .crc = 0xFEEDBEEF};
  for (int i = 0; i < 100; ++i) manifest.blob.push_back(static_cast<std::byte>(i * 7));
  manifest.next_segment_ids[Tier::kPmem] = kPmemSegmentIdMin + 10;
  manifest.directories[Tier::kPmem].path = "/pmem";
  manifest.unix_ns = -1'700'000'000'000'000'001;
  SegmentRows in_pmem = manifest.segments[0];
  in_pmem.header.segment_id = kPmemSegmentIdMin + 9;
  in_pmem.tier = Tier::kPmem;
  manifest.segments.push_back(std::move(in_pmem));
  return manifest;
}

Bytes RichBytes() { return EncodeManifest(Rich()); }

TEST(Manifest, ComesBackAsItWas) {
  const Manifest rich = Rich();
  const Bytes bytes = EncodeManifest(rich);
  const StatusOr<Manifest> back = DecodeManifest(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->store_id, rich.store_id);
  EXPECT_EQ(back->checkpoint, rich.checkpoint);
  EXPECT_EQ(back->previous, rich.previous);
  EXPECT_EQ(back->seed, rich.seed);
  EXPECT_EQ(back->next_segment_ids[Tier::kSsd], rich.next_segment_ids[Tier::kSsd]);
  EXPECT_EQ(back->next_sequence, rich.next_sequence);
  EXPECT_EQ(back->unix_ns, rich.unix_ns);
  EXPECT_EQ(back->row_classes, rich.row_classes);
  EXPECT_EQ(back->heat.bytes, rich.heat.bytes);
  EXPECT_EQ(back->heat.sketch_bytes, rich.heat.sketch_bytes);
  EXPECT_EQ(back->heat.crc, rich.heat.crc);
  EXPECT_EQ(back->blob, rich.blob);
  ASSERT_EQ(back->tables.size(), rich.tables.size());
  for (size_t i = 0; i < rich.tables.size(); ++i) {
    const ManifestTable& was = rich.tables[i];
    const ManifestTable& is = back->tables[i];
    EXPECT_EQ(is.id, was.id);
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.options.dim, was.options.dim);
    EXPECT_EQ(is.options.value_type, was.options.value_type);
    EXPECT_EQ(is.options.optimizer, was.options.optimizer);
    EXPECT_EQ(is.options.rule.learning_rate, was.options.rule.learning_rate);
    EXPECT_EQ(is.options.rule.beta1, was.options.rule.beta1);
    EXPECT_EQ(is.options.rule.beta2, was.options.rule.beta2);
    EXPECT_EQ(is.options.rule.epsilon, was.options.rule.epsilon);
    EXPECT_EQ(is.options.rule.weight_decay, was.options.rule.weight_decay);
    EXPECT_EQ(is.options.rule.initial_accumulator, was.options.rule.initial_accumulator);
    EXPECT_EQ(is.options.rule.max_gradient_norm, was.options.rule.max_gradient_norm);
    EXPECT_EQ(is.options.rule.max_gradient_value, was.options.rule.max_gradient_value);
    EXPECT_EQ(is.options.rule.ftrl_l1, was.options.rule.ftrl_l1);
    EXPECT_EQ(is.options.rule.ftrl_l2, was.options.rule.ftrl_l2);
    EXPECT_EQ(is.options.rule.decoupled_weight_decay, was.options.rule.decoupled_weight_decay);
    EXPECT_EQ(is.options.rule.rounding, was.options.rule.rounding);
    EXPECT_EQ(is.options.expected_rows_log2, was.options.expected_rows_log2);
    EXPECT_EQ(is.gradient_calls, was.gradient_calls);
    EXPECT_EQ(is.options.initializer.kind, was.options.initializer.kind);
    EXPECT_EQ(is.options.initializer.a, was.options.initializer.a);
    EXPECT_EQ(is.options.initializer.b, was.options.initializer.b);
  }
  ASSERT_EQ(back->segments.size(), rich.segments.size());
  for (size_t i = 0; i < rich.segments.size(); ++i) {
    EXPECT_EQ(back->segments[i].header, rich.segments[i].header);
    EXPECT_EQ(back->segments[i].tier, rich.segments[i].tier);
    EXPECT_EQ(back->segments[i].used_slots, rich.segments[i].used_slots);
    EXPECT_EQ(back->segments[i].bits, rich.segments[i].bits);
    EXPECT_EQ(back->segments[i].keys, rich.segments[i].keys);
    EXPECT_EQ(back->segments[i].tables, rich.segments[i].tables);
  }
}

TEST(Manifest, AnEmptyStoresManifestComesBack) {
  const Bytes bytes = EncodeManifest({});
  const StatusOr<Manifest> back = DecodeManifest(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(EncodeManifest(*back), bytes);
  EXPECT_EQ(back->checkpoint, 0u);
}

// The bytes of docs/file_formats.md, written out: a change of them is a change of the version.
TEST(Manifest, HasTheBytesThatTheFormatSays) {
  Manifest manifest;
  manifest.store_id = 0x1112131415161718;
  manifest.checkpoint = 0x21222324;
  manifest.previous = 0x21222323;
  manifest.heat = {
      .bytes = 0x4142434445464748, .sketch_bytes = 0x6162636465666768, .crc = 0x51525354};
  manifest.directories[Tier::kPmem].id = 0x7172737475767778;
  manifest.rows_lost = 0x3132333435363738;
  manifest.blob = {std::byte{0xEE}};
  const Bytes bytes = EncodeManifest(manifest);
  const std::string_view expected(
      "EMBMAN1\0\4\0\0\0\x24\x23\x22\x21\x23\x23\x22\x21\x18\x17\x16\x15\x14\x13\x12\x11", 28);
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()), 28);
  EXPECT_EQ(begin, expected);
  EXPECT_EQ(bytes.size(), 28u + 3 * 8 + (8 + 4) + 8 + 3 * 4 + 2 * 8 + 4 + 2 * 8 + 8 + 1 + 4);
  EXPECT_EQ(bytes[bytes.size() - 5], std::byte{0xEE});
  const std::string_view end(reinterpret_cast<const char*>(bytes.data()) + bytes.size() - 49, 36);
  EXPECT_EQ(end, "HGFEDCBAhgfedcbaTSRQxwvutsrq87654321");
}

// ---- damage that the checksum tells ----

TEST(Manifest, WithAnyBitFlippedIsDamaged) {
  Bytes bytes = RichBytes();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto flip = static_cast<std::byte>(1 << (bit % 8));
    bytes[bit / 8] ^= flip;
    ASSERT_TRUE(IsDataLoss(DecodeManifest(bytes).status())) << "bit " << bit;
    bytes[bit / 8] ^= flip;
  }
  EXPECT_TRUE(DecodeManifest(bytes).ok());
}

// A right checksum does not help either.
TEST(Manifest, CutAnywhereOrLongerIsDamaged) {
  const Bytes bytes = RichBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_TRUE(IsDataLoss(DecodeManifest(cut).status())) << size << " bytes";
    if (size < 16) continue;
    SealAgain(cut);
    ASSERT_TRUE(IsDataLoss(DecodeManifest(cut).status())) << size << " bytes, sealed";
  }
  for (const size_t more : {1, 4, 8, 100}) {
    Bytes longer = bytes;
    longer.resize(bytes.size() + more);
    ASSERT_TRUE(IsDataLoss(DecodeManifest(longer).status())) << more << " bytes more";
    SealAgain(longer);
    ASSERT_TRUE(IsDataLoss(DecodeManifest(longer).status())) << more << ", sealed";
  }
}

// One segment on the SSD, whose medium is at kMediumAt.
Manifest WithOneSegment() {
  Manifest manifest;
  manifest.next_segment_ids[Tier::kSsd] = 8;
  manifest.row_classes = {{.slot_bytes = 80}};
  manifest.segments.push_back({.header = {.store_id = 0,
                                          .segment_id = 7,
                                          .row_class = 0,
                                          .record_bytes = RecordBytesOf(80),
                                          .segment_bytes = 64 * kBlockBytes},
                               .tier = Tier::kSsd,
                               .used_slots = 3,
                               .bits = {5},
                               .keys = {},
                               .tables = {}});
  return manifest;
}
constexpr ptrdiff_t kMediumAt = 128;

constexpr ptrdiff_t kPmemAt = 52;
constexpr ptrdiff_t kPmemBytes = 8 + 4;

// Erases what manifests without tables have since version 4: the time, after the path of PMem, and
// the id of PMem and the number of lost rows, before the blob, which is empty, and the checksum.
void EraseVersion4(Bytes* bytes) {
  const ptrdiff_t end = static_cast<ptrdiff_t>(bytes->size()) - 8 - 4;
  bytes->erase(bytes->begin() + end - 16, bytes->begin() + end);
  const auto time = bytes->begin() + kPmemAt + kPmemBytes;
  bytes->erase(time, time + 8);
}

TEST(Manifest, TheFormatBeforeTimesAndLostRowsIsRead) {
  Bytes bytes = EncodeManifest(WithOneSegment());
  EraseVersion4(&bytes);
  PutAt<uint32_t>(bytes, 8, 3);
  SealAgain(bytes);
  const StatusOr<Manifest> back = DecodeManifest(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->rows_lost, 0u);
  EXPECT_EQ(back->directories[Tier::kPmem].id, 0u);
  EXPECT_EQ(EncodeManifest(*back), EncodeManifest(WithOneSegment()));
}

// Version 2 had neither a PMem tier nor a medium for each segment.
TEST(Manifest, TheFormatBeforePmemIsRead) {
  const Manifest manifest = WithOneSegment();
  Bytes bytes = EncodeManifest(manifest);
  bytes.erase(bytes.begin() + kMediumAt, bytes.begin() + kMediumAt + 4);
  EraseVersion4(&bytes);
  bytes.erase(bytes.begin() + kPmemAt, bytes.begin() + kPmemAt + kPmemBytes);
  PutAt<uint32_t>(bytes, 8, 2);
  SealAgain(bytes);
  const StatusOr<Manifest> back = DecodeManifest(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->segments.size(), 1u);
  EXPECT_EQ(back->segments[0].tier, Tier::kSsd);
  EXPECT_EQ(back->segments[0].bits, std::vector<uint64_t>{5});
  EXPECT_TRUE(back->directories[Tier::kPmem].path.empty());
  // The next checkpoint writes it in the newer format.
  EXPECT_EQ(EncodeManifest(*back), EncodeManifest(manifest));
}

// A location keeps 26 bits of the number, of which 1 and 2 have a log.
TEST(Manifest, AMediumWithoutALogIsDamaged) {
  for (const uint32_t medium : {0u, 3u, 4u, 0x04000001u, 0x04000002u, 0x80000002u, 0xFFFFFFFFu}) {
    Bytes bytes = EncodeManifest(WithOneSegment());
    PutAt<uint32_t>(bytes, kMediumAt, medium);
    SealAgain(bytes);
    EXPECT_TRUE(IsDataLoss(DecodeManifest(bytes).status())) << medium;
  }
}

TEST(Manifest, AnotherFormatIsRefusedByItsNumber) {
  for (const uint32_t version : {0u, 1u, 5u, 77u}) {
    Bytes bytes = RichBytes();
    PutAt<uint32_t>(bytes, 8, version);
    EXPECT_TRUE(IsDataLoss(DecodeManifest(bytes).status())) << "not sealed";
    SealAgain(bytes);
    const Status status = DecodeManifest(bytes).status();
    EXPECT_TRUE(IsFailedPrecondition(status)) << status;
    EXPECT_NE(status.message().find("version " + std::to_string(version)), std::string::npos);
  }
}

// ---- contents that no store has written, with a right checksum ----

struct Wrong {
  std::string name;
  std::function<void(Manifest*)> make;
};

std::vector<Wrong> WrongTables() {
  return {
      {"one id twice", [](Manifest* m) { m->tables[2].id = m->tables[4].id; }},
      {"one name twice", [](Manifest* m) { m->tables[2].name = m->tables[4].name; }},
      {"no name", [](Manifest* m) { m->tables[1].name = ""; }},
      {"a long name", [](Manifest* m) { m->tables[1].name = std::string(256, 'n'); }},
      {"nobody's id", [](Manifest* m) { m->tables[1].id = kNoTable; }},
      {"an id above", [](Manifest* m) { m->tables[1].id = kNoTable + 1; }},
      {"no dim", [](Manifest* m) { m->tables[1].options.dim = 0; }},
      {"a large dim", [](Manifest* m) { m->tables[1].options.dim = 4097; }},
      {"a type", [](Manifest* m) { m->tables[1].options.value_type = static_cast<ValueType>(3); }},
      {"an optimizer",
       [](Manifest* m) { m->tables[1].options.optimizer = static_cast<Optimizer>(6); }},
      {"an initializer",
       [](Manifest* m) {
         m->tables[1].options.initializer.kind = static_cast<InitializerKind>(4);
       }},
      {"a rate", [](Manifest* m) { m->tables[1].options.rule.learning_rate = -1.0f; }},
      {"a beta", [](Manifest* m) { m->tables[4].options.rule.beta1 = 1.0f; }},
      {"a norm", [](Manifest* m) { m->tables[1].options.rule.max_gradient_norm = -1.0f; }},
      {"a rounding",
       [](Manifest* m) { m->tables[1].options.rule.rounding = static_cast<Rounding>(2); }},
      {"expected rows", [](Manifest* m) { m->tables[1].options.expected_rows_log2 = 41; }},
      {"init_b", [](Manifest* m) { m->tables[2].options.initializer.b = -2.0f; }},
      {"a policy",
       [](Manifest* m) { m->tables[2].options.eviction = static_cast<EvictionPolicy>(3); }},
      {"a rule for lack of space",
       [](Manifest* m) { m->tables[2].options.on_full = static_cast<OnFull>(2); }},
  };
}

std::vector<Wrong> WrongSegments() {
  return {
      {"a class that is not there", [](Manifest* m) { m->segments[1].header.row_class = 6; }},
      {"another class's size", [](Manifest* m) { m->segments[1].header.row_class = 0; }},
      {"one twice", [](Manifest* m) { m->segments[1].header.segment_id = 8; }},
      {"one that is next", [](Manifest* m) { m->next_segment_ids[Tier::kSsd] = 999; }},
      {"one from later", [](Manifest* m) { m->segments[0].header.segment_id = 5000; }},
      {"half a block", [](Manifest* m) { m->segments[0].header.segment_bytes += 512; }},
      {"a large file",
       [](Manifest* m) { m->segments[0].header.segment_bytes = kSegmentBytesMax + kBlockBytes; }},
      {"space for no slot", [](Manifest* m) { m->segments[0].header.segment_bytes = kBlockBytes; }},
      {"more slots than fit",
       [](Manifest* m) {
         SegmentRows& rows = m->segments[0];
         const SegmentHeader& header = rows.header;
         rows.used_slots = SegmentGeometry::Of(header.record_bytes, header.segment_bytes).slots + 1;
         rows.bits.assign((rows.used_slots + 63) / 64, 1);
       }},
      {"no row", [](Manifest* m) { m->segments[1].bits[0] = 0; }},
      {"a row behind the used slots", [](Manifest* m) { m->segments[2].bits[1] |= 2; }},
      {"an owner above", [](Manifest* m) { m->segments[1].tables[3] = kNoTable + 1; }},
      {"a word of bits too few", [](Manifest* m) { m->segments[2].bits.pop_back(); }},
      {"a key too few", [](Manifest* m) { m->segments[2].keys.pop_back(); }},
  };
}

std::vector<Wrong> WrongClasses() {
  return {
      {"no bytes", [](Manifest* m) { m->row_classes.push_back({.slot_bytes = 0}); }},
      {"less than a header", [](Manifest* m) { m->row_classes.push_back({.slot_bytes = 16}); }},
      {"not whole units", [](Manifest* m) { m->row_classes.push_back({.slot_bytes = 100}); }},
      {"more than any row", [](Manifest* m) { m->row_classes.push_back({.slot_bytes = 1 << 20}); }},
      {"one class twice", [](Manifest* m) { m->row_classes.push_back(m->row_classes[0]); }},
      {"an order that is none",
       [](Manifest* m) { m->row_classes[0].eviction = static_cast<EvictionPolicy>(3); }},
      {"a rule for lack of space that is none",
       [](Manifest* m) { m->row_classes[0].on_full = static_cast<OnFull>(2); }},
  };
}

TEST(Manifest, MayHaveClassesOfOneSizeInTwoOrdersAndRules) {
  Manifest manifest;
  manifest.row_classes = {
      {.slot_bytes = 64, .eviction = EvictionPolicy::kLru},
      {.slot_bytes = 64, .eviction = EvictionPolicy::kLfu},
      {.slot_bytes = 64, .eviction = EvictionPolicy::kClock},
      {.slot_bytes = 64, .eviction = EvictionPolicy::kClock, .on_full = OnFull::kForget}};
  const StatusOr<Manifest> back = DecodeManifest(EncodeManifest(manifest));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->row_classes, manifest.row_classes);
}

// CLOCK stood for LRU once: the rows of such a table are in a class of CLOCK.
TEST(Manifest, ATableThatAskedForLruAndHasAClassOfClockIsReadAsClock) {
  Manifest manifest = Rich();
  const RowClass lru = manifest.row_classes[3];
  ASSERT_EQ(lru.eviction, EvictionPolicy::kLru);
  manifest.row_classes[3].eviction = EvictionPolicy::kClock;
  const StatusOr<Manifest> old = DecodeManifest(EncodeManifest(manifest));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->tables[3].options.eviction, EvictionPolicy::kClock);
  EXPECT_EQ(old->tables[0].options.eviction, EvictionPolicy::kLru);
  manifest.row_classes.push_back(lru);
  const StatusOr<Manifest> both = DecodeManifest(EncodeManifest(manifest));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->tables[3].options.eviction, EvictionPolicy::kLru);
}

// Rows that are large, in segments as small as those of a store that grows by sessions.
TEST(Manifest, FitsIntoItsReservationWithManySmallSegments) {
  constexpr uint64_t kSmallest = uint64_t{256} << 10;
  constexpr uint32_t kSlotBytes = 16 << 10;
  constexpr uint64_t kLogBytes = uint64_t{4} << 30;
  Manifest tables;
  tables.row_classes.push_back({.slot_bytes = kSlotBytes});
  const uint64_t bytes_max =
      ManifestBytesMax(tables, kLogBytes, kSmallest, uint64_t{64} << 20, 100);
  Manifest full = tables;
  full.blob.resize(100);
  const uint32_t slots = SegmentGeometry::Of(RecordBytesOf(kSlotBytes), kSmallest).slots;
  for (uint64_t i = 0; i < kLogBytes / kSmallest; ++i) {
    full.segments.push_back(SegmentOf(i + 1, 0, kSlotBytes, slots, i % 4096 == 0));
    full.segments.back().header.segment_bytes = kSmallest;
  }
  EXPECT_LE(EncodeManifest(full).size(), bytes_max);
}

TEST(Manifest, WithWhatNoStoreHasIsDamaged) {
  for (const auto& list : {WrongTables(), WrongSegments(), WrongClasses()}) {
    for (const Wrong& wrong : list) {
      Manifest manifest = Rich();
      wrong.make(&manifest);
      const Status status = DecodeManifest(EncodeManifest(manifest)).status();
      EXPECT_TRUE(IsDataLoss(status)) << wrong.name << ": " << status;
    }
  }
}

// Counts that stand for more than there is cost no memory.
TEST(Manifest, WhosePreviousOneIsLaterIsDamaged) {
  Manifest manifest;
  manifest.checkpoint = 3;
  manifest.previous = 4;
  EXPECT_TRUE(IsDataLoss(DecodeManifest(EncodeManifest(manifest)).status()));
}

TEST(Manifest, WithCountsThatAreTooLargeIsDamaged) {
  const Bytes empty = EncodeManifest({});
  // The length of PMem's path; the counts of classes, tables and segments; the blob's bytes.
  for (const size_t at : {60, 72, 76, 80, 120, 124}) {
    for (const uint32_t count : {1u, 1000u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
      Bytes bytes = empty;
      PutAt<uint32_t>(bytes, at, count);
      SealAgain(bytes);
      EXPECT_TRUE(IsDataLoss(DecodeManifest(bytes).status())) << at << ": " << count;
    }
  }
}

// ---- chance ----

// Checks that an accepted manifest has nothing that the tests above refuse.
void ExpectSound(const Manifest& manifest) {
  std::set<TableId> ids;
  for (const ManifestTable& table : manifest.tables) {
    ASSERT_TRUE(Validate(table.options).ok());
    ASSERT_TRUE(ValidateTableName(table.name).ok());
    ASSERT_TRUE(table.id < kNoTable && ids.insert(table.id).second);
  }
  for (const RowClass& row_class : manifest.row_classes) {
    const uint32_t slot_bytes = row_class.slot_bytes;
    ASSERT_TRUE(slot_bytes % 16 == 0 && slot_bytes >= 32 && slot_bytes <= kRowBytesMax);
  }
  for (const SegmentRows& rows : manifest.segments) {
    ASSERT_TRUE(IsSound(rows.header));
    ASSERT_EQ(rows.header.record_bytes,
              RecordBytesOf(manifest.row_classes.at(rows.header.row_class).slot_bytes));
    const bool is_pmems = rows.header.segment_id >= kPmemSegmentIdMin;
    ASSERT_TRUE(rows.tier == Tier::kSsd || (is_pmems && rows.tier == Tier::kPmem));
    ASSERT_LT(rows.header.segment_id,
              manifest.next_segment_ids[is_pmems ? Tier::kPmem : Tier::kSsd]);
    ASSERT_EQ(rows.bits.size(), (rows.used_slots + 63) / 64);
    uint64_t rows_there = 0;
    for (uint64_t slot = 0; slot < 64 * rows.bits.size(); ++slot) {
      const bool has_row = (rows.bits[slot / 64] >> (slot % 64) & 1) != 0;
      ASSERT_TRUE(!has_row || slot < rows.used_slots);
      rows_there += has_row ? 1 : 0;
    }
    ASSERT_GT(rows_there, 0u);
    ASSERT_TRUE(rows.keys.empty() || rows.keys.size() == rows.used_slots);
    ASSERT_EQ(rows.keys.size(), rows.tables.size());
  }
}

TEST(Manifest, AnyBytesAreSoundOrRefused) {
  Random random(17);
  Events events;
  for (const char* const name : {"accepted", "damaged", "of another version"}) events.Expect(name);
  const Bytes rich = RichBytes();
  for (int trial = 0; trial < 30'000; ++trial) {
    Bytes bytes = rich;
    for (uint64_t changes = random.Between(1, 3); changes > 0; --changes) {
      const size_t at = random.Below(bytes.size() - 8);
      if (random.OneIn(2)) {
        bytes[at] = static_cast<std::byte>(random.Bits());
      } else {
        constexpr uint32_t kEdges[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 4095, 4096, 64};
        PutAt<uint32_t>(bytes, at, kEdges[random.Below(std::size(kEdges))]);
      }
    }
    if (random.OneIn(4)) {
      const auto at = static_cast<ptrdiff_t>(random.Below(bytes.size() - 16) + 12);
      bytes.erase(bytes.begin() + at,
                  bytes.begin() + std::min<ptrdiff_t>(at + 4, std::ssize(bytes)));
    }
    SealAgain(bytes);
    const StatusOr<Manifest> manifest = DecodeManifest(bytes);
    if (manifest.ok()) {
      ASSERT_NO_FATAL_FAILURE(ExpectSound(*manifest));
      events.Count("accepted");
    } else if (IsFailedPrecondition(manifest.status())) {
      events.Count("of another version");
    } else {
      ASSERT_TRUE(IsDataLoss(manifest.status())) << manifest.status();
      events.Count("damaged");
    }
  }
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

TEST(Manifest, GarbageIsRefused) {
  Random random(18);
  for (int trial = 0; trial < 3'000; ++trial) {
    Bytes bytes(random.Below(300));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Bits());
    ASSERT_TRUE(IsDataLoss(DecodeManifest(bytes).status()));
    if (bytes.size() < 20) continue;
    // As far as the first one counts.
    const Bytes front = EncodeManifest({});
    std::copy_n(front.begin(), 12, bytes.begin());
    SealAgain(bytes);
    ASSERT_TRUE(IsDataLoss(DecodeManifest(bytes).status()));
  }
}

}  // namespace
}  // namespace embank::test::manifest_test
