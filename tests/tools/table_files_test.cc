// Headers of safetensors and npy files: which ones are read, and which damage is noticed.
#include "tools/table_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "store/store.h"
#include "tests/support/scratch_directory.h"
#include "tools/literal.h"
#include "tools/npy_files.h"
#include "tools/safetensors_files.h"

namespace embank::test::table_files_test {
namespace {

using testing::HasSubstr;

TEST(Literals, AreReadInBothSyntaxes) {
  const auto json = ParseLiteral(
      " {\"a\":[1,2.5,-3,\"\\u00e9\\ud83d\\ude00\\n\"], \"b\" : {\"c\":true,\"d\":null}} ",
      LiteralSyntax::kJson);
  ASSERT_TRUE(json.ok()) << json.status();
  const std::vector<Literal>& items = json->Field("a")->items;
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0].number, 1u);
  EXPECT_EQ(items[1].number, std::nullopt);
  EXPECT_EQ(items[2].number, std::nullopt);
  EXPECT_EQ(items[3].text, "\u00e9\U0001F600\n");
  EXPECT_TRUE(json->Field("b")->Field("c")->truth);
  const auto python =
      ParseLiteral("{'a': (18446744073709551615,), \"b\": True, }\n", LiteralSyntax::kPython);
  ASSERT_TRUE(python.ok()) << python.status();
  EXPECT_EQ(*python->Field("a")->Numbers(), std::vector<uint64_t>{UINT64_MAX});
}

TEST(Literals, AreRefusedWithTheByte) {
  const std::string deep(100, '[');
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "byte 0 of the text is no value"},
           {"{", "byte 1 of the text must be a name"},
           {"{\"a\" 1}", "byte 5 of the text must be a colon"},
           {"{\"a\":1,}", "byte 7 of the text must be a name"},
           {"{\"a\":1,\"a\":2}", "the name a, which is there twice"},
           {"[1 2]", "byte 3 of the text must be a comma"},
           {"[01]", "byte 1 of the text is no value"},
           {"{'a':1}", "byte 1 of the text must be a name"},
           {"\"a", "byte 2 of the text is the end"},
           {"\"a\nb\"", "byte 2 of the text is no character"},
           {"\"\xFF\"", "byte 1 of the text is no character"},
           {"\"\\q\"", "byte 1 of the text must be an escape"},
           {"\"\\u12g4\"", "byte 1 of the text must be an escape"},
           {"\"\\ud800x\"", "byte 7 of the text must be an escape"},
           {"\"\\udc00\"", "half of a surrogate pair"},
           {"1 2", "byte 2 of the text is more than one value"},
           {deep, "too deep"}}) {
    const auto read = ParseLiteral(text, LiteralSyntax::kJson);
    EXPECT_TRUE(IsDataLoss(read.status())) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(message)) << text;
  }
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// All that the files say of the columns.
std::string Describe(const TableFiles& files) {
  std::string text = files.optimizer;
  for (const FilePart& part : files.parts) {
    for (const std::optional<FileColumn>& column : part) {
      if (!column.has_value()) continue;
      StrAppend(&text, "\n", column->offset, " ", column->type->name, " ", column->Shape());
    }
  }
  return text;
}

class TableFilesTest : public testing::Test {
 protected:
  TableFilesTest() {
    store_ = *Store::Open({.worker_threads = 1}, {});
    embank::TableOptions options;
    options.dim = 3;
    options.optimizer = Optimizer::kAdagrad;
    table_ = *store_->CreateTable("items", options);
    const std::vector<Key> keys = {1, 2, 3, 4, 5};
    const std::vector<float> values(15);
    EXPECT_TRUE(Upsert(table_, keys,
                       ConstRowSpan{reinterpret_cast<const std::byte*>(values.data()), 12}, {})
                    .ok());
    buffer_.emplace(table_->layout(), true, true);
  }

  // Writes the planned files, whose rows are all zero.
  static void Write(const PlannedFiles& planned) {
    for (const auto& [path, text] : planned.texts) WriteFile(path, text);
    for (const FilePart& part : planned.table.parts) {
      for (const std::optional<FileColumn>& column : part) {
        const uint64_t end = column->offset + column->rows * column->row_bytes();
        std::filesystem::resize_file(
            column->path, std::max<uint64_t>(end, std::filesystem::file_size(column->path)));
      }
    }
  }

  // Turns each bit up to byte `bytes`, and cuts the file off at each byte, and counts the files
  // that are read. Such a file must be as good as the whole one.
  template <typename Read>
  static int CountRead(const std::string& path, size_t bytes, Read read) {
    const std::string whole = ReadFile(path);
    const StatusOr<TableFiles> expected = read();
    EXPECT_TRUE(expected.ok()) << expected.status();
    int harmless = 0;
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    for (size_t bit = 0; bit < 8 * bytes; ++bit) {
      const char turned = static_cast<char>(whole[bit / 8] ^ (1 << bit % 8));
      EXPECT_EQ(pwrite(file, &turned, 1, static_cast<off_t>(bit / 8)), 1);
      const StatusOr<TableFiles> found = read();
      EXPECT_EQ(pwrite(file, &whole[bit / 8], 1, static_cast<off_t>(bit / 8)), 1);
      if (!found.ok()) {
        EXPECT_THAT(std::string(found.status().message()), HasSubstr(path));
        continue;
      }
      ++harmless;
      TableFiles without_optimizer = *found;
      without_optimizer.optimizer = expected->optimizer;
      EXPECT_EQ(Describe(without_optimizer), Describe(*expected)) << "bit " << bit;
    }
    EXPECT_EQ(pwrite(file, "x", 1, static_cast<off_t>(whole.size())), 1);
    EXPECT_FALSE(read().ok());
    for (size_t size = whole.size(); size-- > 0;) {
      EXPECT_EQ(ftruncate(file, static_cast<off_t>(size)), 0);
      EXPECT_FALSE(read().ok()) << size;
    }
    close(file);
    WriteFile(path, whole);
    EXPECT_TRUE(read().ok());
    return harmless;
  }

  std::string In(const std::string& name) const { return scratch_.path() + "/" + name; }

  const ScratchDirectory scratch_;
  std::unique_ptr<Store> store_;
  Table* table_ = nullptr;
  std::optional<RowBuffer> buffer_;
};

TEST_F(TableFilesTest, EveryBitOfASafetensorsHeaderIsNoticedOrHarmless) {
  const std::vector<std::string> paths = {In("items.safetensors")};
  Write(*PlanSafetensors(*table_, *buffer_, paths[0], 1 << 20));
  const int harmless = CountRead(paths[0], 600, [&] { return ReadSafetensors(paths); });
  // They are in the metadata: names of fields, the name of the table and that of the optimizer.
  EXPECT_LT(harmless, 8 * 35);
}

TEST_F(TableFilesTest, EveryBitOfAnNpyHeaderIsNoticedOrHarmless) {
  Write(PlanNpy(*table_, *buffer_, In("items")));
  for (const char* column : {"keys", "values", "state", "heat"}) {
    const std::string path = StrCat(In("items"), ".", column, ".npy");
    // The minor version; 'descr' may become the key of another type with the same size.
    EXPECT_LE(CountRead(path, 128, [&] { return ReadNpy(In("items")); }), 24) << column;
  }
}

TEST_F(TableFilesTest, FilesThatNoTableHasAreRefused) {
  const std::string path = In("x.safetensors");
  const auto with_header = [&](const std::string& json, size_t bytes) {
    const uint64_t size = json.size();
    WriteFile(path, std::string(reinterpret_cast<const char*>(&size), 8) + json +
                        std::string(bytes, '\0'));
  };
  const std::string keys = "\"keys\":{\"dtype\":\"U64\",\"shape\":[2],\"data_offsets\":[0,16]}";
  const auto values = [](const std::string& type, const std::string& shape, uint64_t end) {
    return StrCat(",\"values\":{\"dtype\":\"", type, "\",\"shape\":", shape,
                  ",\"data_offsets\":[16,", end, "]}}");
  };
  for (const auto& [json, bytes, message] :
       std::vector<std::tuple<std::string, size_t, std::string>>{
           {"[]", 0, "no JSON object"},
           {"{}", 0, "no tensor keys"},
           {"{" + keys + "}", 16, "keys has no values beside it"},
           {"{" + keys + values("F32", "[2,1]", 24), 23, "its tensors take 24 bytes"},
           {"{" + keys + values("F32", "[2,2]", 24), 24, "need 16"},
           {"{" + keys + values("I32", "[2,1]", 24), 24, "values must be F32, F16 or BF16"},
           {"{" + keys + values("F8", "[2,1]", 24), 24, "dtype F8, which no table has"},
           {"{" + keys + values("F32", "[2]", 24), 24, "values must be"},
           {"{" + keys + values("F32", "[2,0]", 16), 16, "1 to 8193 numbers"},
           {"{" + keys + values("F32", "[1,2]", 24), 24, "has 1 rows, and there are 2 keys"},
           {"{" + keys + values("F32", "[1,1,2]", 24), 24, "one dimension or two"},
           {"{" + keys + values("F32", "[4611686018427387905,8]", 48), 32, "more bytes than"},
           {"{" + keys + ",\"x\":1}", 16, "tensor x has no data_offsets"},
           {"{" + keys + ",\"x\":{\"data_offsets\":[8,16]}}", 16, "must begin at 16"},
           {"{\"__metadata__\":{\"embank\":\"2\"}}", 0, "reads version 1"},
           {"{\"__metadata__\":{\"embank\":\"1\"},\"x\":{\"data_offsets\":[0,0]}}", 0,
            "tensor x is none of a table"},
           {"{\"__metadata__\":3}", 0, "the metadata is no JSON object"},
           {"{\"__metadata__\":{\"a\":3}}", 0, "a of the metadata is no string"}}) {
    with_header(json, bytes);
    const auto read = ReadSafetensors(std::vector<std::string>{path});
    EXPECT_THAT(read.status().ToString(), HasSubstr(message)) << json;
  }
  // Tensors of others are left out.
  with_header("{" + keys + ",\"x\":{\"data_offsets\":[24,25]}" + values("F32", "[2,1]", 24), 25);
  EXPECT_TRUE(ReadSafetensors(std::vector<std::string>{path}).ok());
}

TEST_F(TableFilesTest, AnIndexThatNamesOtherFilesIsRefused) {
  const std::string path = In("items.safetensors");
  Write(*PlanSafetensors(*table_, *buffer_, path, 4096 + 80));
  const std::string index = path + ".index.json";
  const std::string whole = ReadFile(index);
  const auto read = [&] { return ReadSafetensors(std::vector<std::string>{path}); };
  ASSERT_TRUE(read().ok()) << read().status();
  EXPECT_EQ(read()->parts.size(), 3u);
  EXPECT_EQ(read()->rows(), 5u);
  for (const auto& [from, to, message] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"items-00001", "../items-00001", "no file of its directory"},
           {"items-00001", "items-00009",
            "items-00009-of-00003.safetensors: there is no such file"},
           {"weight_map", "weight_nap", "there is no weight_map"},
           {"{", "(", "byte 0 of the text"}}) {
    std::string content = whole;
    content.replace(content.find(from), from.size(), to);
    WriteFile(index, content);
    EXPECT_THAT(read().status().ToString(), HasSubstr(message)) << from;
  }
  WriteFile(index, whole);
  const std::string shard = In("items-00001-of-00003.safetensors");
  EXPECT_TRUE(ReadSafetensors(std::vector<std::string>{shard, path}).ok());
  // A shard of ours by itself would pass for a whole table.
  std::filesystem::copy_file(shard, In("again.safetensors"));
  for (const auto& [paths, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{shard}, shard + " is a shard of a table; give " + path + ", whose index names all"},
           {{path, In("again.safetensors")},
            "again.safetensors is a shard of a table; give the"}}) {
    const auto found = ReadSafetensors(paths);
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(found.status().ToString(), HasSubstr(message));
  }
  // The index of another table, which has a column more.
  std::string more = whole;
  more.insert(more.find("\"keys.00001"), "\"heat.00009\": \"items-00001-of-00003.safetensors\",");
  WriteFile(index, more);
  EXPECT_TRUE(IsDataLoss(read().status()));
  EXPECT_THAT(read().status().ToString(), HasSubstr("tensor heat.00009 of the index is not there"));
}

TEST_F(TableFilesTest, APipeIsRefusedAtOnce) {
  const std::string path = In("items.keys.npy");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  constexpr unsigned kSecondsMax = 30;
  alarm(kSecondsMax);  // ends the test if an open waits
  EXPECT_THAT(ReadNpy(In("items")).status().ToString(), HasSubstr("is no regular file"));
  EXPECT_THAT(ReadSafetensors(std::vector<std::string>{path}).status().ToString(),
              HasSubstr("is no regular file"));
  alarm(0);
}

}  // namespace
}  // namespace embank::test::table_files_test
