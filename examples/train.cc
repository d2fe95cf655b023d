// A training loop that can be stopped at any moment and goes on where its last checkpoint was.
//
//   train DIR         trains to the end; called again, it goes on at the last checkpoint
//   train DIR STOP    is interrupted after batch STOP, without a checkpoint
//
// The rows take more memory than the store may use: the others are on disk, and a second thread
// brings those of the next batch up while this one is trained.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <embank.hpp>
#include <future>
#include <string>
#include <vector>

namespace api = embank::api;

constexpr std::uint64_t kDim = 64;
constexpr std::uint64_t kBatch = 2048;
constexpr std::uint64_t kBatches = 100;
constexpr std::uint64_t kBatchesPerCheckpoint = 20;

static std::uint64_t Mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The data set: batch b asks for these keys, small ones more often.
static std::vector<std::uint64_t> KeysOf(std::uint64_t batch) {
  std::vector<std::uint64_t> keys(kBatch);
  for (std::uint64_t i = 0; i < kBatch; ++i) {
    const std::uint64_t random = Mix(batch * kBatch + i) >> 40;
    keys[i] = (random * random) >> 32;
  }
  return keys;
}

// The model: each value of a row should become this.
static float Target(std::uint64_t key, std::uint64_t i) {
  return static_cast<float>((key * 7 + i * 13) % 64) / 64.0f - 0.5f;
}

// Returns the loss: the mean square of the errors.
static double Train(api::Table table, std::uint64_t batch) {
  const std::vector<std::uint64_t> keys = KeysOf(batch);
  std::vector<float> rows(kBatch * kDim), gradients(kBatch * kDim);
  table.Lookup(keys, rows, EMBANK_MISSING_CREATE).or_throw();
  double sum = 0;
  for (std::uint64_t p = 0; p < kBatch * kDim; ++p) {
    gradients[p] = rows[p] - Target(keys[p / kDim], p % kDim);
    sum += static_cast<double>(gradients[p]) * gradients[p];
  }
  table.ApplyGradients(keys, gradients).or_throw();
  return sum / (kBatch * kDim);
}

static api::Store OpenStore(const char* directory) {
  api::StoreOptions options;
  options.path = directory;
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = 16u << 20;
  options.seed = 1;
  return api::Store::Open(options).value_or_throw();
}

// The table of the checkpoint, or, in a new store, a new one.
static api::Table OpenTable(api::Store& store) {
  auto table = store.OpenTable("items");
  if (table.status().code != EMBANK_NOT_FOUND) return std::move(table).value_or_throw();
  api::TableOptions options;
  options.dim = kDim;
  options.optimizer = EMBANK_OPT_ADAGRAD;
  options.learning_rate = 0.1f;
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_a = -0.5f;
  options.init_b = 0.5f;
  return store.CreateTable("items", options).value_or_throw();
}

// How many batches the checkpoint has: its blob. It belongs to the rows, whatever happens.
static std::uint64_t PositionOf(api::Store& store) {
  auto blob = store.CheckpointBlob();
  if (blob.status().code == EMBANK_NOT_FOUND) return 0;  // there is no checkpoint yet
  const std::string bytes = std::move(blob).value_or_throw();
  std::uint64_t batches = 0;
  std::memcpy(&batches, bytes.data(), std::min(bytes.size(), sizeof batches));
  return batches;
}

static void PrintRows(api::Table table) {
  const embank_table_info info = table.Info().value_or_throw();
  std::printf("in memory %" PRIu64 " rows, on disk alone %" PRIu64 "\n", info.rows_dram,
              info.rows_ssd);
  api::Scan scan = table.OpenScan().value_or_throw();
  std::vector<std::uint64_t> keys(kBatch);
  std::vector<float> rows(kBatch * kDim);
  std::uint64_t total = 0, checksum = 0;
  while (const std::uint64_t n = scan.Next(keys, rows).value_or_throw()) {
    for (std::uint64_t r = 0; r < n; ++r) {
      std::uint64_t hash = keys[r];
      for (std::uint64_t i = 0; i < kDim; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &rows[r * kDim + i], sizeof bits);
        hash = Mix(hash ^ bits);
      }
      checksum += hash;  // a scan has no order, and a sum needs none
    }
    total += n;
  }
  std::printf("rows %" PRIu64 ", checksum %016" PRIx64 "\n", total, checksum);
}

static void Run(const char* directory, std::uint64_t end) {
  api::Store store = OpenStore(directory);
  api::Table table = OpenTable(store);
  std::uint64_t batch = PositionOf(store);
  std::printf("resume at batch %" PRIu64 " of %" PRIu64 "\n", batch, kBatches);
  while (batch < end) {
    // A prefetch is a hint: rows that it does not bring are read later.
    auto prefetch = std::async(std::launch::async, [next = table, batch]() mutable {
      next.Prefetch(KeysOf(batch + 1)).or_throw();
    });
    const double loss = Train(table, batch);
    prefetch.get();
    ++batch;
    if (batch % kBatchesPerCheckpoint != 0) continue;
    char blob[sizeof batch];
    std::memcpy(blob, &batch, sizeof batch);
    const std::uint64_t sequence = store.Checkpoint({blob, sizeof blob}).value_or_throw();
    std::printf("batch %" PRIu64 ": loss %.4f, checkpoint %" PRIu64 "\n", batch, loss, sequence);
  }
  PrintRows(table);
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s DIR [STOP]\n", argv[0]);
    return 2;
  }
  try {
    Run(argv[1], argc == 3 ? std::stoull(argv[2]) : kBatches);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
