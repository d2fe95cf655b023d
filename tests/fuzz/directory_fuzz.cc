// The files of a store, changed from outside: it opens with the contents of a checkpoint, or names
// the reason. A row is as it was, or its loss is reported.
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/repair.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/sealed_bytes.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/simulated_executor.h"
#include "tests/support/small_log.h"
#include "tests/support/store_world.h"

namespace embank::test {
namespace {

constexpr uint32_t kDim = 64;
constexpr Key kKeys = 1200;
constexpr uint64_t kSeed = 4;

// An open store, and the objects that must outlive it.
struct Opened {
  FailingMemory memory;
  ManualClock clock{1000};
  std::unique_ptr<Store> store;
};

Status Open(SimulatedDisk* disk, bool previous, Opened* opened) {
  StoreOptions options;
  options.dram_bytes = uint64_t{16} << 20;
  options.seed = kSeed;
  options.path = "log";
  options.previous = previous;
  auto store = Store::Open(options, {.memory = &opened->memory,
                                     .clock = &opened->clock,
                                     .executor = std::make_unique<SimulatedExecutor>(kSeed),
                                     .files = disk,
                                     .log = SmallLog()});
  if (store.ok()) opened->store = *std::move(store);
  return store.status();
}

std::vector<float> RowsOfAll(float factor) {
  std::vector<float> rows;
  for (Key key = 0; key < kKeys; ++key) {
    rows.insert(rows.end(), kDim, factor * static_cast<float>(key));
  }
  return rows;
}

std::vector<Key> AllKeys() {
  std::vector<Key> keys(kKeys);
  for (Key key = 0; key < kKeys; ++key) keys[key] = key;
  return keys;
}

// Two checkpoints: all rows times one, and times two; and the heat of rows that do not change.
std::unique_ptr<SimulatedDisk> MakeDisk() {
  auto disk = std::make_unique<SimulatedDisk>();
  Opened opened;
  EMBANK_CHECK(Open(disk.get(), false, &opened).ok());
  Table* const table = *opened.store->CreateTable("t", OptionsOf(kDim));
  Table* const still = *opened.store->CreateTable("still", OptionsOf(kDim));
  std::vector<float> found = RowsOfAll(3.0f);
  EMBANK_CHECK(Upsert(still, AllKeys(), RowsOf(found, kDim), {}).ok());
  for (const float factor : {1.0f, 2.0f}) {
    const std::vector<float> rows = RowsOfAll(factor);
    EMBANK_CHECK(Upsert(table, AllKeys(), RowsOf(rows, kDim), {}).ok());
    EMBANK_CHECK(opened.store->checkpoints()->Make({}).ok());
    EMBANK_CHECK(Lookup(still, AllKeys(), MissingRule::kSkip, RowsIn(&found, kDim), {}).ok());
  }
  opened.store.reset();
  disk->ClearHistory();
  return disk;
}

// Whether the checksum that ends the file was made to stand again: then anything may be there.
bool Change(FuzzInput* input, SimulatedDisk* disk) {
  std::vector<std::string> files = disk->Files();
  // There is nothing in it to be changed.
  std::erase_if(files, [](const std::string& file) { return file.find("COMPLETED") != file.npos; });
  const std::string& path = files[input->Take<uint8_t>() % files.size()];
  std::vector<std::byte> contents = disk->Contents(path);
  const auto how = input->Take<uint8_t>();
  const auto offset = input->Take<uint32_t>();
  if (contents.empty()) return false;
  const size_t at = offset % contents.size();
  switch (how % 5) {
    case 0:
      contents[at] ^= static_cast<std::byte>(input->Take<uint8_t>() | 1u);
      break;
    case 1:
      disk->Truncate(path, at);
      return false;
    case 2: {  // a block of zeros
      const size_t begin = at / kBlockBytes * kBlockBytes;
      for (size_t i = begin; i < std::min(contents.size(), begin + kBlockBytes); ++i) {
        contents[i] = std::byte{0};
      }
      break;
    }
    case 3: {  // a block that was meant for another place
      const size_t blocks = contents.size() / kBlockBytes;
      if (blocks == 0) return false;
      const size_t from = input->Take<uint32_t>() % blocks * kBlockBytes;
      const size_t to = at / kBlockBytes % blocks * kBlockBytes;
      std::copy_n(contents.begin() + static_cast<ptrdiff_t>(from), kBlockBytes,
                  contents.begin() + static_cast<ptrdiff_t>(to));
      break;
    }
    default:
      if (contents.size() < 64) return false;
      contents[at] ^= static_cast<std::byte>(input->Take<uint8_t>() | 1u);
      SealAgain(contents);
      disk->Corrupt(path, 0, contents);
      return true;
  }
  disk->Corrupt(path, 0, contents);
  return false;
}

void CheckRows(Store* store, bool previous, bool is_single) {
  const StatusOr<Table*> table = store->catalog().Open("t");
  EMBANK_CHECK(table.ok());
  std::vector<float> found(kKeys * kDim, -1.0f);
  std::vector<uint8_t> outcomes(kKeys);
  const Status status =
      Lookup(*table, AllKeys(), MissingRule::kSkip, RowsIn(&found, kDim), outcomes);
  EMBANK_CHECK(status.ok() || IsDataLoss(status) || IsUnavailable(status) || IsNotFound(status));
  const float factor = previous ? 1.0f : 2.0f;
  for (Key key = 0; key < kKeys; ++key) {
    // Whose a record was is told twice: by itself and by the footer.
    const auto outcome = static_cast<Outcome>(outcomes[key]);
    EMBANK_CHECK(outcome != Outcome::kAbsent || !is_single);
    if (outcome != Outcome::kFound) continue;
    for (uint32_t i = 0; i < kDim; ++i) {
      EMBANK_CHECK(found[key * kDim + i] == factor * static_cast<float>(key));
    }
  }
}

}  // namespace

void FuzzOne(std::span<const std::byte> bytes) {
  static const std::unique_ptr<SimulatedDisk> base = MakeDisk();
  const std::unique_ptr<SimulatedDisk> disk =
      base->AfterCrash(base->changes(), Persistence::kAll, 0);
  FuzzInput input(bytes);
  const bool previous = input.Take<uint8_t>() % 4 == 0;
  bool anything = false;
  int changes = 0;
  for (; changes < 8 && !input.empty(); ++changes) anything |= Change(&input, disk.get());
  const auto repaired =
      RepairStore(disk.get(), {.directory = "log", .target = "saved", .previous = previous},
                  [](uint64_t, uint64_t) { return true; });
  EMBANK_CHECK(repaired.ok() || !repaired.status().message().empty());
  Opened opened;
  const Status status = Open(disk.get(), previous, &opened);
  EMBANK_CHECK(status.ok() || !status.message().empty());
  if (!status.ok()) {
    EMBANK_CHECK(changes > 0);
    return;
  }
  if (!anything) CheckRows(opened.store.get(), previous, changes <= 1);
}

}  // namespace embank::test
