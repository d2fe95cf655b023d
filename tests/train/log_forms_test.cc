// The same 400 clicks in the forms in which people have them: a form has the samples of the plain
// one, bit by bit, or one sentence that says what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exact_text.h"
#include "base/str_cat.h"
#include "tests/support/scratch_directory.h"
#include "train/data/click_files.h"
#include "train/data/click_reader.h"
#include "train/data/column_file.h"

namespace embank::test::log_forms_test {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;
using testing::Not;
using Files = std::map<std::string, std::string>;

constexpr int kClicks = 400;

struct Click {
  bool is_click = false;
  std::optional<int> age = {};
  double price = 0.0;
  std::optional<uint64_t> user = {};
  uint32_t ad = 0;
  std::string site = {};  // empty: missing
  std::vector<int> tags = {};
};

std::vector<Click> Clicks() {
  const std::string sites[] = {"news",    "NA", "caf\xC3\xA9 \xE2\x82\xAC", "a, b; c", "5\" screen",
                               "blank s", "",   "\xF0\x9D\x84\x9E"};
  std::vector<Click> clicks;
  for (int i = 0; i < kClicks; ++i) {
    Click& click = clicks.emplace_back();
    click.is_click = i * 7 % 5 < 2;
    if (i % 6 != 0) click.age = i % 90 - 3;
    click.price = i % 9 == 0 ? 1e-7 * i : 0.37 * i;
    if (i % 11 != 0) click.user = uint64_t{1} << (i % 53) | static_cast<uint64_t>(i);
    click.ad = static_cast<uint32_t>(i) * 0x9E3779B9u;
    click.site = sites[i % std::size(sites)];
    for (int tag = 0; tag < i % 4; ++tag) click.tags.push_back(i * 3 % 17 + tag);
  }
  return clicks;
}

// How a program writes clicks.
struct Style {
  std::string separator = "\t";
  bool has_quotes = false;  // around all texts, not only where they are needed
  bool has_header = true;
  bool has_index = false;  // a first column with the number of the line
  bool is_backwards = false;
  std::string missing = "";
  std::string missing_text = "";
  std::string whole = "";  // stands behind whole numbers
  bool is_scientific = false;
  std::array<std::string, 2> labels = {"0", "1"};
  bool has_lists = false;
  std::string end = "\n";
};

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\""s : std::string(1, c);
  return quoted + '"';
}

std::string TextField(const std::string& text, const Style& style) {
  const bool needs_quotes = text.find(style.separator) != std::string::npos ||
                            (style.separator != "\t" && text.find('"') != std::string::npos);
  return style.has_quotes || needs_quotes ? Quoted(text) : text;
}

std::string Joined(const std::vector<std::string>& fields, const Style& style) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    line += (i > 0 ? style.separator : "") + fields[style.is_backwards ? fields.size() - 1 - i : i];
  }
  return line + style.end;
}

std::string Price(double price, const Style& style) {
  if (!style.is_scientific) return ExactText(price);
  std::array<char, 40> text;
  char* const end =
      std::to_chars(text.data(), text.data() + text.size(), price, std::chars_format::scientific)
          .ptr;
  return std::string(text.data(), end);
}

std::string Tags(const std::vector<int>& tags, const Style& style) {
  std::string text = style.has_lists ? "[" : "";
  for (const int& tag : tags) {
    StrAppend(&text, &tag == tags.data() ? "" : style.has_lists ? ", " : "|", tag);
  }
  if (style.has_lists) return Quoted(text + "]");
  return tags.empty() ? style.missing : text;
}

std::string Lines(const Style& style = {}, int begin = 0, int end = kClicks) {
  const std::vector<Click> clicks = Clicks();
  const auto whole = [&](const auto& number) {
    return number ? StrCat(*number, style.whole) : style.missing;
  };
  std::string text;
  if (style.has_header) {
    std::vector<std::string> names = {"click", "age", "price", "user", "ad", "site", "tags"};
    for (std::string& name : names) name = TextField(name, style);
    if (style.has_index) names.insert(names.begin(), style.has_quotes ? "\"\"" : "");
    text = Joined(names, style);
  }
  for (int i = begin; i < end; ++i) {
    const Click& click = clicks[static_cast<size_t>(i)];
    std::vector<std::string> fields = {
        style.labels[click.is_click ? 1 : 0],
        whole(click.age),
        Price(click.price, style),
        whole(click.user),
        TextField(StrCat(Hex(click.ad, 8)), style),
        click.site.empty() ? style.missing_text : TextField(click.site, style),
        Tags(click.tags, style)};
    if (style.has_index) fields.insert(fields.begin(), StrCat(i));
    text += Joined(fields, style);
  }
  return text;
}

constexpr char kColumns[] =
    "label click\ndense age flag\ndense price log\nid user decimal\nid ad hex\nid site text\n"
    "bag tags decimal\n";
const std::string kTab = "separator tab\n";
const std::string kPlain = kTab + kColumns;

// The same columns without a header.
constexpr char kNumbered[] =
    "separator tab\nheader no\nlabel 1\ndense 2 flag\ndense 3 log\nid 4 decimal\nid 5 hex\n"
    "id 6 text missing \\N\nbag 7 decimal\n";

// A text with a line of `end` for each of its lines.
std::string WithEnds(std::string text, const std::string& end) {
  std::string other;
  for (const char c : text) other += c == '\n' ? end : std::string(1, c);
  return other;
}

std::string Utf16(std::string_view text, bool is_big) {
  std::string units;
  const auto add = [&](uint32_t unit) {
    const char high = static_cast<char>(unit >> 8), low = static_cast<char>(unit & 0xFF);
    units += is_big ? high : low;
    units += is_big ? low : high;
  };
  add(0xFEFF);
  while (!text.empty()) {
    const auto first = static_cast<uint8_t>(text[0]);
    const size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    uint32_t character = size == 1 ? first : first & (0x7Fu >> size);
    for (size_t i = 1; i < size; ++i) {
      character = character << 6 | (static_cast<uint8_t>(text[i]) & 0x3F);
    }
    text.remove_prefix(size);
    if (character < 0x10000) {
      add(character);
      continue;
    }
    add(0xD800 + ((character - 0x10000) >> 10));
    add(0xDC00 + ((character - 0x10000) & 0x3FF));
  }
  return units;
}

void AppendLittle(uint32_t number, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) to->push_back(static_cast<char>(number >> 8 * i & 0xFF));
}

uint32_t Crc32(std::string_view text) {
  uint32_t crc = ~0u;
  for (const char c : text) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

// A .gz file of blocks that are not compressed (RFC 1951, 3.2.4).
std::string Gzip(const std::string& text) {
  constexpr size_t kBlockBytes = 5'000;
  std::string file = "\x1f\x8b\x08\0\0\0\0\0\0\x03"s;
  for (size_t begin = 0; begin < text.size(); begin += kBlockBytes) {
    const std::string block = text.substr(begin, kBlockBytes);
    const auto size = static_cast<uint32_t>(block.size());
    file.push_back(begin + kBlockBytes >= text.size() ? 1 : 0);
    AppendLittle(size, 2, &file);
    AppendLittle(~size, 2, &file);
    file += block;
  }
  AppendLittle(Crc32(text), 4, &file);
  AppendLittle(static_cast<uint32_t>(text.size()), 4, &file);
  return file;
}

// A zstd frame of blocks that are not compressed (RFC 8878, 3.1.1).
std::string Zstd(const std::string& text) {
  constexpr size_t kBlockBytes = 5'000;
  std::string frame = "\x28\xb5\x2f\xfd\0\x58"s;
  for (size_t begin = 0; begin < text.size(); begin += kBlockBytes) {
    const std::string block = text.substr(begin, kBlockBytes);
    const bool is_last = begin + kBlockBytes >= text.size();
    AppendLittle(static_cast<uint32_t>(block.size() << 3) | (is_last ? 1 : 0), 3, &frame);
    frame += block;
  }
  return frame;
}

// Turns a text into the bytes of a file.
struct Wrapping {
  const char* name;
  std::string (*wrap)(const std::string&);
};

const Wrapping kWrappings[] = {
    {"without a last end", [](const std::string& text) { return text.substr(0, text.size() - 1); }},
    {"a byte order mark", [](const std::string& text) { return "\xEF\xBB\xBF" + text; }},
    {"UTF-16LE", [](const std::string& text) { return Utf16(text, false); }},
    {"UTF-16BE", [](const std::string& text) { return Utf16(text, true); }},
    {"CRLF", [](const std::string& text) { return WithEnds(text, "\r\n"); }},
    {"CR", [](const std::string& text) { return WithEnds(text, "\r"); }},
    {"gzip", Gzip},
    {"gzip, two members",
     [](const std::string& text) { return Gzip(text.substr(0, 777)) + Gzip(text.substr(777)); }},
    {"zstd", Zstd},
    {"zstd, two frames",
     [](const std::string& text) { return Zstd(text.substr(0, 777)) + Zstd(text.substr(777)); }},
    {"blank lines at the end", [](const std::string& text) { return text + "\n\n"; }},
    {"gzip of UTF-16, CRLF",
     [](const std::string& text) { return Gzip(Utf16(WithEnds(text, "\r\n"), false)); }}};

// Samples whose floats are compared as bits.
struct Samples {
  using Bits = std::vector<uint32_t>;
  uint64_t count = 0;
  Bits labels, dense;
  std::vector<std::vector<uint64_t>> ids;
  std::vector<Bits> offsets, weights;
  bool operator==(const Samples&) const = default;

  static Bits Of(const std::vector<float>& floats) {
    Bits bits;
    for (const float value : floats) bits.push_back(std::bit_cast<uint32_t>(value));
    return bits;
  }
};

// Reads the files of a word, none of whose lines may be broken. No columns: Criteo's format.
StatusOr<Samples> Read(const Files& files, const std::string& word, const std::string& columns) {
  const ScratchDirectory directory;
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = directory.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  ClickLogFormat format;
  if (!columns.empty()) format.columns = *ParseColumnFile(columns);
  const std::vector<std::string> words = {directory.path() + "/" + word};
  const StatusOr<std::vector<std::string>> found = FilesOf(words);
  if (!found.ok()) return found.status();
  const auto reader = ClickReader::Open(*found, format, 0.0);
  if (!reader.ok()) return reader.status();
  ClickBatch batch;
  const StatusOr<uint32_t> count = (*reader)->Next(10'000, &batch);
  if (!count.ok()) return count.status();
  EXPECT_TRUE(CheckBatch(batch, (*reader)->columns()).ok());
  Samples samples = {*count, Samples::Of(batch.labels), Samples::Of(batch.dense), {}, {}, {}};
  for (const FeatureIds& feature : batch.features) {
    samples.ids.push_back(feature.ids);
    samples.offsets.push_back(feature.offsets);
    samples.weights.push_back(Samples::Of(feature.weights));
  }
  return samples;
}

StatusOr<Samples> Read(const std::string& text, const std::string& columns) {
  return Read({{"log", text}}, "log", columns);
}

void ExpectSame(const StatusOr<Samples>& samples, const Samples& plain, const std::string& name) {
  ASSERT_TRUE(samples.ok()) << name << ": " << samples.status();
  EXPECT_EQ(samples->count, plain.count) << name;
  EXPECT_EQ(samples->labels, plain.labels) << name;
  EXPECT_EQ(samples->dense, plain.dense) << name;
  EXPECT_EQ(samples->ids, plain.ids) << name;
  EXPECT_TRUE(*samples == plain) << name;
}

// Clicks in Criteo's format.
std::string CriteoLines() {
  std::string text;
  for (const Click& click : Clicks()) {
    text += click.is_click ? '1' : '0';
    for (int i = 0; i < 13; ++i) {
      text += '\t';
      if (click.age) text += StrCat(*click.age * (i + 1));
    }
    for (uint32_t i = 0; i < 26; ++i) {
      text += i % 5 == 2 ? "\t"s : StrCat("\t", Hex(click.ad + i, 8));
    }
    text += '\n';
  }
  return text;
}

// Clicks as sparse vectors: a label, tags, and an ad.
struct SparseStyle {
  std::string label_end = " ";
  std::string tag = "";  // stands before each
  std::string tag_end = " ";
  std::string tags_end = " ";
  std::string ad = "";
};
const SparseStyle kLibffm = {.tag = "0:", .ad = "3:"};

std::string SparseLines(const SparseStyle& style = {}) {
  std::string text;
  for (const Click& click : Clicks()) {
    text += (click.is_click ? "1" : "0") + style.label_end;
    for (const int& tag : click.tags) {
      StrAppend(&text, &tag == click.tags.data() ? "" : style.tag_end, style.tag, tag, ":",
                ExactText(0.1 * click.price));
    }
    const bool is_apart = !click.tags.empty() || style.tags_end != style.tag_end;
    StrAppend(&text, is_apart ? style.tags_end : "", style.ad, click.ad, ":1\n");
  }
  return text;
}
constexpr char kLibffmColumns[] = "format libffm\nfield 0 tag\nfield 3 ad\n";

TEST(LogForms, EachLineFormatMayBeWrapped) {
  struct Format {
    const char* name;
    std::string text, columns;
  };
  const Style csv = {.separator = ",", .is_backwards = true};
  for (const Format& format : {Format{"Criteo", CriteoLines(), ""},
                               {"TSV", Lines(), kPlain},
                               {"CSV", Lines(csv), kColumns},
                               {"libsvm", SparseLines(), "format libsvm\n"},
                               {"libffm", SparseLines(kLibffm), kLibffmColumns}}) {
    const StatusOr<Samples> plain = Read(format.text, format.columns);
    ASSERT_TRUE(plain.ok()) << format.name << ": " << plain.status();
    EXPECT_EQ(plain->count, uint64_t{kClicks});
    for (const Wrapping& wrapping : kWrappings) {
      ExpectSame(Read(wrapping.wrap(format.text), format.columns), *plain,
                 StrCat(format.name, ", ", wrapping.name));
    }
  }
}

TEST(LogForms, ProgramsWriteTheSameClicks) {
  struct Form {
    const char* name;
    std::string columns;
    Style style;
  };
  const std::string without_tags = std::string(kColumns).substr(0, sizeof kColumns - 18);
  const std::string lists = without_tags + "bag tags decimal list\n";
  const std::string csv = kColumns;
  const auto missing = [](std::string columns, const std::string& text) {
    const std::string site = "id site text";
    return columns.replace(columns.find(site), site.size(), site + " missing " + text);
  };
  const Samples plain = *Read(Lines(), kPlain);
  const Form forms[] = {
      {"quoted CSV, other order",
       csv,
       {.separator = ",", .has_quotes = true, .is_backwards = true}},
      {"pandas",
       lists,
       {.separator = ",",
        .has_index = true,
        .whole = ".0",
        .is_scientific = true,
        .labels = {"False", "True"},
        .has_lists = true}},
      {"pandas, na_rep",
       missing(csv, "NaN"),
       {.separator = ",",
        .has_index = true,
        .missing = "NaN",
        .missing_text = "NaN",
        .whole = ".0",
        .labels = {"0.0", "1.0"}}},
      {"R",
       missing(csv, "N_A"),
       {.separator = ",",
        .has_quotes = true,
        .has_index = true,
        .missing = "NA",
        .missing_text = "N_A",
        .is_scientific = true,
        .labels = {"FALSE", "TRUE"}}},
      {"Hive",
       kNumbered,
       {.has_header = false, .missing = "\\N", .missing_text = "\\N", .labels = {"false", "true"}}},
      {"a client of MySQL", missing(kPlain, "NULL"), {.missing = "NULL", .missing_text = "NULL"}},
      {"Excel, semicolons",
       "separator semicolon\n" + csv,
       {.separator = ";", .labels = {"FALSE", "TRUE"}, .end = "\r\n"}},
      {"SQL without a header", kNumbered, {.has_header = false}},
  };
  for (const Form& form : forms) {
    ExpectSame(Read(Lines(form.style), form.columns), plain, form.name);
  }
}

TEST(LogForms, APartMayHaveItsOwnFile) {
  const Style csv = {.separator = ","};
  const Style backwards = {.separator = ",", .is_backwards = true};
  const Samples plain = *Read(Lines(), kPlain);
  Files spark = {{"log/_SUCCESS", ""},
                 {"log/.part-00000-c000.csv.crc", "crc\0\0"s},
                 {"log/part-00000-c000.csv", Lines(csv, 0, 150)},
                 {"log/part-00001-c000.csv", ""},
                 {"log/part-00002-c000.csv", Lines(csv, 0, 0)},
                 {"log/part-00003-c000.csv", Lines(csv, 150)}};
  ExpectSame(Read(spark, "log", kColumns), plain, "Spark");
  for (auto& [name, text] : spark) {
    if (name.find("/part") != std::string::npos) text = Gzip(text);
  }
  spark["log/part-00001-c000.csv"] = "";
  ExpectSame(Read(spark, "log/part*", kColumns), plain, "Spark, gzip");
  Files days = {{"day_9.csv", Lines(csv, 0, 1)},
                {"day_10.csv.gz", Gzip(Lines(backwards, 1, 99))},
                {"day_11.csv", "\xEF\xBB\xBF" + Lines(csv, 99, 300)},
                {"day_100.csv.zst", Zstd(Lines(backwards, 300))}};
  ExpectSame(Read(days, "day_*", kColumns), plain, "days");
}

// Lines in the layouts of data sets that people train first: Avazu's clicks, and MovieLens' ratings
// as three of its releases write them.
TEST(LogForms, PublicLayoutsAreRead) {
  const Samples::Bits labels = Samples::Of({0.0f, 1.0f});
  const std::string avazu =
      "id,click,hour,C1,banner_pos,site_id,device_ip,C20,C21\n"
      "10000000000000000001,0,14102100,1005,0,1fbe01fe,ddd2926e,-1,79\n"
      "18446744073709551615,1,14102100,1005,1,85f751fd,96809ac8,100084,79\n";
  const StatusOr<Samples> clicks =
      Read(avazu,
           "label click\nid id decimal\nid hour decimal\nid C1 decimal\nid banner_pos decimal\n"
           "id site_id hex\nid device_ip hex\nid C20 decimal missing -1\nid C21 decimal\n");
  ASSERT_TRUE(clicks.ok()) << clicks.status();
  EXPECT_EQ(clicks->labels, labels);
  EXPECT_EQ(clicks->ids[0], (std::vector<uint64_t>{10000000000000000001u, UINT64_MAX}));
  EXPECT_EQ(clicks->ids[4], (std::vector<uint64_t>{0x1fbe01fe, 0x85f751fd}));
  EXPECT_EQ(clicks->ids[6], (std::vector<uint64_t>{kMissingId, 100084}));

  const std::string named =
      "label rating at-least 4\nid userId decimal\nid movieId decimal\ndense timestamp log\n";
  const std::string numbered =
      "header no\nlabel 3 at-least 4\nid 1 decimal\nid 2 decimal\ndense 4 log\n";
  const Samples ratings =
      *Read("196\t242\t3\t881250949\n22\t377\t5\t878887116\n", "separator tab\n" + numbered);
  EXPECT_EQ(ratings.labels, labels);
  EXPECT_EQ(ratings.ids, (std::vector<std::vector<uint64_t>>{{196, 22}, {242, 377}}));
  ExpectSame(
      Read("userId,movieId,rating,timestamp\n196,242,3.0,881250949\n22,377,5.0,878887116\n", named),
      ratings, "ratings.csv");
  const Status of_colons =
      Read("196::242::3::881250949\n22::377::5::878887116\n", numbered).status();
  EXPECT_THAT(std::string(of_colons.message()),
              HasSubstr("the separator '::' is not read: write tabs in its place (sed"));
}

TEST(LogForms, SparseVectorsAreBagsWithWeights) {
  const SparseStyle one_bag = {.label_end = ",", .tag_end = "|", .tags_end = "|"};
  const SparseStyle two_bags = {.label_end = ",", .tag_end = "|", .tags_end = ","};
  const std::string one = "header no\nlabel 1\nbag 2 decimal weights :\n";
  const Samples bag = *Read(SparseLines(one_bag), one);
  EXPECT_EQ(bag.count, uint64_t{kClicks});
  ExpectSame(Read(SparseLines(), "format libsvm\n"), bag, "libsvm");
  const Samples bags = *Read(SparseLines(two_bags), one + "bag 3 decimal weights :\n");
  ExpectSame(Read(SparseLines(kLibffm), kLibffmColumns), bags, "libffm");
}

}  // namespace
}  // namespace embank::test::log_forms_test
