#include "train/generator/click_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace embank::test::click_schema_test {
namespace {

uint64_t Rows(const ClickSchema& schema) {
  uint64_t rows = 0;
  for (const IdFieldSchema& field : schema.fields) rows += field.cardinality;
  return rows;
}

std::set<uint32_t> Dims(const ClickSchema& schema) {
  std::set<uint32_t> dims;
  for (const IdFieldSchema& field : schema.fields) dims.insert(field.dim);
  return dims;
}

uint64_t Bags(const ClickSchema& schema) {
  return static_cast<uint64_t>(std::ranges::count_if(
      schema.fields, [](const IdFieldSchema& field) { return field.bag_max > 1; }));
}

TEST(ClickSchema, HasTheRowsOfThePublicSets) {
  const ClickSchema kaggle = *MakeClickSchema("criteo-kaggle");
  EXPECT_EQ(kaggle.dense, 13u);
  EXPECT_EQ(kaggle.fields.size(), 26u);
  EXPECT_EQ(Rows(kaggle), 33'762'577u);
  const ClickSchema avazu = *MakeClickSchema("avazu");
  EXPECT_EQ(avazu.dense, 1u);
  EXPECT_EQ(avazu.fields.size(), 21u);
  EXPECT_EQ(Rows(avazu) + 240, 9'449'445u);  // with the hours
  EXPECT_EQ(Dims(avazu), std::set<uint32_t>{16});
}

TEST(ClickSchema, HasTheFeaturesOfTheProductSets) {
  const ClickSchema one = *MakeClickSchema("product-1");
  EXPECT_EQ(one.dense, 10u);
  EXPECT_EQ(one.fields.size(), 204u);
  EXPECT_EQ(Bags(one), 0u);
  EXPECT_EQ(*Dims(one).begin(), 8u);
  EXPECT_EQ(*Dims(one).rbegin(), 32u);
  const ClickSchema two = *MakeClickSchema("product-2");
  EXPECT_EQ(two.fields.size(), 364u);
  EXPECT_EQ(Bags(two), 30u);
  EXPECT_EQ(*Dims(two).rbegin(), 200u);
  const ClickSchema three = *MakeClickSchema("product-3");
  EXPECT_EQ(three.fields.size(), 94u);
  EXPECT_EQ(Bags(three), 10u);
  EXPECT_EQ(*Dims(three).begin(), 12u);
  EXPECT_EQ(*Dims(three).rbegin(), 128u);
  for (const ClickSchema& schema : {one, two, three}) {
    for (const IdFieldSchema& field : schema.fields) {
      EXPECT_GE(field.cardinality, 9u) << field.name;
      EXPECT_LE(field.cardinality, 10'000'000u) << field.name;
    }
  }
}

TEST(ClickSchema, IsDividedDownToThreeIds) {
  const ClickSchema schema = *MakeClickSchema("criteo-kaggle", {.divisor = 64});
  EXPECT_EQ(schema.fields[2].cardinality, 10'131'227u / 64);
  EXPECT_EQ(schema.fields[8].cardinality, 3u);
  EXPECT_EQ(schema.fields[19].cardinality, 3u);
}

TEST(ClickSchema, KeepsTheFirstFieldsOfEachKind) {
  const ClickSchema all = *MakeClickSchema("product-2");
  const ClickSchema tenth = *MakeClickSchema("product-2", {.field_divisor = 10});
  ASSERT_EQ(tenth.fields.size(), 33u + 3u);
  EXPECT_EQ(Bags(tenth), 3u);
  EXPECT_EQ(tenth.fields[32].name, all.fields[32].name);
  EXPECT_EQ(tenth.fields[33].name, all.fields[334].name);
  EXPECT_EQ(Dims(tenth), Dims(all));
  EXPECT_EQ(MakeClickSchema("avazu", {.field_divisor = 1000})->fields.size(), 1u);
  EXPECT_EQ(MakeClickSchema("product-3", {.field_divisor = 84, .copies = 4})->fields.size(), 8u);
}

TEST(ClickSchema, HasCopiesWithNamesOfTheirOwn) {
  const ClickSchema schema = *MakeClickSchema("product-2", {.divisor = 10, .copies = 3});
  EXPECT_EQ(schema.fields.size(), 3u * 364u);
  std::set<std::string> names;
  for (const IdFieldSchema& field : schema.fields) names.insert(field.name);
  EXPECT_EQ(names.size(), schema.fields.size());
  EXPECT_EQ(schema.fields[364].cardinality, schema.fields[0].cardinality);
}

TEST(ClickSchema, NamesTheSchemasWhenItHasNone) {
  const Status status = MakeClickSchema("criteo").status();
  EXPECT_TRUE(IsNotFound(status));
  EXPECT_NE(std::string(status.message()).find("product-3"), std::string::npos);
  EXPECT_TRUE(IsInvalidArgument(MakeClickSchema("avazu", {.divisor = 0}).status()));
  EXPECT_TRUE(IsInvalidArgument(MakeClickSchema("avazu", {.copies = 0}).status()));
  EXPECT_TRUE(IsInvalidArgument(MakeClickSchema("avazu", {.field_divisor = 0}).status()));
}

}  // namespace
}  // namespace embank::test::click_schema_test
