/* Embank: an embedded key-value store for embeddings. This header is the whole ABI.
 *
 * A store holds tables; a table holds rows of one dimension and value type; a row (embedding vector
 * and optimizer state) is found by a 64-bit key. The unit of work is the batch.
 *
 * Conventions
 *
 *  1. C99; includes <stddef.h> and <stdint.h> only. Fixed-width types, no varargs, no inlines.
 *  2. Handles are opaque. Closing NULL is fine. A table handle lives as long as its store.
 *  3. A call that can fail returns an embank_status. On failure out-parameters are untouched,
 *     except per-key outcomes and rows where documented. embank_last_error() explains it.
 *  4. Option structs start with struct_size; fill them with embank_*_options_init(&o, sizeof o).
 *     Fields are only ever appended. A smaller size is an older caller (the missing fields take
 *     their defaults); a larger size whose unknown bytes are not zero is EMBANK_UNIMPLEMENTED.
 *     A nonsense value is EMBANK_INVALID_ARGUMENT; a value whose part is not built yet is
 *     EMBANK_UNIMPLEMENTED, never ignored.
 *  5. Buffers belong to the caller and are borrowed until the call returns. row_stride is the
 *     distance between rows in bytes; 0 means packed. Rows need no alignment.
 *  6. All 2^64 keys are legal, and so are duplicates in a batch: positions act as if in order.
 *     n == 0 is fine, with NULL pointers too. A batch holds at most 4294967295 keys.
 *  7. Threads: data calls ([data] below) may come from any thread, also on one table. Calls marked
 *     [setup] are not concurrent with other calls on the same object.
 *  8. Strings out: `cap` bytes at the buffer and `*needed` (with the final NUL). Call once with
 *     cap == 0 (the buffer may be NULL) to learn the size: that returns EMBANK_OK. A buffer that
 *     is too small is EMBANK_RESOURCE_EXHAUSTED, *needed is set and nothing is written.
 *  9. No exception, signal, exit, print or process-wide state crosses this interface, the log sink
 *     excepted. The library's threads block all signals but those of their own faults (SIGSEGV and
 *     the like): an application takes its signals by its own threads.
 * 10. Long work reports its progress to a function of the caller's, which can cancel it.
 * 11. fork(): a child opens stores of its own. With a store, table or scan of its parent every call
 *     is FAILED_PRECONDITION there, but closing, which does nothing; the parent is not touched. The
 *     log sink is the parent's alone. Until the child ends or calls exec it has the files open that
 *     its parent had: what the parent deletes takes its space so long.
 * 12. Results do not depend on the caller's floating-point mode (rounding, flush to zero, denormals
 *     are zero, exceptions that are signals): calls compute in the default mode, in which they
 *     call the caller's functions too, and leave the caller's mode and exception flags as they
 *     were.
 *
 * All calls block until their work is done.
 */
#ifndef EMBANK_H_
#define EMBANK_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define EMBANK_API __attribute__((visibility("default")))
#else
#define EMBANK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- codes; never renumbered ---- */

/* INVALID_ARGUMENT: nonsense in any state of the store. FAILED_PRECONDITION: the object's state
 * forbids the call. RESOURCE_EXHAUSTED: a budget, the machine's memory or the process's descriptors
 * are used up. UNIMPLEMENTED: a part that this version does not have. INTERNAL: a defect; please
 * report it. */
typedef int32_t embank_status;
enum {
  EMBANK_OK = 0, EMBANK_CANCELLED = 1, EMBANK_UNKNOWN = 2, EMBANK_INVALID_ARGUMENT = 3,
  EMBANK_DEADLINE_EXCEEDED = 4, EMBANK_NOT_FOUND = 5, EMBANK_ALREADY_EXISTS = 6,
  EMBANK_PERMISSION_DENIED = 7, EMBANK_RESOURCE_EXHAUSTED = 8, EMBANK_FAILED_PRECONDITION = 9,
  EMBANK_ABORTED = 10, EMBANK_OUT_OF_RANGE = 11, EMBANK_UNIMPLEMENTED = 12, EMBANK_INTERNAL = 13,
  EMBANK_UNAVAILABLE = 14, EMBANK_DATA_LOSS = 15
};

/* What became of one key of a batch. */
enum {
  EMBANK_ROW_FOUND = 1,
  EMBANK_ROW_CREATED = 2,
  EMBANK_ROW_ABSENT = 3,
  EMBANK_ROW_REFUSED = 4,   /* no space to create or change it: as it was */
  EMBANK_ROW_DATA_LOSS = 5  /* exists, but its bytes are damaged; upsert and erase work on it */
};

/* What a lookup does for a key that has no row. */
enum {
  EMBANK_MISSING_CREATE = 0,  /* create the row from the table's initializer; READ_ONLY: DEFAULT */
  EMBANK_MISSING_DEFAULT = 1, /* answer the initial value, create nothing */
  EMBANK_MISSING_ZERO = 2,    /* answer zeros, create nothing */
  EMBANK_MISSING_SKIP = 3     /* leave the output row as it is */
};

enum { EMBANK_F32 = 0, EMBANK_F16 = 1, EMBANK_BF16 = 2 };
enum { EMBANK_OPT_NONE = 0, EMBANK_OPT_SGD = 1, EMBANK_OPT_ADAGRAD = 2,
       EMBANK_OPT_ROWWISE_ADAGRAD = 3, EMBANK_OPT_ADAM = 4, EMBANK_OPT_FTRL = 5 };
enum { EMBANK_INIT_ZERO = 0,
       EMBANK_INIT_CONSTANT = 1,  /* init_a */
       EMBANK_INIT_UNIFORM = 2,   /* [init_a, init_b) */
       EMBANK_INIT_NORMAL = 3 };  /* mean init_a, standard deviation init_b */
/* Which rows of a table leave DRAM first, for the log or, of a table that forgets, for good. */
enum { EMBANK_EVICT_LRU = 0,    /* those not used for the longest time: approximated by CLOCK */
       EMBANK_EVICT_CLOCK = 1,  /* the same, but for those looked up since their turn */
       EMBANK_EVICT_LFU = 2 };  /* those of the least heat, by powers of two */
/* What becomes of a new row for which there is no space. */
enum { EMBANK_FULL_REFUSE = 0,  /* it is REFUSED */
       EMBANK_FULL_FORGET = 1 };/* the coldest row of its shard is erased for it, and counted in
                                 * embank_rows_forgotten_total: a bounded memory. With a path:
                                 * what left memory longest ago and was not looked up since (LFU:
                                 * and is cold), once all rows of the store take half of
                                 * ssd_bytes, or its index all that dram_bytes leaves it; with few
                                 * rows in the log alone, the coldest of memory */
/* CREATE: makes a store where there is none. READ_ONLY: together with others who only read;
 * embank_store_open says more. PREVIOUS: the last checkpoint but one, as if the last had not been;
 * it is lost with the next checkpoint, which nobody makes who only reads. */
enum { EMBANK_OPEN_CREATE = 1u, EMBANK_OPEN_READ_ONLY = 2u, EMBANK_OPEN_PREVIOUS = 4u };
enum { EMBANK_DURABLE_CHECKPOINT = 0, EMBANK_DURABLE_BATCH = 1, EMBANK_DURABLE_NONE = 2 };
enum { EMBANK_LOG_INFO = 1, EMBANK_LOG_WARNING = 2, EMBANK_LOG_ERROR = 3 };

typedef struct embank_store embank_store;
typedef struct embank_table embank_table;
typedef struct embank_scan embank_scan;

/* ---- options ---- */

/* What this version cannot do yet is said behind each field. */
typedef struct embank_store_options {
  uint32_t struct_size;
  uint32_t flags;           /* sum of EMBANK_OPEN_*. READ_ONLY needs a path, and no CREATE */
  const char *path;         /* directory of the store, in one that exists; NULL: memory only */
  uint64_t dram_bytes;      /* hard budget of index and rows in DRAM: at least 16 MiB; 0: none */
  uint64_t ssd_bytes;       /* hard budget of all files under path: at least 3 MiB, and more for
                             * each size of rows: embank_table_create refuses a table of which no
                             * row would fit, and names what is needed. 0: none, and so without a
                             * path. READ_ONLY: any number, it limits nothing */
  const char *pmem_path;    /* directory of the PMem tier, with a path only; NULL: there is none.
                             * It may be on any file system that maps files: persistent memory
                             * (DAX), ext4, tmpfs. embank_store_open says more */
  uint64_t pmem_bytes;      /* hard budget of all segments under pmem_path: at least 4 MiB with a
                             * pmem_path, 0 without. READ_ONLY: any number */
  uint64_t hbm_bytes;       /* not built yet: 0 */
  int32_t cuda_device;      /* -1: no device (the default). An ordinal: not built yet */
  uint32_t worker_threads;  /* threads that share large batches; 0: one per core; at most 1024 */
  uint64_t seed;            /* of the initializers */
  int32_t durability;       /* CHECKPOINT (default); NONE, without a path: alike. BATCH: not yet */
  uint32_t warmup_iters;    /* not built yet: 0 */
  uint32_t flush_iters;     /* not built yet: 0 */
  uint32_t reserved;        /* 0 */
} embank_store_options;

typedef struct embank_table_options {
  uint32_t struct_size;
  uint32_t dim;             /* values of one row: 1 .. 4096 */
  int32_t value_type;       /* EMBANK_F32 (default), EMBANK_F16, EMBANK_BF16 */
  int32_t optimizer;        /* EMBANK_OPT_NONE (default) ... */
  float learning_rate;      /* finite, >= 0; FTRL: > 0. Default 0.01 */
  float beta1, beta2;       /* Adam: 0 <= beta < 1. Defaults 0.9 and 0.999 */
  float epsilon;            /* finite, >= 0. Default 1e-8 */
  float weight_decay;       /* coupled (added to the gradient); finite, >= 0. Default 0 */
  float initial_accumulator; /* Adagrad s, FTRL n of a new row; finite, >= 0. Default 0 */
  int32_t initializer;      /* EMBANK_INIT_ZERO (default) ... */
  float init_a, init_b;     /* see EMBANK_INIT_*; finite. Defaults 0 */
  int32_t eviction;         /* EMBANK_EVICT_LRU (default) ... */
  uint32_t admission_count; /* 0 or 1: a row is created at first sight. More: not built yet */
  int32_t on_full;          /* EMBANK_FULL_REFUSE (default), FORGET */
} embank_table_options;

typedef struct embank_table_info {
  uint32_t struct_size;     /* set by the caller to sizeof(embank_table_info) */
  uint32_t dim;
  int32_t value_type, optimizer;
  uint64_t rows, rows_hbm, rows_dram, rows_pmem, rows_ssd;
  uint64_t row_bytes;       /* of one row in DRAM: header, vector, state, padding */
} embank_table_info;

/* ---- about: any thread, at any time ---- */
/* "major.minor.patch"; static. */
EMBANK_API const char *embank_version(void);
/* Version of the ABI: one more with each release that appends to it. */
EMBANK_API uint32_t embank_abi_version(void);

/* How this library was built and what it uses here: "cuda" "io_uring" "pmem" "mpi" "nccl" "simd"
 * "git". NULL for a part that is not in this build, an unknown key, or NULL; else static. */
EMBANK_API const char *embank_build_info(const char *key);

/* "OK", "INVALID_ARGUMENT", ...; "UNKNOWN" for a number that is no code. Static. */
EMBANK_API const char *embank_status_name(embank_status code);

/* Message of the calling thread's last failed call: the argument, the limit, what to do. "" before
 * the first failure. Valid until the next failing embank call of this thread. */
EMBANK_API const char *embank_last_error(void);

/* Where log lines go; NULL (the default): nowhere. Process-wide. The sink may be called from any
 * thread, must not call embank, and must outlive the calls that log. */
EMBANK_API void embank_set_log_sink(void (*sink)(int32_t level, const char *message, void *user),
                                    void *user);

/* ---- store ---- */

/* Fills the first struct_size bytes of *options with the defaults, bytes past the known fields with
 * zeros. NULL or a size below 4: nothing. */
EMBANK_API void embank_store_options_init(embank_store_options *options, uint32_t struct_size);

/* [setup] Opens a store; options == NULL: all defaults. On success *store is closed by
 * embank_store_close. INVALID_ARGUMENT, UNIMPLEMENTED, RESOURCE_EXHAUSTED (memory).
 *
 * With a path the store is what its last checkpoint left; until there is one it is empty. Rows that
 * dram_bytes does not hold are in a log of files in the directory. Then also NOT_FOUND: there is no
 * store, and flags has no CREATE; UNAVAILABLE: it is open (see below), or the device fails;
 * FAILED_PRECONDITION: it was made with another seed, by a version with another format, or has no
 * checkpoint before the last; DATA_LOSS: something is damaged or missing, which the message names,
 * and an older checkpoint if there is one (the command `embank repair` makes a new store of what
 * can be read); PERMISSION_DENIED.
 *
 * The store works in the directory that it opened, whatever becomes of the path afterwards (chdir,
 * a rename, a changed symbolic link).
 *
 * With a pmem_path, rows that leave DRAM, and rows that a checkpoint writes, go to segments in PMem
 * while there is space, else to those under path. Where PMem is full, its coldest rows are moved to
 * path. The directory is the store's alone, is locked with it, and is needed at each open:
 *   UNAVAILABLE: libpmem is not installed (package libpmem1), or the directory is locked elsewhere.
 *   FAILED_PRECONDITION: rows are in PMem, and pmem_path is NULL or not there; the message says how
 *     many rows, and where.
 *   INVALID_ARGUMENT: pmem_path is not a directory, or is that of another store.
 *   DATA_LOSS: a segment is missing; the message names it.
 * An export needs no PMem.
 *
 * It takes at most half of the process's descriptors (RLIMIT_NOFILE at the open) for segments of
 * its log, however many there are, and some more besides; docs/durability.md adds them up.
 *
 * One opens a path to change it, alone, or many open it READ_ONLY, in one process or in many: the
 * others get UNAVAILABLE. The system keeps the lock (flock), on the directory and on the file LOCK
 * in it; docs/durability.md says what happens where LOCK is removed. READ_ONLY makes, writes and
 * removes nothing in the directory, which may be write-protected; rows still come up to memory, and
 * leave it, as dram_bytes wants. Lookups with MISSING_CREATE act as with MISSING_DEFAULT. What
 * would change tables, rows, their state or a learning rate, and embank_checkpoint, is
 * FAILED_PRECONDITION, whatever the batch, before anything is done; all other calls work,
 * embank_export too. */
EMBANK_API embank_status embank_store_open(const embank_store_options *options,
                                           embank_store **store);

/* [setup] Frees the store, its tables and its memory, always; scans must have been closed. Makes
 * nothing durable that a checkpoint did not, and deletes no data. */
EMBANK_API embank_status embank_store_close(embank_store *store);

/* ---- tables ---- */

/* As embank_store_options_init. */
EMBANK_API void embank_table_options_init(embank_table_options *options, uint32_t struct_size);

/* [setup] Creates an empty table. name: 1 to 255 bytes of UTF-8 without '/' and newline. At most
 * 4095 tables in a store. INVALID_ARGUMENT, UNIMPLEMENTED, ALREADY_EXISTS, RESOURCE_EXHAUSTED (of
 * memory, or ssd_bytes holds no row of it: the message says how much would).
 *
 * Tables with rows of one size, one eviction (LRU and CLOCK count as one) and one on_full share
 * memory: their rows make space for each other. With a path, pages of 2 MiB move from tables whose
 * rows are seldom used to those whose rows have to leave often. Without a path a table gets memory
 * from others only by pages in which no row is left: a table that forgets is REFUSED its first rows
 * where others have filled dram_bytes. With a path RESOURCE_EXHAUSTED also says that dram_bytes has
 * no memory for saving rows of one more size, which embank_estimate counts in fixed_bytes. */
EMBANK_API embank_status embank_table_create(embank_store *store, const char *name,
                                             const embank_table_options *options,
                                             embank_table **table);

/* [setup] The handle of an existing table, the same for every call. NOT_FOUND. */
EMBANK_API embank_status embank_table_open(embank_store *store, const char *name,
                                           embank_table **table);

/* [setup] Erases a table and all its rows. Its handle stays valid (2 KiB of dram_bytes until the
 * close) and answers FAILED_PRECONDITION, also after the name was used again. NOT_FOUND. With a
 * path: DATA_LOSS, UNAVAILABLE, RESOURCE_EXHAUSTED when the log does not tell which of its rows are
 * the table's; its handle is of no use then, and its name is free once a drop of it says OK. */
EMBANK_API embank_status embank_table_drop(embank_store *store, const char *name);

/* [data] Fills *info up to info->struct_size, which a caller sets. */
EMBANK_API embank_status embank_table_get_info(embank_table *table, embank_table_info *info);

/* [data] The names of all tables in order of creation, one per line (each ends with a newline). */
EMBANK_API embank_status embank_table_names(embank_store *store, char *names, uint64_t cap,
                                            uint64_t *needed);

/* ---- data: n keys in, n rows or outcomes out ----
 *
 * rows: n rows of the table's dim values of its value_type. state: n rows of float32: SGD none,
 * Adagrad dim (s), row-wise Adagrad 1 (s), Adam 2 * dim + 1 (m, v, steps), FTRL 2 * dim (z, n).
 * outcomes: n bytes EMBANK_ROW_*, or NULL. Without outcomes a refused key makes the call return
 * RESOURCE_EXHAUSTED, and an absent one NOT_FOUND where the call says so; the rest of the batch is
 * done all the same. With ssd_bytes space for one checkpoint is kept: a change (also of a row that
 * is there, by any call but erase) that would eat it is REFUSED, and the message names
 * embank_checkpoint, which gives space back. In a table that forgets, a new row may erase another,
 * one of the same batch only where nearly nothing else is left: of a batch larger than memory the
 * first rows may be gone before its end. With a path rows are forgotten behind the call, of any
 * such table, its own not excepted; changes need the space for a checkpoint as others do, and of a
 * batch of more than a tenth of what a full index has a part may be REFUSED.
 *
 * With a path the record of a row may be damaged, or the device may not read it. Then its outcome
 * is DATA_LOSS, and so is the call's status without outcomes; the rest of the batch is done all the
 * same. Upsert replaces such a row, and erase erases it: they answer FOUND. Every other call leaves
 * it as it is. Where the footer of the record's segment is damaged too, nobody knows whose the
 * record is: upsert and erase answer DATA_LOSS then, and so do all calls for the few keys without a
 * row that share its place in the index.
 *
 * Every data call can return INVALID_ARGUMENT (shapes), FAILED_PRECONDITION (the table was dropped,
 * or the call changes something and the store was opened READ_ONLY) and RESOURCE_EXHAUSTED (memory
 * of the call: at most 64 MiB + 32 bytes per key); then nothing was done. */

/* [data] Copies the rows of n keys to `rows`; absent keys follow `missing`. Outcomes: FOUND;
 * CREATED (of equal absent keys the first is CREATED, the others FOUND); REFUSED (answers the
 * initial value); ABSENT (missing is not CREATE). Each position found or created counts one heat.
 * Each row is whole: as of one moment, never torn. */
EMBANK_API embank_status embank_lookup(embank_table *table, const uint64_t *keys, uint64_t n,
                                       int32_t missing, void *rows, uint64_t row_stride,
                                       uint8_t *outcomes);

/* [data] Writes rows, creating absent ones; of equal keys the last wins. The optimizer state is
 * reset to that of a new row. Outcomes: FOUND (overwritten, also a damaged row), CREATED, REFUSED
 * and DATA_LOSS (nothing written). */
EMBANK_API embank_status embank_upsert(embank_table *table, const uint64_t *keys, uint64_t n,
                                       const void *rows, uint64_t row_stride, uint8_t *outcomes);

/* [data] One optimizer step per distinct key, with the sum of its gradients (float32, whatever the
 * value_type; docs/arithmetic.md). Outcomes: FOUND, or ABSENT (nothing done; NOT_FOUND without
 * outcomes); equal keys share one. A NaN or infinite gradient is INVALID_ARGUMENT, names the first
 * such key, and nothing is applied. FAILED_PRECONDITION on a table without optimizer. */
EMBANK_API embank_status embank_apply_gradients(embank_table *table, const uint64_t *keys,
                                                uint64_t n, const float *gradients,
                                                uint64_t row_stride, uint8_t *outcomes);

/* [data] Erases rows. Outcomes: FOUND (erased, also a damaged row), ABSENT (also for a key's second
 * position), DATA_LOSS (nothing erased). */
EMBANK_API embank_status embank_erase(embank_table *table, const uint64_t *keys, uint64_t n,
                                      uint8_t *outcomes);

/* [data] Outcomes: FOUND or ABSENT. Counts no heat. */
EMBANK_API embank_status embank_contains(embank_table *table, const uint64_t *keys, uint64_t n,
                                         uint8_t *outcomes);

/* [data] A hint: with a path, reads those of the rows that are in the log alone and brings them
 * up to memory, so that the next lookup or change finds them there; returns when they are. Best
 * called from a thread of its own, for a batch that comes soon. Rows that it brings up or finds
 * in memory stay there until they are changed, for eight further lookup batches of the table, or
 * until the store is closed: as far as such rows have not more than a quarter of dram_bytes, and
 * those found in memory not more than half of that; where very many stand together, some leave
 * all the same. More rows come up without that promise; when
 * they are as many as half of those in memory, only where there is free space. Absent keys are
 * passed over, duplicates are read once; creates nothing, changes nothing, counts no heat. A row
 * that cannot be read stays where it is, which is no failure of this call: its lookup will tell.
 * Without a path it checks its arguments and does nothing. RESOURCE_EXHAUSTED: no memory for the
 * call itself. */
EMBANK_API embank_status embank_prefetch(embank_table *table, const uint64_t *keys, uint64_t n);

/* [data] Reads the optimizer state; the output of an ABSENT key is left as it is (NOT_FOUND without
 * outcomes). FAILED_PRECONDITION on a table without state (OPT_NONE, SGD). */
EMBANK_API embank_status embank_get_state(embank_table *table, const uint64_t *keys, uint64_t n,
                                          float *state, uint64_t row_stride, uint8_t *outcomes);

/* [data] Writes the optimizer state as given; of equal keys the last wins. Statuses as
 * embank_get_state; INVALID_ARGUMENT when an Adam step count is not within 0 .. 16777216, and then
 * nothing is written. */
EMBANK_API embank_status embank_set_state(embank_table *table, const uint64_t *keys, uint64_t n,
                                          const float *state, uint64_t row_stride,
                                          uint8_t *outcomes);

/* [data] How often each row was looked up: an ageing counter (docs/arithmetic.md) that saturates at
 * 1048575. 0 for an ABSENT key. Exact for rows that have not left memory; with a path, rows that
 * have may be told colder than they were, first of all cold ones, and hotter where they were not
 * asked for. Checkpoints keep it. */
EMBANK_API embank_status embank_get_heat(embank_table *table, const uint64_t *keys, uint64_t n,
                                         uint32_t *heat, uint8_t *outcomes);

/* [data] For the gradient batches that begin after it. Same limits as in the options. */
EMBANK_API embank_status embank_set_learning_rate(embank_table *table, float learning_rate);

/* ---- scan ---- */

/* [data] Starts a scan over a table: every row that lives through the whole scan is seen exactly
 * once, whole, as of some moment since the open; rows created or erased meanwhile may or may not
 * appear. No order. Holds no lock between calls, and beside dram_bytes 8 bytes for each 4096 rows
 * of the table, and up to 64 MiB where it has rows on SSD: 8 bytes for each row of a pass over
 * these, which are read in the order in which they lie there, memory being left as it is. One
 * thread at a time uses a scan. */
EMBANK_API embank_status embank_scan_open(embank_table *table, embank_scan **scan);

/* The next rows, at most cap (> 0), and their number in *n; 0: the end. What is behind the n-th of
 * keys and rows may be anything. Counts no heat. FAILED_PRECONDITION when the table was dropped.
 * RESOURCE_EXHAUSTED: the call may be repeated. DATA_LOSS: rows cannot be read, of which one is
 * named, or records of which nobody knows whose they are; the next call goes on without them. */
EMBANK_API embank_status embank_scan_next(embank_scan *scan, uint64_t *keys, void *rows,
                                          uint64_t row_stride, uint64_t cap, uint64_t *n);

/* Ends a scan, before its store is closed; NULL is fine. */
EMBANK_API void embank_scan_close(embank_scan *scan);

/* ---- durability: stores with a path; the others say FAILED_PRECONDITION ---- */

/* Told by long work, on the thread that called it, how much of `total` is done: from 0 on, at last
 * `total`. What is not 0 cancels the work, which then says CANCELLED. A child that it forks ends
 * inside it. */
typedef int32_t (*embank_progress)(uint64_t done, uint64_t total, void *user);

/* [data] Makes the tables and rows of the store durable as they are at one moment of the call,
 * every batch wholly or not at all, and with them blob_bytes bytes of the caller's (at most 32 MiB;
 * blob may be NULL for none). Batches go on meanwhile; a second checkpoint waits. *sequence (may be
 * NULL): its number, greater than any before. From OK on, whatever happens, opening the path
 * gives this checkpoint or a later one.
 * On failure the former checkpoint stays, and the store goes on: RESOURCE_EXHAUSTED (memory, the
 * disk, or a blob larger than 16 KiB and than the last, for which ssd_bytes has no space; for the
 * rest room is kept), UNAVAILABLE (the device fails: this checkpoint may turn out to be there
 * nevertheless; or the file LOCK was removed or replaced since the open: nothing was changed). */
EMBANK_API embank_status embank_checkpoint(embank_store *store, const void *blob,
                                           uint64_t blob_bytes, uint64_t *sequence);

/* [data] The caller's bytes of the last checkpoint, made here or found when the store was opened:
 * *needed of them (no NUL is added). NOT_FOUND: there is no checkpoint. */
EMBANK_API embank_status embank_checkpoint_blob(embank_store *store, void *blob, uint64_t cap,
                                                uint64_t *needed);

/* [data] Makes a store of its own out of the last checkpoint, made here or found when the store was
 * opened, in a directory that does not exist, in one that does, or is empty. Files that do not
 * change any more are linked and take no space twice; the others, and all on another file system,
 * are copied. Batches and checkpoints go on meanwhile; space that the checkpoint has comes back
 * after the end. progress
 * (may be NULL) counts bytes; it may call embank, but must not close the store. On OK the
 * new store is durable: it has this one's rows, blob and seed, and no previous checkpoint. Neither
 * store changes what the other has.
 * FAILED_PRECONDITION: there is no checkpoint; ALREADY_EXISTS: the directory is not empty;
 * NOT_FOUND: the one in which it should be is not there; CANCELLED; RESOURCE_EXHAUSTED,
 * PERMISSION_DENIED, UNAVAILABLE (the device fails; somebody uses the directory), DATA_LOSS (a file
 * with rows is missing or cut off): then what was made is removed, where that can be done; what
 * stays is not opened as a store, unless it is whole. */
EMBANK_API embank_status embank_export(embank_store *store, const char *directory,
                                       embank_progress progress, void *user);

/* Whether the files in a store's directory are as they were written, and agree: the manifests of
 * the last two checkpoints, the heat that they name, and of the segments headers, footers and all
 * records of rows. Writes nothing; the store is closed or open READ_ONLY, and others can open it
 * only so meanwhile. progress (may be NULL) counts segments. report: JSON text that names each
 * damaged part and its rows, by cap and needed as other strings; docs/verify.md lists its fields.
 * Each call reads everything, also one that asks for the size.
 * OK: there is no damage. DATA_LOSS: there is; report and *needed are written as for OK.
 * RESOURCE_EXHAUSTED: the report is longer than cap, *needed is set; or memory. NOT_FOUND: there is
 * no store; UNAVAILABLE: it is open to be changed; FAILED_PRECONDITION: a newer version wrote it;
 * CANCELLED; PERMISSION_DENIED. */
EMBANK_API embank_status embank_verify(const char *directory, embank_progress progress, void *user,
                                       char *report, uint64_t cap, uint64_t *needed);

/* ---- insight ---- */

/* [data] Counters and gauges in the Prometheus text format; docs/metrics.md lists them. */
EMBANK_API embank_status embank_metrics(embank_store *store, char *text, uint64_t cap,
                                        uint64_t *needed);

/* Says what a store with these tables and row counts will need, before it is opened, as JSON:
 * {"dram_bytes": enough for dram_bytes, "fixed_bytes", "index_bytes", "slab_bytes", "rows_in_dram",
 * "fits"}. fixed_bytes is what the store takes or keeps free besides its index and its rows. fits
 * says whether dram_bytes is within options->dram_bytes, if that is not 0.
 * Without a path dram_bytes holds all rows. With a path it is the least with which the store takes
 * these rows, nearly all of them on SSD: its index names them, and any of them can be saved.
 * options == NULL: defaults. table_count == 0 is fine. Validates like open and create. */
EMBANK_API embank_status embank_estimate(const embank_store_options *options,
                                         const embank_table_options *tables, const uint64_t *rows,
                                         uint32_t table_count, char *json, uint64_t cap,
                                         uint64_t *needed);

/* Recommends dram_bytes for a store with a path, so that a share hit_ratio (0 to 1) of all lookups
 * finds its row in DRAM. The lookups are independent of each other; the i-th most popular of all
 * rows is looked up in proportion to i to the power of -zipf_exponent (0 to 4; 0: all alike; click
 * logs: about 1). JSON as embank_estimate's, for rows_in_dram rows in memory; an LRU cache of that
 * many rows has the hit ratio by Che's approximation (IEEE JSAC 2002). INVALID_ARGUMENT, also where
 * options have no path. */
EMBANK_API embank_status embank_estimate_for_hit_ratio(
    const embank_store_options *options, const embank_table_options *tables, const uint64_t *rows,
    uint32_t table_count, double zipf_exponent, double hit_ratio, char *json, uint64_t cap,
    uint64_t *needed);

/* [data] Bytes by tier, as JSON: {"dram": {"budget", "used", "fixed", "index", "rows", "state",
 * "slack", "huge_pages_refused"}}. used = fixed + index + rows + state + slack. With a path also
 * "ssd": {"budget", "used", "live", "dirty", "kept"}: space of the log's segments, and of it that
 * of rows; what rows in memory will need, and what is kept for that and for manifests. With a
 * pmem_path also "pmem", alike. */
EMBANK_API embank_status embank_memory_report(embank_store *store, char *json, uint64_t cap,
                                              uint64_t *needed);

#ifdef __cplusplus
}
#endif
#endif /* EMBANK_H_ */
