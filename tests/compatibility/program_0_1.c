/* A program of 0.1.0 as it was compiled before the header grew: it has the structs of that header,
 * with its sizes, in arrays too. It makes the calls of that time that train, look up, scan and
 * save, and compares what it is told with what that version answered.
 *
 * It is built twice: from this source with today's header, and, for x86-64, as
 * program_0_1.x86_64.o, which was compiled once with the header of commit d538c8d, and never again:
 *
 *   git show d538c8d:bindings/c/embank.h > OLD/bindings/c/embank.h
 *   gcc -std=c99 -O1 -fPIE -fno-stack-protector -fno-asynchronous-unwind-tables -g0 -IOLD \
 *     -DPROGRAM=RunObjectOf01 -c program_0_1.c -o program_0_1.x86_64.o
 *   strip --strip-unneeded --remove-section=.comment program_0_1.x86_64.o
 *
 * Returns 0, or the line of the first thing that is not as it was. */
#include "bindings/c/embank.h"

#include <string.h>

/* sizes receives the bytes of the structs: options of a store and a table, feature, info. */
int PROGRAM(const char* directory, uint32_t sizes[4]);

#define EXPECT(what)              \
  do {                            \
    if (!(what)) return __LINE__; \
  } while (0)

enum { DIM = 4, KEYS = 12 };

/* Behind an array is memory that is not the library's to look at. */
typedef struct {
  embank_table_options tables[3];
  unsigned char behind[64];
} Tables;
typedef struct {
  embank_feature features[3];
  unsigned char behind[64];
} Features;

static int FillTables(Tables* all) {
  int i;
  memset(all, 0xEE, sizeof *all);
  for (i = 0; i < 3; ++i) {
    embank_table_options_init(&all->tables[i], sizeof all->tables[i]);
    EXPECT(all->tables[i].struct_size == sizeof all->tables[i]);
    EXPECT(all->tables[i].dim == 0 && all->tables[i].on_full == EMBANK_FULL_REFUSE);
    EXPECT(all->tables[i].learning_rate == 0.01f && all->tables[i].eviction == EMBANK_EVICT_CLOCK);
    all->tables[i].dim = (uint32_t)(DIM << i);
    all->tables[i].optimizer = EMBANK_OPT_ADAGRAD;
    all->tables[i].learning_rate = 0.5f;
    all->tables[i].epsilon = 1.0f;
    all->tables[i].initializer = EMBANK_INIT_CONSTANT;
    all->tables[i].init_a = (float)(i + 1);
  }
  for (i = 0; i < 64; ++i) EXPECT(all->behind[i] == 0xEE);
  return 0;
}

static int Estimates(void) {
  Tables all;
  uint64_t rows[3] = {1000, 2000, 3000}, needed = 0;
  char three[512], one[512];
  const int filled = FillTables(&all);
  EXPECT(filled == 0);
  EXPECT(embank_estimate(NULL, all.tables, rows, 3, three, sizeof three, &needed) == EMBANK_OK);
  EXPECT(strlen(three) + 1 == needed && strstr(three, "\"rows_in_dram\": 6000") != NULL);
  EXPECT(embank_estimate(NULL, &all.tables[2], &rows[2], 1, one, sizeof one, &needed) == EMBANK_OK);
  EXPECT(strstr(one, "\"rows_in_dram\": 3000") != NULL);
  all.tables[2].dim = 4097;
  EXPECT(embank_estimate(NULL, all.tables, rows, 3, one, sizeof one, &needed) ==
         EMBANK_INVALID_ARGUMENT);
  EXPECT(strstr(embank_last_error(), "tables[2]: dim is 4097") != NULL);
  return 0;
}

static int Open(const char* directory, uint32_t flags, embank_store** store) {
  embank_store_options options;
  memset(&options, 0xEE, sizeof options);
  embank_store_options_init(&options, sizeof options);
  EXPECT(options.struct_size == sizeof options && options.cuda_device == -1);
  EXPECT(options.path == NULL && options.reserved == 0);
  options.path = directory;
  options.flags = flags;
  options.dram_bytes = 64u << 20;
  options.worker_threads = 1;
  options.seed = 7;
  EXPECT(embank_store_open(&options, store) == EMBANK_OK);
  return 0;
}

/* Three bags of two keys in each of three tables: w begins at 1, 2 and 3. */
static int PackedCalls(embank_table* const tables[3], float first, int with_state) {
  static const uint64_t keys[6] = {1, 2, 3, 4, 5, UINT64_MAX}, offsets[4] = {0, 2, 4, 6};
  float rows[3][3 * (DIM << 2)], state[DIM << 2];
  uint8_t outcomes[18];
  Features all;
  int i, j;
  memset(&all, 0xEE, sizeof all);
  memset(all.features, 0, sizeof all.features);
  for (i = 0; i < 3; ++i) {
    all.features[i].struct_size = sizeof all.features[i];
    all.features[i].pooling = EMBANK_POOL_SUM;
    all.features[i].table = tables[i];
    all.features[i].keys = keys;
    all.features[i].n = 6;
    all.features[i].offsets = offsets;
    all.features[i].bags = 3;
    all.features[i].rows = rows[i];
  }
  EXPECT(embank_prefetch_packed(all.features, 3) == EMBANK_OK);
  EXPECT(embank_lookup_packed(all.features, 3, EMBANK_MISSING_CREATE, outcomes) == EMBANK_OK);
  for (i = 0; i < 3; ++i)
    for (j = 0; j < 3 * (DIM << i); ++j) {
      EXPECT(rows[i][j] == 2.0f * ((float)(i + 1) - first));
      rows[i][j] = 3.0f;
    }
  if (with_state) return 0;
  for (i = 0; i < 18; ++i) EXPECT(outcomes[i] == EMBANK_ROW_CREATED);
  /* s = 9, w -= 0.5 * 3 / (3 + 1) = 0.375. */
  EXPECT(embank_apply_gradients_packed(all.features, 3, outcomes) == EMBANK_OK);
  for (i = 0; i < 18; ++i) EXPECT(outcomes[i] == EMBANK_ROW_FOUND);
  EXPECT(embank_get_state(tables[2], keys, 1, state, 0, outcomes) == EMBANK_OK);
  EXPECT(state[0] == 9.0f && state[(DIM << 2) - 1] == 9.0f);
  all.features[2].struct_size = 64;
  EXPECT(embank_lookup_packed(all.features, 3, EMBANK_MISSING_ZERO, NULL) ==
         EMBANK_INVALID_ARGUMENT);
  EXPECT(strstr(embank_last_error(), "features[2]") != NULL);
  return 0;
}

static int PlainCalls(embank_table* table) {
  uint64_t keys[KEYS], scanned[KEYS], n = 0, seen = 0;
  float rows[KEYS * DIM], state[KEYS * DIM];
  uint8_t outcomes[KEYS];
  uint32_t heat[KEYS];
  embank_scan* scan = NULL;
  int i;
  for (i = 0; i < KEYS; ++i) keys[i] = (uint64_t)i * 1000;
  for (i = 0; i < KEYS * DIM; ++i) rows[i] = (float)i;
  EXPECT(embank_upsert(table, keys, KEYS, rows, 0, outcomes) == EMBANK_OK);
  EXPECT(outcomes[0] == EMBANK_ROW_CREATED && outcomes[KEYS - 1] == EMBANK_ROW_CREATED);
  EXPECT(embank_lookup(table, keys, KEYS, EMBANK_MISSING_SKIP, rows, 0, outcomes) == EMBANK_OK);
  for (i = 0; i < KEYS * DIM; ++i) EXPECT(rows[i] == (float)i);
  EXPECT(embank_apply_gradients(table, keys, KEYS, rows, 0, NULL) == EMBANK_OK);
  EXPECT(embank_get_state(table, keys, KEYS, state, 0, NULL) == EMBANK_OK);
  for (i = 0; i < KEYS * DIM; ++i) EXPECT(state[i] == (float)i * (float)i);
  EXPECT(embank_set_state(table, keys, KEYS, state, 0, NULL) == EMBANK_OK);
  EXPECT(embank_get_heat(table, keys, KEYS, heat, NULL) == EMBANK_OK && heat[3] == 1);
  EXPECT(embank_set_learning_rate(table, 0.25f) == EMBANK_OK);
  EXPECT(embank_erase(table, keys, 2, outcomes) == EMBANK_OK && outcomes[1] == EMBANK_ROW_FOUND);
  EXPECT(embank_contains(table, keys, 2, outcomes) == EMBANK_OK);
  EXPECT(outcomes[1] == EMBANK_ROW_ABSENT);
  EXPECT(embank_apply_gradients(table, keys, 1, rows, 0, NULL) == EMBANK_NOT_FOUND);
  EXPECT(embank_scan_open(table, &scan) == EMBANK_OK);
  while (embank_scan_next(scan, scanned, rows, 0, 5, &n) == EMBANK_OK && n > 0) seen += n;
  embank_scan_close(scan);
  EXPECT(seen == KEYS - 2 + 6);
  return 0;
}

static int Facts(embank_store* store, embank_table* table) {
  static char text[1 << 16];
  uint64_t needed = 0;
  struct {
    embank_table_info info;
    unsigned char behind[16];
  } all;
  int i;
  memset(&all, 0xEE, sizeof all);
  all.info.struct_size = sizeof all.info;
  EXPECT(embank_table_get_info(table, &all.info) == EMBANK_OK);
  EXPECT(all.info.dim == DIM && all.info.rows == KEYS - 2 + 6 && all.info.lookups_hbm == 0);
  for (i = 0; i < 16; ++i) EXPECT(all.behind[i] == 0xEE);
  EXPECT(embank_table_names(store, text, sizeof text, &needed) == EMBANK_OK);
  EXPECT(strcmp(text, "a\nb\nc\n") == 0);
  EXPECT(embank_memory_report(store, text, sizeof text, &needed) == EMBANK_OK);
  EXPECT(strstr(text, "\"dram\": {\"budget\": 67108864") != NULL);
  EXPECT(strcmp(embank_status_name(EMBANK_DATA_LOSS), "DATA_LOSS") == 0);
  return 0;
}

int PROGRAM(const char* directory, uint32_t sizes[4]) {
  static const char* const names[3] = {"a", "b", "c"};
  Tables options;
  embank_store* store = NULL;
  embank_table* tables[3] = {NULL, NULL, NULL};
  uint64_t sequence = 0;
  int i, line = Estimates();
  sizes[0] = sizeof(embank_store_options);
  sizes[1] = sizeof(embank_table_options);
  sizes[2] = sizeof(embank_feature);
  sizes[3] = sizeof(embank_table_info);
  if (line == 0) line = FillTables(&options);
  if (line == 0) line = Open(directory, EMBANK_OPEN_CREATE, &store);
  if (line != 0) return line;
  for (i = 0; i < 3; ++i) {
    EXPECT(embank_table_create(store, names[i], &options.tables[i], &tables[i]) == EMBANK_OK);
  }
  line = PackedCalls(tables, 0.0f, 0);
  if (line == 0) line = PlainCalls(tables[0]);
  if (line == 0) line = Facts(store, tables[0]);
  if (line != 0) return line;
  EXPECT(embank_checkpoint(store, "blob", 4, &sequence) == EMBANK_OK && sequence > 0);
  EXPECT(embank_store_close(store) == EMBANK_OK);
  line = Open(directory, 0, &store);
  if (line != 0) return line;
  for (i = 0; i < 3; ++i) EXPECT(embank_table_open(store, names[i], &tables[i]) == EMBANK_OK);
  line = PackedCalls(tables, 0.375f, 1);
  if (line != 0) return line;
  EXPECT(embank_table_drop(store, "c") == EMBANK_OK);
  EXPECT(embank_store_close(store) == EMBANK_OK);
  return 0;
}
