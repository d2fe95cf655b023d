/* A training loop that can be stopped at any moment and goes on where its last checkpoint was.
 *
 *   train DIR         trains to the end; called again, it goes on at the last checkpoint
 *   train DIR STOP    is interrupted after batch STOP, without a checkpoint
 *
 * The rows take more memory than the store may use: the others are on disk, and a second thread
 * brings those of the next batch up while this one is trained.
 */
#include <embank.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 64, BATCH = 2048, BATCHES = 100, BATCHES_PER_CHECKPOINT = 20 };

static void check(embank_status status, const char* what) {
  if (status == EMBANK_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, embank_status_name(status), embank_last_error());
  exit(1);
}

static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* The data set: batch b asks for these keys, small ones more often. */
static void keys_of(uint64_t batch, uint64_t* keys) {
  uint64_t i, random;
  for (i = 0; i < BATCH; ++i) {
    random = mix(batch * BATCH + i) >> 40;
    keys[i] = (random * random) >> 32;
  }
}

/* The model: each value of a row should become this. */
static float target(uint64_t key, uint64_t i) {
  return (float)((key * 7 + i * 13) % 64) / 64.0f - 0.5f;
}

typedef struct {
  embank_table* table;
  uint64_t batch;
} coming;

/* On a thread of its own. A prefetch is a hint: rows that it does not bring are read later. */
static void* prefetch(void* argument) {
  const coming* next = argument;
  uint64_t keys[BATCH];
  keys_of(next->batch, keys);
  check(embank_prefetch(next->table, keys, BATCH), "prefetch");
  return NULL;
}

/* Returns the loss: the mean square of the errors. */
static double train(embank_table* table, uint64_t batch) {
  static uint64_t keys[BATCH];
  static float rows[BATCH][DIM], gradients[BATCH][DIM];
  double sum = 0;
  int p, i;
  keys_of(batch, keys);
  check(embank_lookup(table, keys, BATCH, EMBANK_MISSING_CREATE, rows, 0, NULL), "lookup");
  for (p = 0; p < BATCH; ++p) {
    for (i = 0; i < DIM; ++i) {
      gradients[p][i] = rows[p][i] - target(keys[p], (uint64_t)i);
      sum += (double)gradients[p][i] * gradients[p][i];
    }
  }
  check(embank_apply_gradients(table, keys, BATCH, gradients[0], 0, NULL), "apply_gradients");
  return sum / (BATCH * DIM);
}

static embank_store* open_store(const char* directory) {
  embank_store_options options;
  embank_store* store = NULL;
  embank_store_options_init(&options, sizeof options);
  options.path = directory;
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = 16u << 20;
  options.seed = 1;
  check(embank_store_open(&options, &store), "store_open");
  return store;
}

/* The table of the checkpoint, or, in a new store, a new one. */
static embank_table* open_table(embank_store* store) {
  embank_table_options options;
  embank_table* table = NULL;
  const embank_status status = embank_table_open(store, "items", &table);
  if (status != EMBANK_NOT_FOUND) {
    check(status, "table_open");
    return table;
  }
  embank_table_options_init(&options, sizeof options);
  options.dim = DIM;
  options.optimizer = EMBANK_OPT_ADAGRAD;
  options.learning_rate = 0.1f;
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_a = -0.5f;
  options.init_b = 0.5f;
  check(embank_table_create(store, "items", &options, &table), "table_create");
  return table;
}

/* How many batches the checkpoint has: its blob. It belongs to the rows, whatever happens. */
static uint64_t position_of(embank_store* store) {
  uint64_t batches = 0, needed = 0;
  const embank_status status = embank_checkpoint_blob(store, &batches, sizeof batches, &needed);
  if (status == EMBANK_NOT_FOUND) return 0; /* there is no checkpoint yet */
  check(status, "checkpoint_blob");
  return batches;
}

static void print_rows(embank_table* table) {
  static uint64_t keys[BATCH];
  static float rows[BATCH][DIM];
  uint64_t n = 0, total = 0, checksum = 0, hash, r, i;
  uint32_t bits;
  embank_scan* scan = NULL;
  embank_table_info info;
  info.struct_size = sizeof info;
  check(embank_table_get_info(table, &info), "table_get_info");
  printf("in memory %llu rows, on disk alone %llu\n", (unsigned long long)info.rows_dram,
         (unsigned long long)info.rows_ssd);
  check(embank_scan_open(table, &scan), "scan_open");
  do {
    check(embank_scan_next(scan, keys, rows, 0, BATCH, &n), "scan_next");
    for (r = 0; r < n; ++r) {
      hash = keys[r];
      for (i = 0; i < DIM; ++i) {
        memcpy(&bits, &rows[r][i], sizeof bits);
        hash = mix(hash ^ bits);
      }
      checksum += hash; /* a scan has no order, and a sum needs none */
    }
    total += n;
  } while (n > 0);
  embank_scan_close(scan);
  printf("rows %llu, checksum %016llx\n", (unsigned long long)total, (unsigned long long)checksum);
}

int main(int argc, char** argv) {
  embank_store* store;
  coming next;
  pthread_t thread;
  uint64_t batch, end, sequence = 0;
  double loss;
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: %s DIR [STOP]\n", argv[0]);
    return 2;
  }
  end = argc == 3 ? strtoull(argv[2], NULL, 10) : BATCHES;
  store = open_store(argv[1]);
  next.table = open_table(store);
  batch = position_of(store);
  printf("resume at batch %llu of %d\n", (unsigned long long)batch, BATCHES);
  while (batch < end) {
    next.batch = batch + 1;
    if (pthread_create(&thread, NULL, prefetch, &next) != 0) return 1;
    loss = train(next.table, batch);
    pthread_join(thread, NULL);
    ++batch;
    if (batch % BATCHES_PER_CHECKPOINT != 0) continue;
    check(embank_checkpoint(store, &batch, sizeof batch, &sequence), "checkpoint");
    printf("batch %llu: loss %.4f, checkpoint %llu\n", (unsigned long long)batch, loss,
           (unsigned long long)sequence);
  }
  print_rows(next.table);
  check(embank_store_close(store), "store_close");
  return 0;
}
