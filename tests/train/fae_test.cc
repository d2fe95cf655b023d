// The file of hot and cold batches, damaged or not, and each of its batches once an epoch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/str_cat.h"
#include "tests/bench/temporary_file.h"
#include "train/data/click_text.h"
#include "train/fae/fae_file.h"
#include "train/fae/fae_format.h"
#include "train/fae/fae_writer.h"
#include "train/popularity/id_places.h"

namespace embank::test::fae_test {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const Status& status) { return std::string(status.message()); }

// Samples with a number as their dense feature and two ids; a sample is hot where both are below
// ten of eleven.
class NumberedLog {
 public:
  explicit NumberedLog(uint32_t samples) { batch_ = Make(samples); }

  static ClickColumns Columns() { return {.dense = {"number"}, .ids = {"user", "item"}}; }
  const ClickBatch& batch() const { return batch_; }
  bool IsHot(uint32_t sample) const {
    return batch_.features[0].ids[sample] < 10 && batch_.features[1].ids[sample] < 10;
  }

 private:
  static ClickBatch Make(uint32_t samples) {
    const CounterRandom random(18);
    ClickBatch batch;
    batch.Clear(2);
    batch.samples = samples;
    for (uint32_t i = 0; i < samples; ++i) {
      batch.labels.push_back(static_cast<float>(i % 2));
      batch.dense.push_back(static_cast<float>(i));
      batch.features[0].ids.push_back(random.Bits(2 * uint64_t{i}) % 11);
      batch.features[1].ids.push_back(random.Bits(2 * uint64_t{i} + 1) % 11);
    }
    return batch;
  }

  ClickBatch batch_;
};

HotIds HotIdsOf(const ClickColumns& columns) {
  HotIds ids;
  ids.table_of_column = HotIds::TablesOfColumns(columns.table_names());
  ids.tables.resize(*std::ranges::max_element(ids.table_of_column) + 1);
  for (size_t i = 0; i < ids.tables.size(); ++i) {
    for (Key id = 0; id < 10; ++id) ids.tables[i].Add(9 * (i + 1) * id + i);
  }
  return ids;
}

FaeHeader HeaderOf(const ClickColumns& columns) {
  return {.columns = columns,
          .files = {{123, 4}, {uint64_t{1} << 40, 5}},
          .budget_bytes = 1 << 20,
          .sampled_share = 0.05,
          .counted_share = 0.05,
          .seed = 7,
          .threshold = 1.0 / 3.0 * 1e-5,
          .dims = std::vector<uint32_t>(columns.ids.size(), 16),
          .row_bytes = std::vector<uint32_t>(columns.ids.size(), 68),
          .row_optimizer = "rowwise adagrad",
          .model = "dlrm",
          .bound_bytes = 1 << 19,
          .hot_bytes = 1 << 18};
}

// Writes all samples of the log.
Status Write(const std::string& path, const NumberedLog& log) {
  const ClickColumns columns = NumberedLog::Columns();
  StatusOr<std::unique_ptr<FaeWriter>> writer = FaeWriter::Create(path, columns);
  if (!writer.ok()) return writer.status();
  for (uint32_t i = 0; i < log.batch().samples; ++i) {
    if (Status status = (*writer)->Add(log.batch(), i, log.IsHot(i)); !status.ok()) return status;
  }
  return (*writer)->Finish(HeaderOf(columns), HotIdsOf(columns));
}

// All samples of a class.
StatusOr<ClickBatch> ReadClass(const FaeFile& file, bool is_hot) {
  ClickBatch all;
  ClickBatch block;
  all.Clear(file.header().columns.ids.size());
  for (size_t i = 0; i < file.blocks(is_hot); ++i) {
    EXPECT_EQ(file.BlockBegin(is_hot, i), all.samples);
    if (Status status = file.ReadBlock(is_hot, i, &block); !status.ok()) return status;
    AppendSamples(block, 0, block.samples, &all);
  }
  EXPECT_EQ(file.samples(is_hot), all.samples);
  return all;
}

// A checksum of all that a file holds.
StatusOr<uint32_t> SumOfContents(const std::string& path) {
  StatusOr<std::shared_ptr<const FaeFile>> file = FaeFile::Open(path);
  if (!file.ok()) return file.status();
  std::string sums = WriteFaeText((*file)->header());
  for (const bool is_hot : {false, true}) {
    const StatusOr<ClickBatch> samples = ReadClass(**file, is_hot);
    if (!samples.ok()) return samples.status();
    StrAppend(&sums, " ", Crc32cOf(*samples));
  }
  for (const IdPlaces& table : (*file)->hot_ids()->tables) {
    StrAppend(&sums, " ", StrJoin(table.ids(), ","));
  }
  return fae::Crc32cOf(sums);
}

TEST(IdPlaces, AreABijection) {
  const CounterRandom random(5);
  for (const uint32_t count : {1u, 2u, 7u, 8u, 9u, 1000u, 20'000u}) {
    SCOPED_TRACE(count);
    IdPlaces places;
    std::set<Key> distinct;
    for (uint32_t i = 0; i < count; ++i) {
      const Key id = random.Bits(i) % (count + count / 2);
      const bool is_new = distinct.insert(id).second;
      const uint32_t place = places.Add(id);
      if (is_new) {
        ASSERT_EQ(place, distinct.size() - 1);
      }
      ASSERT_EQ(places.size(), distinct.size());
      ASSERT_EQ(places.ids()[place], id);
    }
    std::vector<uint32_t> found(places.size());
    places.PlacesOf(places.ids(), found.data());
    std::vector<uint32_t> expected(places.size());
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(places.PlaceOf(count * Key{2}), IdPlaces::kNone);
  }
}

TEST(FaeFile, HasAMillionInputsOnceInTheirOrder) {
  // The last block of a class is short, but in one case.
  for (const uint32_t samples : {1'000'000u, 4095u, 1u}) {
    SCOPED_TRACE(samples);
    const NumberedLog log(samples);
    const TemporaryFile path(".fae");
    ASSERT_EQ(Write(path.path(), log), OkStatus());
    const auto file = *FaeFile::Open(path.path());
    EXPECT_EQ(file->header().samples, samples);
    EXPECT_EQ(file->samples(false) + file->samples(true), samples);
    std::array<uint32_t, 2> next = {};
    for (const bool is_hot : {false, true}) {
      const StatusOr<ClickBatch> all = ReadClass(*file, is_hot);
      ASSERT_TRUE(all.ok()) << all.status();
      for (uint32_t i = 0; i < all->samples; ++i) {
        while (next[is_hot] < samples && log.IsHot(next[is_hot]) != is_hot) ++next[is_hot];
        ASSERT_EQ(all->dense[i], static_cast<float>(next[is_hot]));
        ASSERT_EQ(all->labels[i], static_cast<float>(next[is_hot] % 2));
        ASSERT_EQ(all->features[1].ids[i], log.batch().features[1].ids[next[is_hot]]);
        ASSERT_EQ(file->BlockOf(is_hot, i), i / fae::kBlockSamples);
        ++next[is_hot];
      }
    }
  }
}

TEST(FaeFile, IsTheSameBytesForTheSameLog) {
  const NumberedLog log(9000);
  const TemporaryFile first(".fae");
  const TemporaryFile second(".fae");
  ASSERT_EQ(Write(first.path(), log), OkStatus());
  ASSERT_EQ(Write(second.path(), log), OkStatus());
  EXPECT_EQ(first.Contents(), second.Contents());
  EXPECT_EQ(*SumOfContents(first.path()), *SumOfContents(second.path()));
}

// Bags of two features, of which one has weights, in blocks that end by their bytes.
TEST(FaeFile, KeepsBagsWeightsAndSharedTables) {
  const ClickColumns columns = {
      .dense = {"a", "b c"},
      .ids = {"user", "an item", "bought", "seen"},
      .tables = {"user", "items", "items", "items"},
      .data = {.words = "a log", .shuffle = 3, .files = {{7, 8, 9}, {1, 2, 0}}},
      .format = "rules 2\nlabel x\n\nid y hex"};
  std::array<ClickBatch, 2> written;
  for (ClickBatch& batch : written) batch.Clear(columns.ids.size());
  const TemporaryFile path(".fae");
  auto writer = *FaeWriter::Create(path.path(), columns);
  for (uint64_t i = 0; i < 300; ++i) {
    // One bag in a hundred has megabytes.
    const uint64_t bought = i % 100 == 50 ? 1 << 18 : i % 3;
    ClickBatch batch;
    batch.Clear(columns.ids.size());
    AppendRow({.label = 1.0f,
               .dense = {0.5f, static_cast<float>(i)},
               .ids = {~uint64_t{0} - i, i, 0, 0},
               .bags = {{.feature = 2, .ids = std::vector<uint64_t>(bought, i)},
                        {.feature = 3,
                         .ids = std::vector<uint64_t>(i % 4, i),
                         .weights = std::vector<float>(i % 4, 0.25f)}}},
              &batch);
    const bool is_hot = i % 5 < 2;
    ASSERT_EQ(writer->Add(batch, 0, is_hot), OkStatus());
    AppendSample(batch, 0, &written[is_hot]);
  }
  const HotIds ids = HotIdsOf(columns);
  ASSERT_EQ(writer->Finish(HeaderOf(columns), ids), OkStatus());
  const auto file = *FaeFile::Open(path.path());
  for (const bool is_hot : {false, true}) {
    const StatusOr<ClickBatch> read = ReadClass(*file, is_hot);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(TextOf(*read), TextOf(written[is_hot]));
    EXPECT_EQ(Crc32cOf(*read), Crc32cOf(written[is_hot]));
  }
  EXPECT_GE(file->blocks(false) + file->blocks(true), 3u);
  EXPECT_EQ(file->hot_ids()->table_of_column, (std::vector<uint32_t>{0, 1, 1, 1}));
  ASSERT_EQ(file->hot_ids()->tables.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto is = file->hot_ids()->tables[i].ids();
    const auto was = ids.tables[i].ids();
    EXPECT_TRUE(std::ranges::equal(is, was));
  }
  FaeHeader expected = HeaderOf(columns);
  expected.samples = 300;
  EXPECT_EQ(WriteFaeText(file->header()), WriteFaeText(expected));
  EXPECT_EQ(file->header().columns.data, columns.data);
  EXPECT_EQ(file->header().columns.format, columns.format);
  EXPECT_EQ(file->header().threshold, expected.threshold);
  EXPECT_EQ(DifferenceOf(file->header(), expected), "");
}

TEST(ClickBatch, HasAnyPartsOfAnotherOnes) {
  const CounterRandom random(4);
  ClickBatch from;
  from.Clear(3);
  std::vector<ClickRow> rows;
  for (uint64_t i = 0; i < 9; ++i) {
    const uint64_t size = random.Bits(i) % 4;
    rows.push_back({.label = static_cast<float>(i % 2),
                    .dense = {static_cast<float>(i), 0.5f},
                    .ids = {i, 0, 0},
                    .bags = {{.feature = 1, .ids = std::vector<uint64_t>(size, i)},
                             {.feature = 2,
                              .ids = std::vector<uint64_t>(2 * size, i),
                              .weights = std::vector<float>(2 * size, static_cast<float>(i))}}});
    AppendRow(rows.back(), &from);
  }
  for (uint32_t begin = 0; begin <= from.samples; ++begin) {
    for (uint32_t end = begin; end <= from.samples; ++end) {
      ClickBatch parts;
      ClickBatch expected;
      for (ClickBatch* const batch : {&parts, &expected}) {
        batch->Clear(3);
        AppendRow(rows[5], batch);
      }
      AppendSamples(from, begin, end, &parts);
      for (uint32_t i = begin; i < end; ++i) AppendRow(rows[i], &expected);
      EXPECT_EQ(TextOf(parts), TextOf(expected)) << begin << " to " << end;
      EXPECT_EQ(Crc32cOf(parts), Crc32cOf(expected)) << begin << " to " << end;
    }
  }
}

TEST(FaeFile, MayHaveNoThreshold) {
  FaeHeader header = HeaderOf(NumberedLog::Columns());
  header.threshold = std::numeric_limits<double>::infinity();
  const StatusOr<FaeHeader> read = ParseFaeText(WriteFaeText(header));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->threshold, header.threshold);
}

// A pipe without a writer.
TEST(FaeFile, IsNoPipe) {
  const TemporaryFile file(".fae");
  const std::string pipe = file.path() + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(FaeFile::Is(pipe));
  EXPECT_TRUE(IsInvalidArgument(FaeFile::Open(pipe).status()));
  std::filesystem::remove(pipe);
}

TEST(FaeFile, IsKnownByItsFirstBytes) {
  const TemporaryFile whole(".fae");
  ASSERT_EQ(Write(whole.path(), NumberedLog(10)), OkStatus());
  EXPECT_TRUE(FaeFile::Is(whole.path()));
  const TemporaryFile empty(".fae");
  const TemporaryFile text(".fae", "EMBFAE or not");
  EXPECT_FALSE(FaeFile::Is(empty.path()));
  EXPECT_FALSE(FaeFile::Is(text.path()));
  EXPECT_FALSE(FaeFile::Is(testing::TempDir()));
  EXPECT_FALSE(FaeFile::Is(whole.path() + ".none"));
  EXPECT_TRUE(IsDataLoss(FaeFile::Open(empty.path()).status()));
  EXPECT_THAT(MessageOf(FaeFile::Open(text.path()).status()),
              HasSubstr(text.path() + ": no file of hot and cold batches"));
  EXPECT_TRUE(IsInvalidArgument(FaeFile::Open(testing::TempDir()).status()));
  EXPECT_TRUE(IsNotFound(FaeFile::Open(whole.path() + ".none").status()));
}

// The byte that a message of DATA_LOSS names.
uint64_t ByteIn(const Status& status) {
  const std::string message = MessageOf(status);
  const size_t at = message.find("byte ");
  EXPECT_NE(at, std::string::npos) << message;
  return at == std::string::npos ? 0 : std::stoull(message.substr(at + 5));
}

// Each byte is under a checksum: a damaged file never has other contents.
TEST(FaeFile, DamageAndTruncationAreFound) {
  const TemporaryFile whole(".fae");
  ASSERT_EQ(Write(whole.path(), NumberedLog(40)), OkStatus());
  ASSERT_TRUE(SumOfContents(whole.path()).ok());
  const std::string bytes = whole.Contents();
  const TemporaryFile damaged(".fae");
  const auto expect_damaged = [&](const std::string& contents, uint64_t at) {
    std::ofstream(damaged.path(), std::ios::binary) << contents;
    const Status status = SumOfContents(damaged.path()).status();
    ASSERT_TRUE(IsDataLoss(status)) << status;
    ASSERT_THAT(MessageOf(status), HasSubstr(damaged.path()));
    ASSERT_LE(ByteIn(status), at) << status;
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    SCOPED_TRACE(i);
    std::string contents = bytes;
    contents[i] = static_cast<char>(contents[i] ^ 1 << i % 8);
    expect_damaged(contents, i);
    if (HasFatalFailure()) return;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    expect_damaged(bytes.substr(0, size), size);
    if (HasFatalFailure()) return;
  }
  expect_damaged(bytes + "x", bytes.size());
}

// The last bytes of a file, taken apart.
struct Ending {
  std::string blocks;  // and the head
  std::string hot_ids;
  std::string index;
  std::string text;
};

Ending EndingOf(const std::string& bytes) {
  fae::Bytes footer(std::string_view(bytes).substr(bytes.size() - fae::kFooterBytes));
  std::array<fae::Part, 3> parts;
  for (fae::Part& part : parts) {
    EXPECT_TRUE(footer.Take(&part.offset) && footer.Take(&part.bytes) && footer.Take(&part.crc32c));
  }
  return {.blocks = bytes.substr(0, parts[0].offset),
          .hot_ids = bytes.substr(parts[0].offset, parts[0].bytes),
          .index = bytes.substr(parts[1].offset, parts[1].bytes),
          .text = bytes.substr(parts[2].offset, parts[2].bytes)};
}

// A file with these parts, and checksums that match.
std::string WholeOf(const Ending& ending) {
  std::string bytes = ending.blocks;
  const auto append = [&](const std::string& part) {
    const fae::Part place = {bytes.size(), part.size(), fae::Crc32cOf(part)};
    bytes += part;
    return place;
  };
  fae::Footer footer;
  footer.hot_ids = append(ending.hot_ids);
  footer.index = append(ending.index);
  footer.text = append(ending.text);
  return bytes + fae::WriteFooter(footer);
}

void Replace(std::string* text, const std::string& from, const std::string& to) {
  const size_t at = text->find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text->replace(at, from.size(), to);
}

// Counts that no bytes stand for, under checksums that match, cost no memory.
TEST(FaeFile, ForgedCountsAreRefused) {
  const TemporaryFile whole(".fae");
  ASSERT_EQ(Write(whole.path(), NumberedLog(40)), OkStatus());
  const std::string bytes = whole.Contents();
  ASSERT_EQ(WholeOf(EndingOf(bytes)), bytes);
  const std::string most(8, '\xFF');
  using E = Ending;
  struct Case {
    const char* words;
    void (*change)(Ending*, const std::string& most);
  };
  const Case cases[] = {
      {"the hot ids lack some",
       [](E* e, const std::string& m) { e->hot_ids.replace(0, 4, m, 0, 4); }},
      {"the hot ids lack some", [](E* e, const std::string&) { e->hot_ids.pop_back(); }},
      {"too many hot ids", [](E* e, const std::string& m) { e->hot_ids += m; }},
      {"a hot id is there twice",
       [](E* e, const std::string&) { e->hot_ids.replace(12, 8, e->hot_ids.substr(4, 8)); }},
      {"a block that is none", [](E* e, const std::string& m) { e->index.replace(8, 8, m); }},
      {"a block that is none", [](E* e, const std::string& m) { e->index.replace(0, 8, m); }},
      {"a block that is none",
       [](E* e, const std::string& m) { e->index.replace(16, 4, m, 0, 4); }},
      {"a block that is none",
       [](E* e, const std::string&) { e->index.replace(20, 4, std::string(4, '\0')); }},
      {"the index lacks blocks", [](E* e, const std::string&) { e->index.resize(28); }},
      {"the index lacks blocks",
       [](E* e, const std::string& m) { e->index.replace(20, 4, m, 0, 4); }},
      {"no line \"id feature\"",
       [](E* e, const std::string&) {
         Replace(&e->text, "id features 2", "id features 99999999");
       }},
      {"no line \"log file\"",
       [](E* e, const std::string&) { Replace(&e->text, "log files 2", "log files 9999999999"); }},
      {"no line \"id table\"",
       [](E* e, const std::string&) { Replace(&e->text, "id tables 0", "id tables 7"); }},
      {"no line \"samples\"",
       [](E* e, const std::string&) { Replace(&e->text, "samples 40", "samples 40 1"); }},
      {"no line \"budget bytes\"", [](E* e, const std::string&) { e->text.clear(); }},
  };
  const TemporaryFile forged(".fae");
  for (const auto& [words, change] : cases) {
    SCOPED_TRACE(words);
    Ending ending = EndingOf(bytes);
    change(&ending, most);
    std::ofstream(forged.path(), std::ios::binary) << WholeOf(ending);
    const Status status = SumOfContents(forged.path()).status();
    EXPECT_TRUE(IsDataLoss(status)) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr(words));
    EXPECT_LE(ByteIn(status), bytes.size());
  }
  // The count of a block and that of the text agree.
  Ending ending = EndingOf(bytes);
  uint32_t samples = 0;
  fae::Bytes first(std::string_view(ending.index).substr(20));
  ASSERT_TRUE(first.Take(&samples));
  ending.index.replace(20, 4, most, 0, 4);
  Replace(&ending.text, "samples 40", StrCat("samples ", uint64_t{UINT32_MAX} + 40 - samples));
  std::ofstream(forged.path(), std::ios::binary) << WholeOf(ending);
  EXPECT_THAT(MessageOf(SumOfContents(forged.path()).status()), HasSubstr("a block of samples"));
}

// A whole block in the place of another one is damage, too.
TEST(FaeFile, ExchangedBlocksAreFound) {
  const ClickColumns columns = NumberedLog::Columns();
  const NumberedLog log(16);
  const TemporaryFile whole(".fae");
  auto writer = *FaeWriter::Create(whole.path(), columns);
  for (uint32_t i = 0; i < 16; ++i) ASSERT_EQ(writer->Add(log.batch(), i, i % 2 == 0), OkStatus());
  ASSERT_EQ(writer->Finish(HeaderOf(columns), HotIdsOf(columns)), OkStatus());
  std::string bytes = whole.Contents();
  const size_t end = EndingOf(bytes).blocks.size();
  const size_t block = (end - fae::kHeadBytes) / 2;
  bytes = bytes.substr(0, fae::kHeadBytes) + bytes.substr(fae::kHeadBytes + block, block) +
          bytes.substr(fae::kHeadBytes, block) + bytes.substr(end);
  const TemporaryFile exchanged(".fae", bytes);
  EXPECT_TRUE(IsDataLoss(SumOfContents(exchanged.path()).status()));
}

TEST(FaeFile, ANewerVersionIsRefused) {
  const TemporaryFile whole(".fae");
  ASSERT_EQ(Write(whole.path(), NumberedLog(40)), OkStatus());
  std::string head(fae::kMagic);
  fae::Append(fae::kVersion + 1, &head);
  fae::Append(fae::Crc32cOf(head), &head);
  const TemporaryFile newer(".fae", head + whole.Contents().substr(fae::kHeadBytes));
  const Status status = FaeFile::Open(newer.path()).status();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_THAT(MessageOf(status), HasSubstr("it has version 2, and this one reads 1"));
}

TEST(FaeWriter, NamesTheFileWhenItIsWhole) {
  const ClickColumns columns = NumberedLog::Columns();
  const NumberedLog log(10);
  const TemporaryFile file(".fae", "an older one");
  const std::string unfinished = file.path() + ".unfinished";
  {
    auto writer = *FaeWriter::Create(file.path(), columns);
    ASSERT_EQ(writer->Add(log.batch(), 0, true), OkStatus());
    EXPECT_TRUE(std::filesystem::exists(unfinished));
  }
  EXPECT_FALSE(std::filesystem::exists(unfinished));
  EXPECT_EQ(file.Contents(), "an older one");
  ASSERT_EQ(Write(file.path(), log), OkStatus());
  EXPECT_FALSE(std::filesystem::exists(unfinished));
  EXPECT_TRUE(SumOfContents(file.path()).ok());
}

TEST(FaeWriter, TellsWhyItCannotWrite) {
  const ClickColumns columns = NumberedLog::Columns();
  const TemporaryFile file(".fae");
  const Status nowhere = FaeWriter::Create(file.path() + "/nowhere", columns).status();
  EXPECT_FALSE(nowhere.ok());
  EXPECT_THAT(MessageOf(nowhere), HasSubstr(file.path() + "/nowhere"));
  // A full disk.
  const std::string unfinished = file.path() + ".unfinished";
  ASSERT_EQ(symlink("/dev/full", unfinished.c_str()), 0);
  const Status full = FaeWriter::Create(file.path(), columns).status();
  EXPECT_TRUE(IsResourceExhausted(full)) << full;
  EXPECT_THAT(MessageOf(full), HasSubstr(unfinished + ": cannot write: No space left on device"));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(unfinished)));
}

TEST(FaeWriter, RefusesSamplesOfAnotherForm) {
  const ClickColumns columns = NumberedLog::Columns();
  const NumberedLog log(2);
  ClickBatch without_labels = log.batch();
  without_labels.labels.clear();
  ClickBatch with_bags = log.batch();
  with_bags.features[1].offsets = {0, 1, 2};
  ClickBatch with_weights = with_bags;
  with_weights.features[1].weights = {1.0f, 2.0f};
  const std::pair<const ClickBatch*, const ClickBatch*> cases[] = {
      {&log.batch(), &without_labels}, {&log.batch(), &with_bags}, {&with_weights, &with_bags}};
  for (const auto& [first, second] : cases) {
    const TemporaryFile file(".fae");
    auto writer = *FaeWriter::Create(file.path(), columns);
    ASSERT_EQ(writer->Add(*first, 0, true), OkStatus());
    const Status status = writer->Add(*second, 1, true);
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_EQ(writer->Finish(HeaderOf(columns), HotIdsOf(columns)), status);
    EXPECT_EQ(file.Contents(), "");
  }
}

TEST(FaeHeader, TellsTheFirstDifference) {
  const FaeHeader header = HeaderOf(NumberedLog::Columns());
  struct Case {
    const char* difference;
    void (*change)(FaeHeader*);
  };
  const Case cases[] = {
      {"file 1 of the log has 123 bytes, and not 7", [](FaeHeader* h) { h->files[0].bytes = 7; }},
      {"file 2 of the log has other contents", [](FaeHeader* h) { ++h->files[1].crc32c; }},
      {"the log has 2 files, and not 1", [](FaeHeader* h) { h->files.pop_back(); }},
      {"the budget is 1048576 bytes, and not 1", [](FaeHeader* h) { h->budget_bytes = 1; }},
      {"the sampled share is 0.05, and not 1", [](FaeHeader* h) { h->sampled_share = 1.0; }},
      {"the seed of the sample is 7, and not 8", [](FaeHeader* h) { h->seed = 8; }},
      {"there are 1 dense features, and not 2",
       [](FaeHeader* h) { h->columns.dense.emplace_back("age"); }},
      {"id feature 2 is \"item\", and not \"ad\"", [](FaeHeader* h) { h->columns.ids[1] = "ad"; }},
      {"the model is dlrm, and not din", [](FaeHeader* h) { h->model = "din"; }},
      {"the dim of id feature \"item\" is 16, and not 8", [](FaeHeader* h) { h->dims[1] = 8; }},
      {"the size of a hot row in bytes of id feature \"user\" is 68, and not 64",
       [](FaeHeader* h) { h->row_bytes[0] = 64; }},
      {"the optimizer of rows is rowwise adagrad, and not sgd",
       [](FaeHeader* h) { h->row_optimizer = "sgd"; }},
      {"the table of id feature 2 is \"item\", and not \"user\"",
       [](FaeHeader* h) {
         h->columns.tables = {"user", "user"};
       }},
      {"the lines of the log are read by other rules",
       [](FaeHeader* h) { h->columns.format = "label x"; }},
      {"", [](FaeHeader* h) { h->columns.tables = h->columns.ids; }},
      {"", [](FaeHeader* h) { h->hot_bytes = 1; }},
      {"", [](FaeHeader* h) { h->counted_share = 1.0; }},
  };
  for (const auto& [difference, change] : cases) {
    FaeHeader wanted = header;
    change(&wanted);
    EXPECT_EQ(DifferenceOf(header, wanted), difference);
  }
}

TEST(LogFile, IsSummedAsItIsStored) {
  std::vector<uint64_t> told;
  const auto sum = [&](const std::string& path) {
    told.clear();
    return SumOfFile(path, [&](uint64_t bytes) { told.push_back(bytes); });
  };
  const TemporaryFile check(".txt", "123456789");
  EXPECT_EQ(*sum(check.path()), (LogFile{9, 0xE3069283})) << "the check value of CRC-32C";
  constexpr size_t kBytes = (5 << 20) + 5;
  const TemporaryFile large(".txt", std::string(kBytes, 'a'));
  EXPECT_EQ(*sum(large.path()), (LogFile{kBytes, fae::Crc32cOf(std::string(kBytes, 'a'))}));
  EXPECT_GE(told.size(), 5u) << "a large file tells how far it is";
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), kBytes);
  EXPECT_TRUE(IsNotFound(sum(check.path() + ".none").status()));
  EXPECT_FALSE(sum(testing::TempDir()).ok());
}

}  // namespace
}  // namespace embank::test::fae_test
