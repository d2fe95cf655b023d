/* A C99 program against the installed library: one round trip with known values. */
#include <embank.h>
#include <stdio.h>
#include <string.h>

static int differences = 0;

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  ++differences;
  fprintf(stderr, "consumer.c:%d: not so: %s (last error: %s)\n", line, what, embank_last_error());
}
#define EXPECT(what) expect((what), #what, __LINE__)

enum { DIM = 4 };

static embank_table* create(embank_store* store) {
  embank_table* table = NULL;
  embank_table_options options;
  embank_table_options_init(&options, sizeof options);
  options.dim = DIM;
  options.optimizer = EMBANK_OPT_ADAGRAD;
  options.learning_rate = 0.5f;
  options.epsilon = 1.0f;
  options.initializer = EMBANK_INIT_CONSTANT;
  options.init_a = 2.0f;
  EXPECT(embank_table_create(store, "items", &options, &table) == EMBANK_OK);
  EXPECT(embank_table_create(store, "items", &options, &table) == EMBANK_ALREADY_EXISTS);
  options.dim = 0;
  EXPECT(embank_table_create(store, "more", &options, &table) == EMBANK_INVALID_ARGUMENT);
  EXPECT(strstr(embank_last_error(), "dim") != NULL);
  return table;
}

static void look_up_and_train(embank_table* table) {
  const uint64_t keys[4] = {0, UINT64_MAX, 5, 5};
  const uint64_t trained[4] = {5, 0, 99, 5};
  const float gradients[4][DIM] = {{1, 1, 1, 1}, {3, 3, 3, 3}, {8, 8, 8, 8}, {2, 2, 2, 2}};
  float rows[4][DIM], state[4][DIM];
  uint8_t outcomes[4];
  int i, j;

  EXPECT(embank_lookup(table, keys, 4, EMBANK_MISSING_CREATE, rows, 0, outcomes) == EMBANK_OK);
  EXPECT(outcomes[0] == EMBANK_ROW_CREATED && outcomes[1] == EMBANK_ROW_CREATED);
  EXPECT(outcomes[2] == EMBANK_ROW_CREATED && outcomes[3] == EMBANK_ROW_FOUND);
  for (i = 0; i < 4; ++i)
    for (j = 0; j < DIM; ++j) EXPECT(rows[i][j] == 2.0f);

  /* Both keys get a gradient of 3: s = 9, w = 2 - 0.5 * 3 / (sqrt(9) + 1) = 1.625. */
  EXPECT(embank_apply_gradients(table, trained, 4, gradients[0], 0, outcomes) == EMBANK_OK);
  EXPECT(outcomes[0] == EMBANK_ROW_FOUND && outcomes[2] == EMBANK_ROW_ABSENT);
  EXPECT(embank_lookup(table, keys, 4, EMBANK_MISSING_SKIP, rows, 0, NULL) == EMBANK_OK);
  EXPECT(embank_get_state(table, keys, 4, state[0], 0, NULL) == EMBANK_OK);
  for (j = 0; j < DIM; ++j) {
    EXPECT(rows[0][j] == 1.625f && rows[1][j] == 2.0f && rows[3][j] == 1.625f);
    EXPECT(state[0][j] == 9.0f && state[1][j] == 0.0f);
  }
  EXPECT(embank_apply_gradients(table, trained, 4, gradients[0], 0, NULL) == EMBANK_NOT_FOUND);
}

/* Bags of narrow keys, in the middle of an array, with padding and weights; then the same rows by
 * the twin of a device. */
static void pool(void) {
  const int32_t keys[6] = {99, 99, 1, -1, 7, 2}, offsets[3] = {2, 4, 6};
  const float weights[6] = {0, 0, 3, 1, 5, 2};
  float sums[2][DIM] = {{0}}, seen[2][DIM] = {{0}};
  uint8_t outcomes[4];
  void* memory = NULL;
  embank_store* store = NULL;
  embank_store_options options;
  embank_feature feature;
  memset(&feature, 0, sizeof feature);
  embank_store_options_init(&options, sizeof options);
  options.hbm_bytes = 1 << 20;
  EXPECT(embank_store_open(&options, &store) == EMBANK_OK);
  feature.struct_size = sizeof feature;
  feature.pooling = EMBANK_POOL_MEAN;
  feature.table = create(store);
  feature.n = 4;
  feature.bags = 2;
  feature.weights = weights;
  feature.rows = sums;
  feature.key_type = feature.offset_type = EMBANK_INDEX_I32;
  feature.typed_keys = keys;
  feature.typed_offsets = offsets;
  feature.padding_key = 7;
  feature.flags = EMBANK_FEATURE_PADDING | EMBANK_FEATURE_ABSOLUTE;
  EXPECT(embank_lookup_packed(&feature, 1, EMBANK_MISSING_CREATE, outcomes) == EMBANK_OK);
  EXPECT(outcomes[1] == EMBANK_ROW_CREATED && outcomes[2] == EMBANK_ROW_ABSENT);
  EXPECT(sums[0][0] == 2.0f && sums[1][DIM - 1] == 2.0f);
  EXPECT(embank_prefetch_packed(&feature, 1) == EMBANK_OK);
  EXPECT(embank_apply_gradients_packed(&feature, 1, NULL) == EMBANK_OK);
  EXPECT(embank_lookup_packed(&feature, 1, EMBANK_MISSING_ZERO, NULL) == EMBANK_OK);
  EXPECT(embank_device_allocate(store, sizeof seen, &memory) == EMBANK_OK);
  feature.rows = memory;
  EXPECT(embank_lookup_packed_device(&feature, 1, EMBANK_MISSING_ZERO, NULL, NULL) == EMBANK_OK);
  EXPECT(embank_device_copy(store, seen, memory, sizeof seen, NULL) == EMBANK_OK);
  EXPECT(memcmp(seen, sums, sizeof seen) == 0 && seen[0][0] != 2.0f);
  EXPECT(embank_apply_gradients_packed_device(&feature, 1, outcomes, NULL) == EMBANK_OK);
  EXPECT(outcomes[0] == EMBANK_ROW_FOUND && outcomes[2] == EMBANK_ROW_ABSENT);
  EXPECT(embank_store_close(store) == EMBANK_OK);
}

/* A step that would not be finite is not made; the options that caused it are changed. */
static void change_options(embank_table* table) {
  const uint64_t key = 5;
  const float huge[DIM] = {1e30f, 0, 0, 0};
  uint8_t outcome = 0;
  embank_table_options options;
  options.struct_size = sizeof options;
  EXPECT(embank_apply_gradients(table, &key, 1, huge, 0, &outcome) == EMBANK_OK);
  EXPECT(outcome == EMBANK_ROW_NOT_FINITE);
  EXPECT(embank_apply_gradients(table, &key, 1, huge, 0, NULL) == EMBANK_OUT_OF_RANGE);
  EXPECT(embank_table_get_options(table, &options) == EMBANK_OK && options.dim == DIM);
  options.max_gradient_value = 1.0f;
  EXPECT(embank_table_set_options(table, &options, EMBANK_SET_CLIPPING) == EMBANK_OK);
  EXPECT(embank_apply_gradients(table, &key, 1, huge, 0, &outcome) == EMBANK_OK);
  EXPECT(outcome == EMBANK_ROW_FOUND);
}

static void erase_and_scan(embank_table* table) {
  const uint64_t key = 5;
  uint64_t keys[8], n = 0, seen = 0, i;
  float rows[8][DIM];
  uint8_t outcome = 0;
  embank_scan* scan = NULL;

  EXPECT(embank_erase(table, &key, 1, &outcome) == EMBANK_OK && outcome == EMBANK_ROW_FOUND);
  EXPECT(embank_contains(table, &key, 1, &outcome) == EMBANK_OK && outcome == EMBANK_ROW_ABSENT);
  EXPECT(embank_prefetch(table, &key, 1) == EMBANK_OK);
  EXPECT(embank_scan_open(table, &scan) == EMBANK_OK);
  while (embank_scan_next(scan, keys, rows, 0, 8, &n) == EMBANK_OK && n > 0) {
    for (i = 0; i < n; ++i) {
      EXPECT(keys[i] == 0 || (keys[i] == UINT64_MAX && rows[i][0] == 2.0f));
      ++seen;
    }
  }
  EXPECT(seen == 2);
  embank_scan_close(scan);
}

/* Rows go out with state and heat, are erased, and come back as they were. */
static void whole_rows(embank_table* table) {
  uint64_t keys[8], n = 0;
  float rows[8][DIM], state[8][DIM], again[DIM];
  uint32_t heat[8], told = 0;
  embank_scan* scan = NULL;
  EXPECT(embank_scan_open(table, &scan) == EMBANK_OK);
  EXPECT(embank_scan_next_full(scan, keys, rows, 0, state[0], 0, heat, 8, &n) == EMBANK_OK);
  embank_scan_close(scan);
  EXPECT(n == 2 && heat[0] == 2);
  EXPECT(embank_erase(table, keys, n, NULL) == EMBANK_OK);
  EXPECT(embank_upsert_full(table, keys, n, rows, 0, state[0], 0, heat, NULL) == EMBANK_OK);
  EXPECT(embank_get_state(table, keys, 1, again, 0, NULL) == EMBANK_OK);
  EXPECT(memcmp(again, state[0], sizeof again) == 0);
  EXPECT(embank_get_heat(table, keys, 1, &told, NULL) == EMBANK_OK && told == heat[0]);
}

static void facts(embank_store* store) {
  const uint64_t keys[2] = {0, 42};
  uint32_t owners[2] = {9, 9};
  embank_store_options options;
  embank_checkpoint_info info;
  options.struct_size = sizeof options;
  EXPECT(embank_store_get_options(store, &options) == EMBANK_OK);
  EXPECT(options.path == NULL && options.worker_threads > 0 && options.cuda_device == -1);
  info.struct_size = sizeof info;
  EXPECT(embank_get_checkpoint_info(store, &info) == EMBANK_FAILED_PRECONDITION);
  /* The numbers of docs/arithmetic.md. */
  EXPECT(embank_owner_of("users", keys, 2, 256, owners) == EMBANK_OK);
  EXPECT(owners[0] == 137 && owners[1] == 63);
}

/* A store beside the program. */
static void checkpoint(const char* program) {
  char path[4096];
  uint64_t sequence = 0;
  embank_store* store = NULL;
  embank_store_options options;
  embank_checkpoint_info info;
  snprintf(path, sizeof path, "%s.store", program);
  embank_store_options_init(&options, sizeof options);
  options.path = path;
  options.flags = EMBANK_OPEN_CREATE;
  EXPECT(embank_store_open(&options, &store) == EMBANK_OK);
  EXPECT(embank_checkpoint(store, "blob", 4, &sequence) == EMBANK_OK);
  info.struct_size = sizeof info;
  EXPECT(embank_get_checkpoint_info(store, &info) == EMBANK_OK);
  EXPECT(info.sequence == sequence && info.blob_bytes == 4 && info.rows == 0);
  EXPECT(embank_store_close(store) == EMBANK_OK);
}

static void ask(embank_store* store, embank_table* table) {
  char text[65536];
  uint64_t needed = 0;
  embank_table_info info;
  info.struct_size = sizeof info;
  EXPECT(embank_table_get_info(table, &info) == EMBANK_OK && info.rows == 2 && info.dim == DIM);
  EXPECT(embank_table_names(store, NULL, 0, &needed) == EMBANK_OK && needed == sizeof "items\n");
  EXPECT(embank_table_names(store, text, 3, &needed) == EMBANK_RESOURCE_EXHAUSTED);
  EXPECT(embank_table_names(store, text, sizeof text, &needed) == EMBANK_OK);
  EXPECT(strcmp(text, "items\n") == 0);
  EXPECT(embank_metrics(store, text, sizeof text, &needed) == EMBANK_OK);
  EXPECT(strlen(text) + 1 == needed && strstr(text, "embank_") != NULL);
  EXPECT(embank_memory_report(store, text, sizeof text, &needed) == EMBANK_OK);
  EXPECT(strstr(text, "\"dram\"") != NULL);
  EXPECT(embank_estimate(NULL, NULL, NULL, 0, text, sizeof text, &needed) == EMBANK_OK);
  EXPECT(strstr(text, "\"dram_bytes\"") != NULL);
}

int main(int argc, char** argv) {
  embank_store* store = NULL;
  embank_table* table;
  float row[DIM];
  const uint64_t key = 1;
  EXPECT(strcmp(embank_version(), "0.1.0") == 0);
  EXPECT(strcmp(embank_status_name(EMBANK_DATA_LOSS), "DATA_LOSS") == 0);
  EXPECT(EMBANK_ROW_UNAVAILABLE == 7);
  EXPECT(embank_store_open(NULL, &store) == EMBANK_OK);
  table = create(store);
  look_up_and_train(table);
  pool();
  change_options(table);
  erase_and_scan(table);
  whole_rows(table);
  facts(store);
  if (argc > 0) checkpoint(argv[0]);
  ask(store, table);
  EXPECT(embank_table_drop(store, "items") == EMBANK_OK);
  EXPECT(embank_lookup(table, &key, 1, EMBANK_MISSING_ZERO, row, 0, NULL) ==
         EMBANK_FAILED_PRECONDITION);
  EXPECT(embank_store_close(store) == EMBANK_OK);
  printf("C: %d differences\n", differences);
  return differences != 0;
}
