#include "tests/bindings/kept_checkpoint.h"

#include <utility>

#include "tests/support/pmem_tier.h"
#include "tests/support/small_log.h"

namespace embank::test {
namespace {

std::string BlobDifference(embank_store* store, const KeptCheckpoint& kept) {
  uint64_t bytes = 0;
  const embank_status status = embank_checkpoint_blob(store, nullptr, 0, &bytes);
  if (!kept.exists) return status == EMBANK_NOT_FOUND ? "" : "a blob without a checkpoint";
  std::vector<uint8_t> blob(bytes);
  if (status != EMBANK_OK ||
      embank_checkpoint_blob(store, blob.data(), blob.size(), &bytes) != EMBANK_OK) {
    return std::string("blob: ") + embank_last_error();
  }
  return blob == kept.blob ? "" : "another blob";
}

std::string NamesDifference(embank_store* store, const KeptCheckpoint& kept) {
  uint64_t bytes = 0;
  uint64_t expected_bytes = 1;
  for (const oracle::Table& table : kept.oracles) expected_bytes += table.name().size() + 1;
  const embank_status status = embank_table_names(store, nullptr, 0, &bytes);
  return status == EMBANK_OK && bytes == expected_bytes ? "" : "other tables";
}

std::string DifferenceByKey(embank_table* table, const oracle::Table& expected) {
  std::vector<uint64_t> keys;
  for (const auto& [key, row] : expected.rows()) keys.push_back(key);
  if (RowCount(table) != keys.size()) return "another number of rows";
  if (keys.empty()) return "";
  const uint64_t floats = expected.state_floats();
  std::vector<uint8_t> values(keys.size() * expected.row_bytes());
  std::vector<float> states(keys.size() * floats);
  if (embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_SKIP, values.data(), 0,
                    nullptr) != EMBANK_OK ||
      (floats > 0 &&
       embank_get_state(table, keys.data(), keys.size(), states.data(), 0, nullptr) != EMBANK_OK)) {
    return embank_last_error();
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const oracle::Row& row = *expected.Find(keys[i]);
    const auto* const state = reinterpret_cast<const uint8_t*>(states.data() + i * floats);
    if (!SameValues(row.values.data(), values.data() + i * expected.row_bytes(),
                    expected.options().dim, expected.options().value_type) ||
        !SameValues(reinterpret_cast<const uint8_t*>(row.state.data()), state, floats,
                    EMBANK_F32)) {
      return "key " + std::to_string(keys[i]) + " has another row";
    }
  }
  return "";
}

}  // namespace

RowLogOptions CrashedLog() {
  RowLogOptions log = SmallLog();
  log.segment_bytes = 8 * kBlockBytes;
  log.buffer_bytes = 2 * kBlockBytes;
  log.read_bytes = 512 * kBlockBytes;
  return log;
}

Status OpenOnDisk(embank_store_options options, StoreEnvironment environment, StorePtr* store) {
  options.path = "store";
  if ((options.flags & EMBANK_OPEN_READ_ONLY) == 0) options.flags |= EMBANK_OPEN_CREATE;
  if (WithPmem()) {
    options.pmem_path = kPmemPath;
    options.pmem_bytes = kPmemBytes;
    AddPmem(&environment);
  }
  embank_store* opened = nullptr;
  Status status = OpenStoreIn(&options, std::move(environment), &opened);
  store->reset(opened);
  return status;
}

std::string DifferenceFrom(embank_store* store, const KeptCheckpoint& kept, FindRows how) {
  std::string wrong = BlobDifference(store, kept);
  if (wrong.empty()) wrong = NamesDifference(store, kept);
  for (const oracle::Table& expected : kept.oracles) {
    if (!wrong.empty()) break;
    embank_table* table = nullptr;
    if (embank_table_open(store, expected.name().c_str(), &table) != EMBANK_OK) {
      return std::string("open a table: ") + embank_last_error();
    }
    wrong = how == FindRows::kByScan ? DifferenceButHeat(table, expected)
                                     : DifferenceByKey(table, expected);
    if (!wrong.empty()) wrong = "table " + expected.name() + ": " + wrong;
  }
  return wrong;
}

}  // namespace embank::test
