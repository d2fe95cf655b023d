/* Embank: an embedded key-value store for embeddings. This header is the whole ABI.
 *
 * A store holds tables. A table holds rows of one dimension and one value type. A row is an
 * embedding vector with its optimizer state, and is found by a 64-bit key. Every data call works on
 * a batch: n keys in, n rows or outcomes out.
 *
 * A training step is embank_lookup with EMBANK_MISSING_CREATE, then embank_apply_gradients for the
 * same keys. A store with a path keeps what embank_checkpoint has saved; to resume, open the path
 * again, open the tables, and read the caller's own bytes with embank_checkpoint_blob.
 *
 * Conventions
 *
 *  1. Language: C99. The header includes <stddef.h> and <stdint.h> only, and has fixed-width types,
 *     no varargs and no inline functions.
 *  2. Handles are opaque. Closing NULL does nothing. A table handle is valid until its store is
 *     closed; the caller does not free it.
 *  3. A call that can fail returns an embank_status; embank_last_error() explains a failure. A call
 *     that fails leaves its output parameters unchanged, except outcomes and rows where its
 *     contract says so.
 *  4. Option structs start with struct_size. Fill one with embank_*_options_init(&o, sizeof o),
 *     then set fields. Fields are only ever appended, so that programs and libraries of different
 *     versions work together:
 *       struct_size is smaller than the library's   missing fields take their defaults
 *       it is larger, and the unknown bytes are 0   they are ignored
 *       it is larger, and one of them is not 0      UNIMPLEMENTED
 *       a field has an invalid value                INVALID_ARGUMENT
 *       a field asks for a part not built yet       UNIMPLEMENTED; it is never ignored
 *  5. Buffers belong to the caller; a call uses them until it returns. A buffer in device memory
 *     must stay valid until the stream has done the call's work. row_stride is the distance in
 *     bytes between the starts of two rows; 0: the rows are packed. Rows in host memory need no
 *     alignment.
 *  6. All 2^64 keys are legal. A batch may repeat a key: the positions act as if one after the
 *     other. n == 0 is legal, also with NULL pointers. A batch has at most 4294967295 keys.
 *  7. Threads: calls marked [data] may run at once, from any threads, also on the same table. A
 *     call marked [setup] must not run at the same time as another call on the same object.
 *  8. Strings out: the caller passes a buffer of `cap` bytes, and the call sets *needed to the
 *     bytes of the string with its final NUL:
 *       cap == 0 (the buffer may be NULL)           OK: nothing is written but *needed
 *       cap is too small                            RESOURCE_EXHAUSTED: only *needed is set
 *       cap is large enough                         OK: the string is written
 *  9. The library throws no exception, installs no signal handler, does not exit, does not print,
 *     and has no process-wide state but the log sink. Its threads block all signals except those
 *     that report a fault of the thread itself, such as SIGSEGV: other signals reach the
 *     application's threads.
 * 10. Long calls report their progress to a function of the caller, which can cancel them.
 * 11. fork(): a child process may open stores of its own. Stores, tables and scans that it inherits
 *     do not work: every call on them is FAILED_PRECONDITION, but closing does nothing. The
 *     parent is not affected. The child has no log sink until it sets one. It keeps the parent's
 *     files open until it exits or calls exec, so that files which the parent deletes take disk
 *     space until then.
 * 12. Results do not depend on the caller's floating-point mode (rounding, flush to zero, denormals
 *     are zero, trapped exceptions). A call computes in the default mode, runs the caller's
 *     callbacks in it too, and restores the caller's mode and exception flags before it returns.
 *
 * Every call returns when its work is done, with two exceptions: calls with a stream leave work on
 * device memory to the stream, and embank_checkpoint_start leaves work to a thread of the store.
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

/* Statuses with the same cause in every call; contracts name the others:
 *   INVALID_ARGUMENT     an argument is invalid, whatever the state of the store
 *   FAILED_PRECONDITION  the state of the object forbids the call
 *   RESOURCE_EXHAUSTED   a budget, the machine's memory or the process's descriptors are used up
 *   UNIMPLEMENTED        this version does not have that part
 *   INTERNAL             a defect of Embank; please report it */
typedef int32_t embank_status;
enum {
  EMBANK_OK = 0, EMBANK_CANCELLED = 1, EMBANK_UNKNOWN = 2, EMBANK_INVALID_ARGUMENT = 3,
  EMBANK_DEADLINE_EXCEEDED = 4, EMBANK_NOT_FOUND = 5, EMBANK_ALREADY_EXISTS = 6,
  EMBANK_PERMISSION_DENIED = 7, EMBANK_RESOURCE_EXHAUSTED = 8, EMBANK_FAILED_PRECONDITION = 9,
  EMBANK_ABORTED = 10, EMBANK_OUT_OF_RANGE = 11, EMBANK_UNIMPLEMENTED = 12, EMBANK_INTERNAL = 13,
  EMBANK_UNAVAILABLE = 14, EMBANK_DATA_LOSS = 15
};

/* The outcome of one key of a batch. */
enum {
  EMBANK_ROW_FOUND = 1,     /* the row exists */
  EMBANK_ROW_CREATED = 2,   /* this call created the row */
  EMBANK_ROW_ABSENT = 3,    /* there is no row with this key */
  EMBANK_ROW_REFUSED = 4,   /* no space to create or change the row: nothing was changed */
  EMBANK_ROW_DATA_LOSS = 5, /* the row exists, but its bytes cannot be read */
  EMBANK_ROW_NOT_FINITE = 6, /* the step would leave a value or a state that is NaN or infinite: it
                             * was not made, and the row is as it was */
  EMBANK_ROW_UNAVAILABLE = 7 /* the row cannot be read now (descriptors); it is not damaged */
};

/* The answer of a lookup for a key without a row. */
enum {
  EMBANK_MISSING_CREATE = 0,  /* creates the row with its initial value, and answers that */
  EMBANK_MISSING_DEFAULT = 1, /* answers the initial value, creates nothing */
  EMBANK_MISSING_ZERO = 2,    /* answers zeros, creates nothing */
  EMBANK_MISSING_SKIP = 3     /* leaves the output row as it is, creates nothing */
};

enum { EMBANK_F32 = 0, EMBANK_F16 = 1, EMBANK_BF16 = 2 };
enum { EMBANK_OPT_NONE = 0, EMBANK_OPT_SGD = 1, EMBANK_OPT_ADAGRAD = 2,
       EMBANK_OPT_ROWWISE_ADAGRAD = 3, EMBANK_OPT_ADAM = 4, EMBANK_OPT_FTRL = 5 };
enum { EMBANK_INIT_ZERO = 0,
       EMBANK_INIT_CONSTANT = 1,  /* init_a */
       EMBANK_INIT_UNIFORM = 2,   /* [init_a, init_b) */
       EMBANK_INIT_NORMAL = 3 };  /* mean init_a, standard deviation init_b */
/* The order in which rows of a table leave DRAM: to a log, or for good in a table that forgets
 * (EMBANK_FULL_FORGET) without a path. Each of the 64 shards of the index has an order of its own;
 * a hash of the key chooses the shard. A lookup that finds, creates or promotes a row uses it. */
enum { EMBANK_EVICT_LRU = 0,    /* least recently used first, exactly. A batch uses the rows that it
                                 * finds in the order of its positions, then the rows that it
                                 * creates. Worker threads share a large batch by parts of 2048
                                 * positions; the order among parts is unspecified. In a packed
                                 * lookup each feature is such a batch, and of one that is pooled or
                                 * has padding keys each chunk: as many keys as have 256 KiB of
                                 * vectors, at most 4096; in calls whose features threads share,
                                 * 4 MiB and 16384. Lookups take locks */
       EMBANK_EVICT_CLOCK = 1,  /* default: a row that was used since the hand last passed it gets a
                                 * second chance. Lookups take no lock */
       EMBANK_EVICT_LFU = 2 };  /* CLOCK by heat: a row leaves after as many rounds of its shard as
                                 * it has heat, 1 to 16, so that hot rows stay longer */
/* The answer of a table to a new row when there is no space for it.
 * A table that forgets without a path erases the coldest row of the same shard of the index.
 * A table that forgets with a path erases rows in two cases: all rows of the store take half of
 * ssd_bytes, or the index has no more memory. It erases rows in the log first, those that left
 * memory longest ago. It keeps those that were looked up since (LFU: those hotter than most). When
 * few rows are outside of DRAM, it erases the coldest rows in DRAM.
 * The metric embank_rows_forgotten_total counts the rows that were erased. */
enum { EMBANK_FULL_REFUSE = 0,  /* the new row is REFUSED */
       EMBANK_FULL_FORGET = 1 };/* a cold row is erased for it */
/* The rounding of the values of 16-bit rows at the end of a step. */
enum { EMBANK_ROUNDING_NEAREST = 0,   /* to nearest even */
       EMBANK_ROUNDING_STOCHASTIC = 1 /* up or down by a draw, so that the mean is the value before:
                                       * steps too small for the type count in the long run. Draws
                                       * depend on the store's seed, the table's name, the number of
                                       * gradient calls that the table has had, and the key */
};
/* CREATE     creates the store if there is none at path.
 * READ_ONLY  opens the store without changing it; others may read it at the same time.
 * PREVIOUS   opens the checkpoint before the last one. The last one stays until the next checkpoint
 *            is made, which a store that is open READ_ONLY does not do. */
enum { EMBANK_OPEN_CREATE = 1u, EMBANK_OPEN_READ_ONLY = 2u, EMBANK_OPEN_PREVIOUS = 4u };
enum { EMBANK_DURABLE_CHECKPOINT = 0, EMBANK_DURABLE_BATCH = 1, EMBANK_DURABLE_NONE = 2 };
enum { EMBANK_LOG_INFO = 1, EMBANK_LOG_WARNING = 2, EMBANK_LOG_ERROR = 3 };

typedef struct embank_store embank_store;
typedef struct embank_table embank_table;
typedef struct embank_scan embank_scan;

/* ---- options ---- */

/* "not built yet": any other value than the one named is UNIMPLEMENTED. */
typedef struct embank_store_options {
  uint32_t struct_size;
  uint32_t flags;           /* sum of EMBANK_OPEN_*; READ_ONLY needs a path and excludes CREATE */
  const char *path;         /* directory of the store; its parent must exist. NULL: memory only */
  uint64_t dram_bytes;      /* hard budget of index and rows in DRAM: at least 16 MiB.
                             * 0 (default): no limit */
  uint64_t ssd_bytes;       /* hard budget of all files under path: at least 3 MiB, and more for
                             * each size of rows: embank_table_create refuses a table that could
                             * not hold one row, and names the bytes that it needs.
                             * 0 (default): no limit. Without a path: 0. READ_ONLY ignores it */
  const char *pmem_path;    /* directory of the PMem tier, which needs a path; NULL: no PMem tier.
                             * Any file system that maps files will do: DAX, ext4, tmpfs */
  uint64_t pmem_bytes;      /* hard limit of all segments under pmem_path: at least 4 MiB with a
                             * pmem_path, 0 without. READ_ONLY ignores it */
  uint64_t hbm_bytes;       /* device memory for the vectors and states of the hottest rows: at
                             * least 64 KiB. 0 (default): no row is in device memory. Each such row
                             * also takes 32 bytes of dram_bytes. The store takes hbm_bytes / 64
                             * (256 KiB to 8 MiB) more of the device as scratch */
  int32_t cuda_device;      /* ordinal of the device; 0 or more needs hbm_bytes. -1 (default): with
                             * hbm_bytes the twin, host memory that behaves as a device does */
  uint32_t worker_threads;  /* threads that share large batches: at most 1024.
                             * 0 (default): one per core */
  uint64_t seed;            /* seed of the initial values of rows. Default 0 */
  int32_t durability;       /* CHECKPOINT (default). NONE: allowed only without a path, where it
                             * changes nothing. BATCH: not built yet */
  uint32_t warmup_iters;    /* lookup batches of the busiest table before the first top-k
                             * flush. 0 (default): 100. Without hbm_bytes: 0 */
  uint32_t flush_iters;     /* such batches between flushes. 0 (default): 100. UINT32_MAX: only
                             * embank_flush_hot flushes. Without hbm_bytes: 0 */
  uint32_t reserved;        /* 0 */
  uint32_t pin_batches;     /* lookup batches of its table that the pin of a row outlasts
                             * (embank_prefetch): at most 1024. A trainer that looks rows up several
                             * batches before it changes them needs as many more. 0 (default): 12 */
  uint32_t reserved_2;      /* 0 */
} embank_store_options;

typedef struct embank_table_options {
  uint32_t struct_size;
  uint32_t dim;             /* values of one row: 1 .. 4096 */
  int32_t value_type;       /* EMBANK_F32 (default), EMBANK_F16, EMBANK_BF16 */
  int32_t optimizer;        /* EMBANK_OPT_*; default NONE */
  float learning_rate;      /* finite, >= 0; FTRL: > 0. Default 0.01 */
  float beta1, beta2;       /* Adam: 0 <= beta < 1. Defaults 0.9 and 0.999 */
  float epsilon;            /* finite, >= 0. Default 1e-8 */
  float weight_decay;       /* coupled (added to the gradient); finite, >= 0. Default 0 */
  float initial_accumulator; /* of a new row: s of Adagrad, n of FTRL; finite, >= 0. Default 0 */
  int32_t initializer;      /* EMBANK_INIT_*; default ZERO */
  float init_a, init_b;     /* see EMBANK_INIT_*; finite. Defaults 0 */
  int32_t eviction;         /* EMBANK_EVICT_*; default CLOCK */
  uint32_t admission_count; /* 0 or 1: the first lookup creates a row. More: not built yet */
  int32_t on_full;          /* EMBANK_FULL_*; default REFUSE */
  float max_gradient_norm;  /* the sum of a key's gradients is scaled down to this Euclidean norm,
                             * which is computed in float64; finite, >= 0. 0 (default): no limit */
  float max_gradient_value; /* each number of each gradient is clipped to [-value, value] before
                             * gradients are summed; finite, >= 0. 0 (default): no limit */
  int32_t rounding;         /* EMBANK_ROUNDING_*; default NEAREST. F32: NEAREST */
  uint32_t expected_rows_log2; /* a hint: the table will have about 2^n rows, and the index makes
                             * space for them at once, as far as half of the free dram_bytes go
                             * (without a limit, half of the machine's memory), and keeps it. At
                             * most 40. 0 (default): unknown */
  float ftrl_l1, ftrl_l2;   /* FTRL: penalties; finite, >= 0. Defaults 0. Others: 0 */
  float decoupled_weight_decay; /* the weights are multiplied by 1 - learning_rate * this before
                             * their step, as AdamW does; finite, >= 0. Default 0. FTRL: 0 */
} embank_table_options;

typedef struct embank_table_info {
  uint32_t struct_size;     /* set by the caller to sizeof(embank_table_info) */
  uint32_t dim;
  int32_t value_type, optimizer;
  uint64_t rows, rows_hbm, rows_dram, rows_pmem, rows_ssd; /* all rows; rows in each tier, where
                             * rows_ssd counts rows that are in the log alone */
  uint64_t row_bytes;       /* bytes of one row in DRAM: header, vector, state, padding */
  uint64_t lookups_hbm;     /* positions of lookups that device memory answered since the open */
} embank_table_info;

/* ---- about: any thread, at any time ---- */
/* Returns "major.minor.patch", a static string. */
EMBANK_API const char *embank_version(void);
/* Returns the version of the ABI. Each release that appends to this header adds one. */
EMBANK_API uint32_t embank_abi_version(void);

/* Returns how this library was built, or which variant it uses on this machine, as a static string.
 * Keys: "cuda" "io_uring" "pmem" "mpi" "nccl" "simd" "git". NULL: the part is not in this build, or
 * the key is unknown or NULL. */
EMBANK_API const char *embank_build_info(const char *key);

/* Returns the name of a status, "OK", "INVALID_ARGUMENT", ..., as a static string. "UNKNOWN": the
 * number is not a status. */
EMBANK_API const char *embank_status_name(embank_status code);

/* Returns the message of the last failed call of this thread: it names the argument, the limit and
 * a remedy. "": no call of this thread has failed. Valid until the next call of this thread that
 * fails. */
EMBANK_API const char *embank_last_error(void);

/* Sets the function that receives log lines; NULL (default): log lines are dropped. The sink is
 * process-wide and may be called from any thread. It must not call embank. It must stay callable
 * until no call that logs is running. */
EMBANK_API void embank_set_log_sink(void (*sink)(int32_t level, const char *message, void *user),
                                    void *user);

/* ---- store ---- */

/* Fills the first struct_size bytes of *options: known fields with their defaults, further bytes
 * with zeros. Does nothing if options is NULL or struct_size is below 4. */
EMBANK_API void embank_store_options_init(embank_store_options *options, uint32_t struct_size);

/* [setup] Opens a store. options == NULL: all defaults, which is a store in memory. The caller
 * closes *store with embank_store_close.
 *
 * With a path, the store has the tables and rows of its last checkpoint, and is empty if there is
 * none yet. Rows for which dram_bytes has no space are in a log: files in the directory. Later
 * changes of the path (chdir, a rename, another symbolic link) do not affect an open store.
 *
 * A path is open either in one store that changes it, or READ_ONLY in any number of stores, in one
 * process or in many. The lock is flock on the directory and on the file LOCK in it
 * (docs/durability.md). A store that is open READ_ONLY:
 *   - creates, writes and removes nothing in the directory, which may be write-protected;
 *   - still moves rows between the log, memory and device memory, within dram_bytes and hbm_bytes;
 *   - treats EMBANK_MISSING_CREATE as EMBANK_MISSING_DEFAULT;
 *   - answers FAILED_PRECONDITION, before anything is done, to calls that would change tables,
 *     rows, state or a learning rate, to embank_checkpoint and to embank_checkpoint_start. All
 *     other calls work, also embank_export.
 *
 * With a pmem_path, rows that leave DRAM and rows that a checkpoint writes go to segments in PMem
 * while it has space, and otherwise to segments under path. Rows that PMem has no space for any
 * more are moved to path, the coldest ones first. An open needs the directory as long as rows are
 * in it; an export does not. If the directory is removed while the store is open, the next
 * checkpoint moves its rows to path (docs/durability.md).
 *
 * An open that fails leaves no file and no directory that it has made, unless it has no memory or
 * no descriptor to remove them.
 *
 * A store uses at most half of the process's descriptors (RLIMIT_NOFILE at the open) for the files
 * of its log, and a few more; docs/durability.md lists them.
 *
 * INVALID_ARGUMENT: an option is invalid, or a path has too long a name.
 * UNIMPLEMENTED: an option asks for a part that is not built yet.
 * RESOURCE_EXHAUSTED: the store's memory does not fit.
 * With a path also:
 * NOT_FOUND: there is no store at path, and flags do not have CREATE.
 * UNAVAILABLE: the store is open elsewhere to be changed; or it is open READ_ONLY elsewhere, and
 *   this open is not READ_ONLY; or the device fails.
 * FAILED_PRECONDITION: the store has another seed (READ_ONLY takes the store's own) or another
 *   format version; or PREVIOUS was asked for and there is no checkpoint before the last; or LOCK
 *   is a directory.
 * DATA_LOSS: a file is damaged or missing. The message names it, and the older checkpoint if that
 *   can be opened. The command `embank repair` makes a new store of the rows that can be read.
 * PERMISSION_DENIED: the system does not allow access to a file.
 * With a pmem_path also:
 * UNAVAILABLE: libpmem is not installed (package libpmem1; READ_ONLY does not need it), or another
 *   store has the directory open.
 * FAILED_PRECONDITION: rows are in PMem, and pmem_path is NULL, is not there or is not mounted. The
 *   message names the directory and the number of rows. Or LOCK there is a directory.
 * INVALID_ARGUMENT: pmem_path is not a directory, its parent does not exist, or files cannot be
 *   made in it; or it is path, or that of another store (also of the source of an export); or the
 *   store is older than its PMem: it is a copy that was made before a checkpoint which used
 *   pmem_path.
 * UNIMPLEMENTED: the file system of pmem_path does not map files. */
EMBANK_API embank_status embank_store_open(const embank_store_options *options,
                                           embank_store **store);

/* [setup] Frees the store, its tables and its memory, whatever it returns. Close all scans first.
 * Changes since the last checkpoint are lost: closing makes nothing durable, except that it waits
 * for the end of a started checkpoint. It deletes no file. */
EMBANK_API embank_status embank_store_close(embank_store *store);

/* [data] Returns the options with which the store works: those of the open, with numbers in the
 * place of 0 where the store chose them (worker_threads, pin_batches; with hbm_bytes, warmup_iters
 * and flush_iters), and without those that it ignores (READ_ONLY: ssd_bytes, pmem_bytes).
 * durability is CHECKPOINT with a path, and NONE without. Fills the first options->struct_size
 * bytes; the caller sets struct_size first. path and pmem_path, as they were given, are the store's
 * strings: valid until it is closed. */
EMBANK_API embank_status embank_store_get_options(embank_store *store,
                                                  embank_store_options *options);

/* ---- tables ---- */

/* Like embank_store_options_init. */
EMBANK_API void embank_table_options_init(embank_table_options *options, uint32_t struct_size);

/* [setup] Creates an empty table and returns its handle in *table. name: 1 to 255 bytes of UTF-8
 * without '/' and newline. A store has at most 4095 tables.
 *
 * Tables share slots in memory if their rows have the same size, the same eviction and the same
 * on_full: a row of one can take the place of a row of another. All other tables exchange memory in
 * pages of 2 MiB:
 *   - with a path, pages move to the tables that evict their rows sooner;
 *   - without a path, only a page without rows moves. So when other tables have filled dram_bytes,
 *     a new table has its rows REFUSED, even if it forgets.
 *
 * INVALID_ARGUMENT: name or an option is invalid.
 * UNIMPLEMENTED: an option asks for a part that is not built yet.
 * ALREADY_EXISTS: the store has a table of this name.
 * RESOURCE_EXHAUSTED: no memory for the table; or, with a path, dram_bytes has no memory to write
 *   rows of one more size (part of fixed_bytes of embank_estimate), or ssd_bytes does not hold one
 *   row of it. The message names the bytes that are needed. */
EMBANK_API embank_status embank_table_create(embank_store *store, const char *name,
                                             const embank_table_options *options,
                                             embank_table **table);

/* [setup] Returns the handle of an existing table: the same handle in every call. The options of a
 * table are saved with it; those that were set later are saved by checkpoints, too.
 *
 * NOT_FOUND: the store has no table of this name. */
EMBANK_API embank_status embank_table_open(embank_store *store, const char *name,
                                           embank_table **table);

/* [setup] Erases a table and all its rows. Calls on its handle are FAILED_PRECONDITION from then
 * on, also when a new table has the name. The handle takes 12 KiB of dram_bytes until the store is
 * closed.
 *
 * NOT_FOUND: the store has no table of this name.
 * With a path also DATA_LOSS, UNAVAILABLE or RESOURCE_EXHAUSTED: the drop is incomplete, since the
 *   log cannot list the table's rows. The handle does not work any more. Drop the table again: its
 *   name is free when that returns OK. */
EMBANK_API embank_status embank_table_drop(embank_store *store, const char *name);

/* [data] Returns the options of a table, as they are now, in the first options->struct_size bytes
 * of *options. The caller sets struct_size first.
 *
 * INVALID_ARGUMENT: struct_size is invalid.
 * FAILED_PRECONDITION: the table was dropped. */
EMBANK_API embank_status embank_table_get_options(embank_table *table,
                                                  embank_table_options *options);

/* The fields of embank_table_set_options. */
enum { EMBANK_SET_LEARNING_RATE = 1u,
       EMBANK_SET_BETAS = 2u,         /* beta1 and beta2 */
       EMBANK_SET_EPSILON = 4u,
       EMBANK_SET_WEIGHT_DECAY = 8u,  /* weight_decay and decoupled_weight_decay */
       EMBANK_SET_CLIPPING = 16u,     /* max_gradient_norm and max_gradient_value */
       EMBANK_SET_ROUNDING = 32u,
       EMBANK_SET_FTRL = 64u };       /* ftrl_l1 and ftrl_l2 */

/* [data] Changes options of a table for the gradient batches that begin after this call; a new row,
 * and the state of an upserted one, follow them, too. Takes the fields of *options that `fields`, a
 * sum of EMBANK_SET_*, names, all at one moment, and looks at no others. Checkpoints save them.
 *
 * INVALID_ARGUMENT: a field is invalid, as in embank_table_create, or *options ends before it
 *   (struct_size); nothing was changed.
 * FAILED_PRECONDITION: the table was dropped, or the store is READ_ONLY. */
EMBANK_API embank_status embank_table_set_options(embank_table *table,
                                                  const embank_table_options *options,
                                                  uint32_t fields);

/* [data] Fills the first info->struct_size bytes of *info. The caller sets struct_size first. */
EMBANK_API embank_status embank_table_get_info(embank_table *table, embank_table_info *info);

/* [data] Returns the names of all tables in the order of their creation, each with a newline behind
 * it. */
EMBANK_API embank_status embank_table_names(embank_store *store, char *names, uint64_t cap,
                                            uint64_t *needed);

/* ---- data: n keys in, n rows or outcomes out ----
 *
 * rows: n rows, each of dim values of the table's value_type.
 * state: n rows of float32 numbers, as many in each row as the optimizer has:
 *   NONE, SGD          none
 *   ADAGRAD            dim: s
 *   ROWWISE_ADAGRAD    1: s
 *   ADAM               2 * dim + 1: m, v, the number of steps
 *   FTRL               2 * dim: z, n
 * outcomes: n bytes EMBANK_ROW_*, or NULL. With outcomes the status is OK, whatever they are. With
 * NULL it is the first of these that applies; the rest of the batch is done all the same:
 *   UNAVAILABLE          a key is UNAVAILABLE
 *   DATA_LOSS            a key is DATA_LOSS
 *   RESOURCE_EXHAUSTED   a key is REFUSED
 *   OUT_OF_RANGE         a key is NOT_FINITE
 *   NOT_FOUND            a key is ABSENT, in the calls whose contract says so
 *
 * Every data call can return these; then nothing was done:
 * INVALID_ARGUMENT: a pointer, a size or a value is invalid.
 * FAILED_PRECONDITION: the table was dropped; or the store is READ_ONLY and the call changes it.
 * RESOURCE_EXHAUSTED: no memory for the call, which needs at most 64 MiB + 128 bytes per key.
 *
 * REFUSED rows. A row is REFUSED when memory or the index has no space for it. With ssd_bytes, the
 * store also reserves enough space for one checkpoint. A change that would use reserved space is
 * REFUSED, also a change of an existing row; erase is never refused. embank_checkpoint frees space,
 * and the message says so. This holds for tables that forget, too. A batch of any size makes its
 * space as it goes, and is one batch for checkpoints all the same: a checkpoint waits for its end.
 *
 * Forgotten rows. In a table that forgets, a new row may erase another one. Without a path, a batch
 * erases its own rows last: when it is larger than memory, its first rows may be gone at its end.
 * With a path, rows are erased at the end of the call, a large batch also while it goes on, in all
 * tables that forget; they may be rows of the batch. When the index is full, rows are erased before
 * new ones come; calls at the same time on tables that do not forget may take their places.
 *
 * DATA_LOSS rows, with a path only. The record of a row in the log is damaged, or the device does
 * not read it. embank_upsert replaces such a row and embank_erase erases it; both answer FOUND. All
 * other calls leave it as it is. If the footer of the record's file is damaged too, the key of the
 * record is unknown. Then every call answers DATA_LOSS for the key, also upsert and erase, and so
 * it does for the few absent keys that share the place in the index.
 *
 * UNAVAILABLE rows, with a path only. The process has no descriptor left for the file of the row's
 * record (RLIMIT_NOFILE), or the machine no memory to read it. The call waits some tenths of a
 * second for a descriptor that another thread reads with. A later call finds the row, once there is
 * one. As for DATA_LOSS, an output row stays as it is, and every call that answers DATA_LOSS may
 * answer UNAVAILABLE instead. embank_upsert replaces such a row and embank_erase erases it, if the
 * owner of the record is known without the file. */

/* [data] Copies the rows of n keys to `rows`. A key without a row is answered as `missing` says.
 * Each row is copied whole: as it was at one moment, never half of a change. Each position that is
 * FOUND or CREATED adds one to the row's heat.
 *
 * FOUND: the row exists.
 * CREATED: this position created the row; later positions of the same key are FOUND.
 * REFUSED: there is no space to create the row; the initial value is answered.
 * ABSENT: there is no row, and missing is not CREATE (or the store is READ_ONLY).
 * DATA_LOSS, UNAVAILABLE: the row cannot be read; its row of `rows` stays as it is. */
EMBANK_API embank_status embank_lookup(embank_table *table, const uint64_t *keys, uint64_t n,
                                       int32_t missing, void *rows, uint64_t row_stride,
                                       uint8_t *outcomes);

/* [data] Writes rows: creates absent ones, overwrites the others. The optimizer state becomes that
 * of a new row. The last position of a repeated key wins.
 *
 * FOUND: an existing row was overwritten, also one that could not be read.
 * CREATED: the row is new.
 * REFUSED: there is no space; nothing was written.
 * DATA_LOSS, UNAVAILABLE: nothing was written; see "DATA_LOSS rows". */
EMBANK_API embank_status embank_upsert(embank_table *table, const uint64_t *keys, uint64_t n,
                                       const void *rows, uint64_t row_stride, uint8_t *outcomes);

/* [data] Makes one optimizer step for each distinct key, with the sum of the gradients of its
 * positions. gradients: n rows of dim float32 numbers, whatever the value_type. docs/arithmetic.md
 * defines the results bit for bit. All positions of a key have the same outcome.
 *
 * FOUND: the step was made.
 * ABSENT: there is no row, and nothing was done (NOT_FOUND without outcomes).
 * NOT_FINITE: the sum of the gradients, a value of the row or its state would not be finite after
 *   the step, or is not finite already. The row is as it was (OUT_OF_RANGE without outcomes), and
 *   stays so until it is written (embank_upsert, embank_set_state) or a step leads to finite
 *   numbers. max_gradient_norm and max_gradient_value keep gradients small.
 * REFUSED, DATA_LOSS, UNAVAILABLE: nothing was done.
 *
 * INVALID_ARGUMENT: a gradient is NaN or infinite. The message names the first such key. No step of
 *   the batch was made.
 * FAILED_PRECONDITION: the table has no optimizer. */
EMBANK_API embank_status embank_apply_gradients(embank_table *table, const uint64_t *keys,
                                                uint64_t n, const float *gradients,
                                                uint64_t row_stride, uint8_t *outcomes);

/* [data] Erases rows.
 *
 * FOUND: the row was erased, also one that could not be read.
 * ABSENT: there is no row; later positions of a key that was erased are ABSENT, too.
 * DATA_LOSS, UNAVAILABLE: nothing was erased; see "DATA_LOSS rows". */
EMBANK_API embank_status embank_erase(embank_table *table, const uint64_t *keys, uint64_t n,
                                      uint8_t *outcomes);

/* [data] Says which keys have rows: FOUND or ABSENT. Adds no heat. */
EMBANK_API embank_status embank_contains(embank_table *table, const uint64_t *keys, uint64_t n,
                                         uint8_t *outcomes);

/* [data] Reads the rows of a batch from the log into memory, so that the next lookup or change
 * finds them there. Returns when they are there. Call it from a thread of its own for a batch that
 * comes soon. It is a hint: it creates nothing, changes nothing and adds no heat. Absent keys are
 * skipped. A row that cannot be read stays in the log, and its lookup will report it. Without a
 * path, the call checks its arguments and does nothing.
 *
 * The rows are pinned: they stay in memory until the first of a change of the row, the lookup
 * batch number pin_batches of the table after this call, and the close of the store. Limits:
 *   pinned rows                       at most a quarter of dram_bytes
 *   pinned rows that were in memory   at most half of that; the rest is for rows from the log
 *   rows beyond these limits          read without a pin
 *   rows read                         at most half of the rows in memory; further ones only while
 *                                     memory has free space
 * Pinned rows may still be evicted when nothing else is left.
 *
 * RESOURCE_EXHAUSTED: no memory for the call itself. */
EMBANK_API embank_status embank_prefetch(embank_table *table, const uint64_t *keys, uint64_t n);

/* The pooling of a bag of rows: what becomes of them (docs/arithmetic.md). */
enum { EMBANK_POOL_NONE = 0,    /* no bags: each key has a row of its own */
       EMBANK_POOL_SUM = 1,     /* their sum, each times its weight where there are weights */
       EMBANK_POOL_MEAN = 2,    /* their sum / the number of keys of the bag; with weights, each
                                 * times its weight, and / the sum of these; zeros if that is 0 */
       EMBANK_POOL_SQRT_N = 3 };/* their sum / the square root of that number */

/* The type of the integers in an array. Signed keys extend: -1 is the key 2^64 - 1. */
enum { EMBANK_INDEX_U64 = 0, EMBANK_INDEX_I64 = 1, EMBANK_INDEX_U32 = 2, EMBANK_INDEX_I32 = 3 };

/* Flags of a feature. */
enum { EMBANK_FEATURE_PADDING = 1u,   /* padding_key is not a key, but fills a place */
       EMBANK_FEATURE_ABSOLUTE = 2u };/* offsets may begin with any number */

/* One feature of a packed call: keys of one table, in bags or each for itself. All features of a
 * call have the same struct_size, at least 72, that of the fields up to row_stride. Fields behind
 * row_stride that are all 0 mean nothing.
 *
 * Padding. A key that equals padding_key, after its extension to 64 bits, adds nothing to its bag
 * and does not count in the divisor of MEAN and SQRT_N. Its outcome is ABSENT. It creates no row,
 * adds no heat and has no gradient. With POOL_NONE, a lookup writes a row of zeros for it,
 * whatever `missing` is, and its gradient is not read. A position in a message does not count
 * padding keys.
 *
 * Absolute offsets index keys and weights, as in a batch of which the feature is a part: its keys
 * are keys[offsets[0]] to keys[offsets[bags] - 1], and n == offsets[bags] - offsets[0].
 *
 * Arrays with 64-bit integers are used in place. A call needs memory for
 *   narrower keys or offsets   8 bytes for each, filled in one pass
 *   features in which padding keys occur   12 bytes for each key, 4 more with weights, 1 more with
 *                              outcomes, 8 for each offset; with POOL_NONE, as much more as
 *                              pooled features need */
typedef struct embank_feature {
  uint32_t struct_size;    /* set by the caller to sizeof(embank_feature) */
  int32_t pooling;         /* EMBANK_POOL_* */
  embank_table *table;
  const uint64_t *keys;    /* n keys, bag after bag; NULL with a key_type other than U64 */
  uint64_t n;
  const uint64_t *offsets; /* bags + 1 numbers: where each bag begins, from 0 on, never falling, and
                            * n last. A bag may be empty. NULL with POOL_NONE, and with an
                            * offset_type other than U64 */
  uint64_t bags;           /* 0 with POOL_NONE */
  const float *weights;    /* n finite weights, with POOL_SUM; with POOL_MEAN, the sum of a bag's
                            * is finite, too; NULL: all are 1 */
  void *rows;              /* see the calls: bags rows, or n with POOL_NONE */
  uint64_t row_stride;
  int32_t key_type;        /* EMBANK_INDEX_* */
  int32_t offset_type;     /* EMBANK_INDEX_* */
  const void *typed_keys;  /* the keys, with a key_type other than U64 */
  const void *typed_offsets; /* the offsets, with an offset_type other than U64 */
  uint64_t padding_key;    /* with FEATURE_PADDING; else 0 */
  uint32_t flags;          /* sum of EMBANK_FEATURE_*; ABSOLUTE needs offsets */
  uint32_t reserved;       /* 0 */
} embank_feature;

/* [data] Looks up the keys of all features, in order, as embank_lookup does, and pools them. The
 * features of one table are counted as one batch of it. All tables belong to one store. Each table
 * with pooled features needs up to 256 KiB of memory more, and all those with a feature of 8192
 * keys or more need up to 4 MiB together instead.
 *
 * rows of a feature, written: with POOL_NONE, rows of the table's value_type, as of embank_lookup;
 *   with a pooling, rows of dim float32 numbers, zeros for an empty bag.
 * outcomes: one for each key of all features, in order, as of embank_lookup; may be NULL.
 *
 * In a bag, a key that is ABSENT under EMBANK_MISSING_SKIP, DATA_LOSS or UNAVAILABLE adds nothing,
 * but still counts in the divisor.
 *
 * INVALID_ARGUMENT: names the feature by its number; nothing was done.
 * RESOURCE_EXHAUSTED: no memory for the call itself; or, without outcomes, keys were refused, and
 *   the rest was done. The message names the feature.
 * DATA_LOSS, UNAVAILABLE: without outcomes, rows could not be read; the rest was done.
 * FAILED_PRECONDITION: a table was dropped; nothing was done.
 * UNAVAILABLE also: the device of a store with hbm_bytes is lost; see embank_flush_hot. */
EMBANK_API embank_status embank_lookup_packed(const embank_feature *features,
                                              uint64_t feature_count, int32_t missing,
                                              uint8_t *outcomes);

/* [data] Makes one optimizer step for each distinct key of each table, with the sum of the
 * gradients of its positions in all features of the table, in their order. A checkpoint has either
 * all steps of the call or none.
 *
 * rows of a feature, read: the gradients, dim float32 numbers for each bag, or for each key with
 *   POOL_NONE. A position in a bag has the gradient of its bag, divided as the pooling says,
 *   times its weight.
 * outcomes: one for each key of all features, in order, as of embank_apply_gradients; may be NULL.
 * With weights, the call also needs memory for one gradient per key.
 *
 * Statuses are those of embank_apply_gradients. A position in their messages counts from the first
 * feature of the table.
 * INVALID_ARGUMENT, and nothing was done: an argument is invalid, and the message names the feature
 *   by its number; or a gradient, or its product with a weight, is NaN or infinite, and the message
 *   names the table, and the row or the position in the feature. */
EMBANK_API embank_status embank_apply_gradients_packed(const embank_feature *features,
                                                       uint64_t feature_count, uint8_t *outcomes);

/* [data] Prefetches the keys of all features, as embank_prefetch does, but no padding keys. Uses of
 * each feature table, keys and n, the fields behind row_stride, and with FEATURE_ABSOLUTE the first
 * offset. The call evicts at most half of the rows in memory of each row size, which
 * the tables of this row size share. */
EMBANK_API embank_status embank_prefetch_packed(const embank_feature *features,
                                                uint64_t feature_count);

/* [data] Reads the optimizer state of rows. The output of an ABSENT key is left as it is.
 *
 * FOUND, ABSENT (NOT_FOUND without outcomes), DATA_LOSS, UNAVAILABLE.
 *
 * FAILED_PRECONDITION: the table has no optimizer state (NONE, SGD). */
EMBANK_API embank_status embank_get_state(embank_table *table, const uint64_t *keys, uint64_t n,
                                          float *state, uint64_t row_stride, uint8_t *outcomes);

/* [data] Writes the optimizer state of existing rows. The last position of a repeated key wins.
 *
 * FOUND, ABSENT (NOT_FOUND without outcomes), REFUSED, DATA_LOSS, UNAVAILABLE.
 *
 * INVALID_ARGUMENT: an Adam step count is not within 0 .. 16777216; nothing was written.
 * FAILED_PRECONDITION: the table has no optimizer state (NONE, SGD). */
EMBANK_API embank_status embank_set_state(embank_table *table, const uint64_t *keys, uint64_t n,
                                          const float *state, uint64_t row_stride,
                                          uint8_t *outcomes);

/* [data] Returns the heat of rows: how often each was looked up, at most 1048575. Heat ages: it
 * halves as the store's lookups go on (docs/arithmetic.md). The heat of an ABSENT key is 0. Heat is
 * exact for a row that has not left memory. The heat of a row that was evicted is approximate,
 * usually too low. Checkpoints save heat. */
EMBANK_API embank_status embank_get_heat(embank_table *table, const uint64_t *keys, uint64_t n,
                                         uint32_t *heat, uint8_t *outcomes);

/* [data] Writes whole rows, as embank_scan_next_full gives them: does what embank_upsert does, but
 * states and heats are the caller's.
 *   state   n states, as of embank_set_state. NULL: that of a new row, as in embank_upsert
 *   heat    n heats, at most 1048575 each. NULL: a row keeps its heat; a new row has heat 0
 * state_stride is the row_stride of the states. Outcomes and statuses are those of embank_upsert.
 *
 * INVALID_ARGUMENT: also, a heat is above 1048575, or an Adam step count is not within
 *   0 .. 16777216. Nothing was written.
 * FAILED_PRECONDITION: also, state is not NULL and the table has no optimizer state (NONE, SGD). */
EMBANK_API embank_status embank_upsert_full(embank_table *table, const uint64_t *keys, uint64_t n,
                                            const void *rows, uint64_t row_stride,
                                            const float *state, uint64_t state_stride,
                                            const uint32_t *heat, uint8_t *outcomes);

/* [data] Sets the learning rate of the gradient batches that begin after this call. The limits are
 * those of embank_table_options. */
EMBANK_API embank_status embank_set_learning_rate(embank_table *table, float learning_rate);

/* ---- scan ---- */

/* [data] Starts a scan over a table. The scan returns every row that exists from its start to its
 * end exactly once, in no particular order. Rows that are created or erased meanwhile may or may
 * not appear. Each row is whole: as it was at one moment since the start.
 *
 * A scan holds no lock between calls. One thread at a time uses it. Beyond dram_bytes, it needs
 *   8 bytes per 4096 rows of the table
 *   for rows on SSD, up to 64 MiB: 8 bytes for each row of one pass over them
 * It reads rows on SSD in the order of the files, and evicts and promotes nothing. */
EMBANK_API embank_status embank_scan_open(embank_table *table, embank_scan **scan);

/* Returns the next rows, at most cap (> 0), and their number in *n. *n == 0: the end. keys and rows
 * have space for cap of them; what lies behind the n-th is undefined. Adds no heat.
 *
 * FAILED_PRECONDITION: the table was dropped.
 * RESOURCE_EXHAUSTED: no memory; the call may be repeated.
 * DATA_LOSS: rows cannot be read. The message names one of them, or says that their keys are not
 *   known. The next call continues behind them.
 * UNAVAILABLE: rows cannot be read now; see "UNAVAILABLE rows". The next call tries them again. */
EMBANK_API embank_status embank_scan_next(embank_scan *scan, uint64_t *keys, void *rows,
                                          uint64_t row_stride, uint64_t cap, uint64_t *n);

/* Returns the next rows with their states and heats. Each row, its state and its heat are of one
 * moment; in a store with hbm_bytes, the heat of a row in device memory may be of another moment of
 * the call. Any of keys, rows, state and heat may be NULL: then that is not wanted, and its stride
 * is ignored. A scan may take calls of embank_scan_next and of this one in turn.
 *   state   space for cap states, as of embank_get_state; state_stride is their row_stride
 *   heat    as of embank_get_heat
 * All else is as in embank_scan_next.
 *
 * FAILED_PRECONDITION: also, state is not NULL and the table has no optimizer state (NONE, SGD). */
EMBANK_API embank_status embank_scan_next_full(embank_scan *scan, uint64_t *keys, void *rows,
                                               uint64_t row_stride, float *state,
                                               uint64_t state_stride, uint32_t *heat, uint64_t cap,
                                               uint64_t *n);

/* Ends a scan. Close it before its store. NULL: does nothing. */
EMBANK_API void embank_scan_close(embank_scan *scan);

/* ---- durability ----
 * FAILED_PRECONDITION, in the calls that take a store: it has no path. */

/* The progress of a long call, on the thread that made the call: `done` of `total`, first 0, last
 * total. Returns 0 to continue. Any other value cancels the call, which then returns CANCELLED. A
 * child process that the function forks must not return from it. */
typedef int32_t (*embank_progress)(uint64_t done, uint64_t total, void *user);

/* [data] Makes the store durable: all tables and rows as they are at one moment of the call, at
 * which no batch is half done. Other calls go on meanwhile; a second checkpoint waits for the
 * first.
 *   blob      blob_bytes bytes of the caller, saved with it: at most 32 MiB. NULL: none.
 *   *sequence receives the number of the checkpoint, greater than any before. NULL: not wanted.
 * When the call has returned OK, opening the path gives this checkpoint or a later one, whatever
 * happens to the process or the machine.
 *
 * When the call fails, the checkpoint before stays, and the store works on:
 * RESOURCE_EXHAUSTED: memory or the disk is full; or ssd_bytes has no space for the blob. A blob up
 *   to the larger of 16 KiB and the last one always fits. Space for all else is always reserved.
 * UNAVAILABLE: the device fails, and the checkpoint may or may not have been made; or the file LOCK
 *   was removed or replaced, and nothing was changed. */
EMBANK_API embank_status embank_checkpoint(embank_store *store, const void *blob,
                                           uint64_t blob_bytes, uint64_t *sequence);

/* [data] Starts a checkpoint, and returns when its moment is fixed. The checkpoint has all changes
 * of calls that returned before this call began, and none of calls that begin after it returned. A
 * batch, or a packed call, is in it wholly or not at all. A thread of the store then writes the
 * checkpoint, slowly beside batches of changes, as embank_checkpoint does.
 *   blob      as in embank_checkpoint; it is copied before the call returns.
 * OK says that the checkpoint is started. It is durable when embank_checkpoint_finish returns OK; a
 * crash before leaves this checkpoint or the one before, each as a whole.
 *
 * Until embank_checkpoint_finish has returned, these calls act as follows:
 *   embank_checkpoint_start                 FAILED_PRECONDITION
 *   embank_checkpoint, embank_table_drop,   wait for the end of the started checkpoint, and make it
 *     embank_export, embank_checkpoint_blob   run at full speed; embank_checkpoint_finish still
 *                                             returns its result
 *   embank_store_close                      waits for its end; if it failed, the log sink is told
 *   all other calls                         go on
 *
 * When the call fails, nothing is started, and the checkpoint before stays:
 * FAILED_PRECONDITION: a checkpoint is started and not finished. Call embank_checkpoint_finish.
 * RESOURCE_EXHAUSTED, UNAVAILABLE: as in embank_checkpoint; or the system refuses a thread. */
EMBANK_API embank_status embank_checkpoint_start(embank_store *store, const void *blob,
                                                 uint64_t blob_bytes);

/* [data] Waits for the end of the started checkpoint, at full speed from now on. Then another one
 * can be started, whatever this call returns.
 *   *sequence as in embank_checkpoint.
 * OK: the checkpoint is durable, as after embank_checkpoint.
 *
 * When the checkpoint has failed, the one before stays, and the store works on:
 * RESOURCE_EXHAUSTED, UNAVAILABLE: as in embank_checkpoint.
 * FAILED_PRECONDITION: no checkpoint is started, or another thread is in this call. One call gets
 *   the result. */
EMBANK_API embank_status embank_checkpoint_finish(embank_store *store, uint64_t *sequence);

/* [data] Returns the blob of the last checkpoint, made by this store or found when it was opened.
 * *needed receives its number of bytes; no NUL is added. See "Strings out".
 *
 * NOT_FOUND: there is no checkpoint. */
EMBANK_API embank_status embank_checkpoint_blob(embank_store *store, void *blob, uint64_t cap,
                                                uint64_t *needed);

/* The facts about a checkpoint. */
typedef struct embank_checkpoint_info {
  uint32_t struct_size;    /* set by the caller to sizeof(embank_checkpoint_info) */
  uint32_t reserved;       /* 0 */
  uint64_t sequence;       /* its number, as of embank_checkpoint */
  int64_t unix_ns;         /* its moment by the clock of the machine that made it, in nanoseconds
                            * since 1970 (UTC). 0: it was made before checkpoints had a time */
  uint64_t bytes;          /* of the records of its rows, of its heat and of its blob */
  uint64_t blob_bytes;
  uint64_t rows;           /* of all tables */
} embank_checkpoint_info;

/* [data] Describes the last checkpoint, made by this store or found when it was opened. It makes
 * none, and does not wait for one that is under way. Fills the first info->struct_size bytes of
 * *info. The caller sets struct_size first.
 *
 * NOT_FOUND: there is no checkpoint. */
EMBANK_API embank_status embank_get_checkpoint_info(embank_store *store,
                                                    embank_checkpoint_info *info);

/* [data] Makes a new, independent store out of the last checkpoint, made by this store or found
 * when it was opened. `directory` must be empty or not exist; its parent must exist. Other calls go
 * on meanwhile. The new store has the rows, blob and seed of this one, and no previous checkpoint.
 * It is durable when the call returns OK. Later changes of one store never show in the other.
 *   - Files that never change again are linked and take no space twice. The others are copied, and
 *     on another file system all of them.
 *   - Segments of the exported checkpoint are not removed before the call ends.
 *   - progress (may be NULL) counts bytes. It may call embank, but must not close the store.
 *
 * When the call fails, it removes what it made, as far as it can. The rest is not opened as a
 * store, unless it is whole.
 * FAILED_PRECONDITION: there is no checkpoint.
 * ALREADY_EXISTS: the directory is not empty.
 * NOT_FOUND: the parent of the directory does not exist.
 * CANCELLED: progress returned a value other than 0.
 * RESOURCE_EXHAUSTED: memory, descriptors or the disk are used up.
 * PERMISSION_DENIED: the system does not allow it.
 * UNAVAILABLE: the device fails, or another process uses the directory.
 * DATA_LOSS: a file with rows is missing or cut off. */
EMBANK_API embank_status embank_export(embank_store *store, const char *directory,
                                       embank_progress progress, void *user);

/* Reads all files of a store and reports whether they are as they were written. It reads the
 * manifests and heat of the last two checkpoints, and headers, footers and records of the log. It
 * writes nothing. The store must be closed or open READ_ONLY, and stay so until the call ends.
 *   progress (may be NULL) counts segments.
 *   report: JSON that names each damaged part and its rows; docs/verify.md lists its fields. See
 *   "Strings out"; a call with cap == 0 reads all files, too.
 *
 * OK: there is no damage.
 * DATA_LOSS: there is damage. report and *needed are written as for OK.
 * RESOURCE_EXHAUSTED: cap is too small (*needed is set), or memory is used up.
 * NOT_FOUND: there is no store in the directory.
 * UNAVAILABLE: the store is open to be changed.
 * FAILED_PRECONDITION: a newer version wrote the store.
 * CANCELLED: progress returned a value other than 0.
 * PERMISSION_DENIED: the system does not allow it. */
EMBANK_API embank_status embank_verify(const char *directory, embank_progress progress, void *user,
                                       char *report, uint64_t cap, uint64_t *needed);

/* ---- rows in device memory ---- */

/* [data] Renews the set of rows in device memory now (the top-k flush), and returns when that is
 * done: the rows with the most heat per byte move up as long as hbm_bytes has space, others move
 * down. To replace a row in device memory, another row must have more than 1.25 times its heat per
 * byte. Batches go on meanwhile; no change of a row is lost. Beyond dram_bytes, the call needs 24
 * bytes for each row that moves, and 64 for each row whose heat per byte is close to the lowest
 * that fits.
 *
 * FAILED_PRECONDITION: the store has no hbm_bytes.
 * RESOURCE_EXHAUSTED: no memory for the list of moves; no row has moved.
 * UNAVAILABLE: the device is lost. Close the store and open it again: it is as its last checkpoint
 *   left it. */
EMBANK_API embank_status embank_flush_hot(embank_store *store);

/* ---- device memory: stores with hbm_bytes ----
 *
 * The memory of a store is that of its device: CUDA device cuda_device, or its twin. Host code must
 * not use an address in it. A program without CUDA makes and copies such memory with the first
 * three calls; one with CUDA may also pass memory of its own that is on the same device.
 *
 * stream: a cudaStream_t of the same device; NULL: its default stream. A twin has the default
 * stream only.
 *
 * FAILED_PRECONDITION, in all calls: the store has no hbm_bytes.
 * UNAVAILABLE, in all calls: the device is lost, as in embank_flush_hot. A loss during work that a
 *   call leaves to the stream is reported by a later call. */

/* [data] Makes device memory, aligned to 256 bytes, with any contents. The caller frees it with
 * embank_device_free; closing the store frees the rest. bytes > 0.
 *
 * RESOURCE_EXHAUSTED: the device has less memory. */
EMBANK_API embank_status embank_device_allocate(embank_store *store, uint64_t bytes, void **out);

/* [data] Waits for the store's work on the device, and frees memory of embank_device_allocate. The
 * caller's own work does not use it any more. NULL: does nothing.
 *
 * INVALID_ARGUMENT: embank_device_allocate of this store did not return it, or it was freed. */
EMBANK_API embank_status embank_device_free(embank_store *store, void *memory);

/* [data] Copies bytes from host to device memory, or back, or within device memory. The copy is
 * behind all that is on the stream. Returns when the bytes are there. The two sides must not
 * overlap.
 *
 * INVALID_ARGUMENT: neither side is in memory of the store's device, or a side ends outside of it;
 *   or stream belongs to another device.
 * FAILED_PRECONDITION: stream is capturing. */
EMBANK_API embank_status embank_device_copy(embank_store *store, void *to, const void *from,
                                            uint64_t bytes, void *stream);

/* The three calls below do what embank_lookup, embank_upsert and embank_apply_gradients do, with
 * the same rules, outcomes, statuses and bits. Keys and outcomes are in host memory; rows and
 * gradients are in device memory, where they and row_stride are multiples of the size of a value
 * (F32 and gradients: 4, F16 and BF16: 2).
 *
 * Order. The call's work on the device is behind all that is on the stream when the call begins, so
 * that the stream may fill the rows first. The stream's later work is behind the call's. The store
 * does all work on its device in one order: while the stream's earlier work runs, other calls on
 * rows in device memory wait for it, too.
 *
 * When the call returns, the outcomes are set, and the rows are read or changed for all calls that
 * follow. The copies of rows in device memory may still be on their way; a caller that uses the
 * rows waits for the stream. The host waits
 *   in embank_lookup_device            for a free staging buffer; and for the device, if the rows
 *                                      exceed one buffer
 *   in embank_upsert_device            for rows to be written that are not in device memory
 *   in embank_apply_gradients_device   for the stream's earlier work, and the search for gradients
 *                                      that are NaN or infinite; for the sums of rows that are not
 *                                      in device memory; and for the steps of those that are, since
 *                                      their outcomes say whether they were made
 * Rows in device memory that a call reads or steps do not cross the link to the host. Gradients of
 * equal keys are summed on the device: for each key whose row is not there, one summed gradient
 * crosses the link. Only an upsert of a table with FTRL brings all its rows to the host.
 *
 * A call needs at most 64 MiB + 64 bytes per key of host memory.
 *
 * INVALID_ARGUMENT, and nothing was done: rows or gradients are not in memory of the store's
 *   device, or keys or outcomes are (in the calls for host memory: rows, gradients, states, given
 *   heats or what a scan returns); or stream belongs to another device.
 * FAILED_PRECONDITION, and nothing was done: stream is capturing. */

/* [data] Does what embank_lookup does. */
EMBANK_API embank_status embank_lookup_device(embank_table *table, const uint64_t *keys, uint64_t n,
                                              int32_t missing, void *rows, uint64_t row_stride,
                                              uint8_t *outcomes, void *stream);

/* [data] Does what embank_upsert does. */
EMBANK_API embank_status embank_upsert_device(embank_table *table, const uint64_t *keys, uint64_t n,
                                              const void *rows, uint64_t row_stride,
                                              uint8_t *outcomes, void *stream);

/* [data] Does what embank_apply_gradients does. */
EMBANK_API embank_status embank_apply_gradients_device(embank_table *table, const uint64_t *keys,
                                                       uint64_t n, const float *gradients,
                                                       uint64_t row_stride, uint8_t *outcomes,
                                                       void *stream);

/* The two calls below do what embank_lookup_packed and embank_apply_gradients_packed do, with the
 * same bits, outcomes and statuses. rows of all features are in device memory, where they and
 * row_stride are multiples of the size of a value; all else, the features too, is in host memory.
 * Order, alignment and streams are as above. What crosses the link, each way:
 *   a lookup with POOL_NONE     as in embank_lookup_device
 *   a lookup with a pooling     pooling is done in host memory: rows in device memory that it needs
 *                               come from there, and one row for each bag goes back. For rows from
 *                               there the host waits, and so for the device calls before this one
 *                               and for all work of their streams that came before them. If a
 *                               feature of the same table with POOL_NONE comes before, the host
 *                               also waits for the earlier work of this call's stream
 *   gradients                   one row for each bag, or with POOL_NONE for each key, comes to the
 *                               host, which waits for them and sums them
 * A bag of one key has the same row with POOL_NONE, but for the sign of zeros.
 *
 * Besides the memory of the calls for host memory, a call needs
 *   a lookup    dim * 4 bytes for each bag; with POOL_NONE, as embank_lookup_device, for all
 *               features at once
 *   gradients   dim * 4 bytes for each bag, or with POOL_NONE for each key
 *
 * INVALID_ARGUMENT, FAILED_PRECONDITION: as above, too; nothing was done. */

/* [data] Does what embank_lookup_packed does. */
EMBANK_API embank_status embank_lookup_packed_device(const embank_feature *features,
                                                     uint64_t feature_count, int32_t missing,
                                                     uint8_t *outcomes, void *stream);

/* [data] Does what embank_apply_gradients_packed does. */
EMBANK_API embank_status embank_apply_gradients_packed_device(const embank_feature *features,
                                                              uint64_t feature_count,
                                                              uint8_t *outcomes, void *stream);

/* ---- owners: rows of one table in the stores of many ranks ---- */

/* Says which of `ranks` (1 .. 256) owns each key of a table of this name, whatever the store:
 * owners receives n numbers from 0 to ranks - 1. It opens no store. The rule is a promise
 * (docs/arithmetic.md); rows of one owner take the memory and time of a store without ranks.
 *
 * INVALID_ARGUMENT: no table can have the name, or ranks is out of range. */
EMBANK_API embank_status embank_owner_of(const char *table_name, const uint64_t *keys, uint64_t n,
                                         uint32_t ranks, uint32_t *owners);

/* ---- insight ---- */

/* [data] Returns counters and gauges in the Prometheus text format; docs/metrics.md lists them. */
EMBANK_API embank_status embank_metrics(embank_store *store, char *text, uint64_t cap,
                                        uint64_t *needed);

/* Returns how much memory a store with these tables and numbers of rows needs, as JSON. It opens no
 * store. options == NULL: defaults. tables[i] has rows[i] rows; table_count == 0 is legal. All
 * tables[i] have one struct_size. Options are checked as by embank_store_open and
 * embank_table_create.
 *   "dram_bytes"    dram_bytes that suffices. Without a path: for all rows in memory. With a path:
 *                   the least with which the store takes the rows, nearly all of them on SSD
 *   "fixed_bytes"   part of it for everything but index and rows
 *   "index_bytes"   part of it for the index
 *   "slab_bytes"    part of it for rows in memory
 *   "rows_in_dram"  rows that are in memory
 *   "fits"          true if dram_bytes is within options->dram_bytes (0: no limit) */
EMBANK_API embank_status embank_estimate(const embank_store_options *options,
                                         const embank_table_options *tables, const uint64_t *rows,
                                         uint32_t table_count, char *json, uint64_t cap,
                                         uint64_t *needed);

/* Recommends dram_bytes for a store with a path, so that the share hit_ratio (0 to 1) of all
 * lookups finds its row in memory. Returns the JSON of embank_estimate, for rows_in_dram rows in
 * memory. The model: lookups are independent, and the i-th most popular row is looked up in
 * proportion to i^-zipf_exponent (0 to 4; 0: all rows alike; click logs: about 1). The hit ratio is
 * that of an LRU cache, by Che's approximation (IEEE JSAC 2002).
 *
 * INVALID_ARGUMENT: a number is out of range, or options have no path. */
EMBANK_API embank_status embank_estimate_for_hit_ratio(
    const embank_store_options *options, const embank_table_options *tables, const uint64_t *rows,
    uint32_t table_count, double zipf_exponent, double hit_ratio, char *json, uint64_t cap,
    uint64_t *needed);

/* [data] Returns bytes by tier, as JSON:
 *   "dram"  {"budget", "used", "fixed", "index", "rows", "state", "slack", "huge_pages_refused"};
 *           used = fixed + index + rows + state + slack
 *   "hbm"   with hbm_bytes: {"budget", "rows", "device", "lookups", "sampled_keys", "sampled_hits",
 *           "arrived", "left", "written_back", "flushes", "early_epochs", "flush_seconds"}: rows:
 *           vectors and states of rows in device memory; device: its name, or "twin"; the others
 *           are counts since the open, and the seconds of all flushes
 *   "ssd"   with a path: {"budget", "used", "live", "dirty", "kept"}: used: all segments; live: the
 *           records of rows in them; dirty: bytes that dirty rows in memory will take; kept: space
 *           reserved for those, manifests and heat
 *   "pmem"  with a pmem_path: as "ssd"
 *   "pmem_kind"  with a pmem_path, if known: "pmem" (writes are drained) or "mapped files, msync"
 * docs/metrics.md explains each number. */
EMBANK_API embank_status embank_memory_report(embank_store *store, char *json, uint64_t cap,
                                              uint64_t *needed);

#ifdef __cplusplus
}
#endif
#endif /* EMBANK_H_ */
