// Features of packed calls in every form in which a caller can pass them.
#ifndef EMBANK_TESTS_SUPPORT_PACKED_FEATURE_H_
#define EMBANK_TESTS_SUPPORT_PACKED_FEATURE_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/oracle_packed.h"
#include "tests/support/random.h"

namespace embank::test {

// The integers of an array of a type (EMBANK_INDEX_*), which has `before` others before them and
// one behind them.
inline std::vector<uint8_t> ArrayOf(const std::vector<uint64_t>& numbers, int32_t type,
                                    uint64_t before) {
  const bool is_narrow = type == EMBANK_INDEX_U32 || type == EMBANK_INDEX_I32;
  const uint64_t bytes = is_narrow ? 4 : 8;
  std::vector<uint8_t> array((before + numbers.size() + 1) * bytes, 0xA5);
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    std::memcpy(array.data() + (before + i) * bytes, &numbers[i], bytes);  // little endian
  }
  return array;
}

// A feature without pooling, of 64-bit keys.
inline embank_feature PlainFeature(embank_table* table, const std::vector<uint64_t>& keys,
                                   void* rows, uint64_t row_stride) {
  embank_feature feature = {};
  feature.struct_size = sizeof feature;
  feature.table = table;
  feature.keys = keys.data();
  feature.n = keys.size();
  feature.rows = rows;
  feature.row_stride = row_stride;
  return feature;
}

// How a feature is passed, and its arrays. The struct that it makes borrows from it.
struct PassedFeature {
  explicit PassedFeature(const oracle::Feature& feature) : feature_(feature) { Fill(); }
  // Draws types that hold the feature's keys, and the place of the first.
  PassedFeature(const oracle::Feature& feature, Random* random) : feature_(feature) {
    const auto fits = [&](int32_t type) {
      for (const uint64_t key : feature.keys) {
        if (type == EMBANK_INDEX_U32 && key > std::numeric_limits<uint32_t>::max()) return false;
        const auto extended = static_cast<uint64_t>(int64_t{static_cast<int32_t>(key)});
        if (type == EMBANK_INDEX_I32 && extended != key) return false;
      }
      return true;
    };
    do key_type_ = static_cast<int32_t>(random->Below(4));
    while (!fits(key_type_));
    if (feature.pooling != EMBANK_POOL_NONE) {
      offset_type_ = static_cast<int32_t>(random->Below(4));
      is_absolute_ = random->OneIn(2);
      if (is_absolute_) first_ = random->Below(20);
    }
    Fill();
  }

  embank_feature Of(embank_table* table, void* rows, uint64_t row_stride = 0) const {
    embank_feature passed = {};
    passed.struct_size = sizeof passed;
    passed.pooling = feature_.pooling;
    passed.table = table;
    passed.n = feature_.keys.size();
    passed.bags = feature_.bags();
    passed.weights = weights_.empty() ? nullptr : weights_.data();
    passed.rows = rows;
    passed.row_stride = row_stride;
    passed.key_type = key_type_;
    passed.offset_type = offset_type_;
    if (key_type_ == EMBANK_INDEX_U64) {
      passed.keys = reinterpret_cast<const uint64_t*>(keys_.data());
    } else {
      passed.typed_keys = keys_.data();
    }
    const bool has_offsets = feature_.pooling != EMBANK_POOL_NONE;
    if (has_offsets && offset_type_ == EMBANK_INDEX_U64) {
      passed.offsets = reinterpret_cast<const uint64_t*>(offsets_.data());
    } else if (has_offsets) {
      passed.typed_offsets = offsets_.data();
    }
    passed.padding_key = feature_.padding.value_or(0);
    if (feature_.padding.has_value()) passed.flags |= EMBANK_FEATURE_PADDING;
    if (is_absolute_) passed.flags |= EMBANK_FEATURE_ABSOLUTE;
    return passed;
  }

 private:
  void Fill() {
    keys_ = ArrayOf(feature_.keys, key_type_, first_);
    std::vector<uint64_t> offsets = feature_.offsets;
    for (uint64_t& offset : offsets) offset += first_;
    offsets_ = ArrayOf(offsets, offset_type_, 0);
    if (feature_.weights.empty()) return;
    // Weights that are not the feature's would be refused.
    weights_.assign(first_, std::numeric_limits<float>::quiet_NaN());
    weights_.insert(weights_.end(), feature_.weights.begin(), feature_.weights.end());
    weights_.push_back(std::numeric_limits<float>::quiet_NaN());
  }

  const oracle::Feature& feature_;
  int32_t key_type_ = EMBANK_INDEX_U64;
  int32_t offset_type_ = EMBANK_INDEX_U64;
  bool is_absolute_ = false;
  uint64_t first_ = 0;
  std::vector<uint8_t> keys_;
  std::vector<uint8_t> offsets_;
  std::vector<float> weights_;
};

// A feature with any pooling. Its keys are `key(random)`, and one of them may be padding.
template <typename KeyOf>
oracle::Feature RandomFeature(Random* random, KeyOf key) {
  oracle::Feature feature;
  feature.pooling = static_cast<int32_t>(random->Below(4));
  const uint64_t bags = random->OneIn(8) ? random->Below(600) : random->Below(20);
  const bool has_single_keys = random->OneIn(4);
  if (feature.pooling != EMBANK_POOL_NONE) feature.offsets.push_back(0);
  for (uint64_t bag = 0; bag < bags; ++bag) {
    const uint64_t drawn = random->OneIn(50) ? random->Below(200) : random->Below(6);
    const uint64_t keys = has_single_keys ? 1 : drawn;
    for (uint64_t i = 0; i < keys; ++i) feature.keys.push_back(key(random));
    if (feature.pooling != EMBANK_POOL_NONE) feature.offsets.push_back(feature.keys.size());
  }
  const bool may_have_weights =
      feature.pooling == EMBANK_POOL_SUM || feature.pooling == EMBANK_POOL_MEAN;
  if (may_have_weights && random->OneIn(2)) {
    // Weights of 1 and -1, too: sums of 0.
    const bool are_units = random->OneIn(2);
    for (size_t i = 0; i < feature.keys.size(); ++i) {
      const float weight = random->Signed();
      feature.weights.push_back(are_units ? std::copysign(1.0f, weight) : weight);
    }
  }
  if (random->OneIn(2) && !feature.keys.empty()) {
    feature.padding = feature.keys[random->Below(feature.keys.size())];
    // A third of all keys, or all of them: bags of nothing else.
    const uint64_t part = random->OneIn(6) ? 1 : 3;
    for (uint64_t& each : feature.keys) {
      if (random->OneIn(part)) each = *feature.padding;
    }
  }
  return feature;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_PACKED_FEATURE_H_
