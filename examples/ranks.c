/* A table whose rows are spread over the ranks of an MPI job.
 *
 *   mpirun -n RANKS ranks      prints the same for any number of ranks that divides SAMPLES
 *
 * Each rank has a store of its own, with the rows that embank_owner_of gives to this rank. Embank
 * sends nothing: all-to-all exchanges of the program carry, in each step,
 *
 *   ids         from the rank that has them in its part of the batch to their owners,
 *   rows        back from the owners, which look them up,
 *   gradients   to the owners, which apply them.
 *
 * The bits of the rows do not depend on the number of ranks:
 *
 *   - The first values of a row depend on the seed, the name of the table and the key only.
 *   - Rank r has the r-th part of the batch. Ids of the same owner keep their order, and an owner
 *     puts what it receives in the order of ranks. So it has all positions of a key in the order of
 *     the batch, and embank_apply_gradients sums gradients in the order of positions.
 *
 * A trainer that sums the gradients of equal ids before it sends them sends less, but it sums in
 * another order for each number of ranks.
 */
#include <embank.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* A batch has SAMPLES samples with IDS ids, equal ones among them. */
enum { DIM = 16, SAMPLES = 768, IDS_PER_SAMPLE = 4, IDS = SAMPLES * IDS_PER_SAMPLE };
enum { BATCHES = 60, BATCHES_PER_LINE = 20, RANKS_MAX = 256 };

static const char table_name[] = "items";

typedef struct {
  int rank, ranks;
  int sample_count, id_count; /* this rank's part of a batch */
  MPI_Datatype row;
  embank_store* store;
  embank_table* table;
} job;

/* Positions sent to each rank and received from it, and the first of them. */
typedef struct {
  int sent[RANKS_MAX], sent_at[RANKS_MAX];
  int received[RANKS_MAX], received_at[RANKS_MAX];
  int place[IDS]; /* the position at which an id of this rank is sent */
} routes;

/* MPI ends the job by itself if one of its own calls fails. */
static void check(embank_status status, const char* what) {
  if (status == EMBANK_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, embank_status_name(status), embank_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The data set: the id at a position of all batches. Small ids occur more often. */
static uint64_t id_at(uint64_t position) {
  uint64_t x = (position + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  x = (x ^ (x >> 31)) >> 40;
  return (x * x) >> 36;
}

/* A row should become these values. */
static float target(uint64_t id, int i) {
  return (float)((id * 7 + (uint64_t)i * 13) % 64) / 64.0f - 0.5f;
}

/* Sets where the part of each rank begins. Returns the end of the last one. */
static int begins_of(const int* counts, int ranks, int* begins) {
  int end = 0;
  for (int r = 0; r < ranks; ++r) {
    begins[r] = end;
    end += counts[r];
  }
  return end;
}

/* The sharding: sends the ids of this rank to their owners. Sets `keys` to those that this rank
 * owns and received, and returns how many they are: at most IDS. */
static int shard(const job* job, const uint64_t* ids, routes* to, uint64_t* keys) {
  static uint64_t by_owner[IDS];
  static uint32_t owners[IDS];
  int next[RANKS_MAX], n;
  memset(to->sent, 0, sizeof to->sent);
  check(embank_owner_of(table_name, ids, job->id_count, job->ranks, owners), "owner_of");
  for (int p = 0; p < job->id_count; ++p) ++to->sent[owners[p]];
  MPI_Alltoall(to->sent, 1, MPI_INT, to->received, 1, MPI_INT, MPI_COMM_WORLD);
  begins_of(to->sent, job->ranks, to->sent_at);
  n = begins_of(to->received, job->ranks, to->received_at);
  memcpy(next, to->sent_at, sizeof next);
  for (int p = 0; p < job->id_count; ++p) {
    to->place[p] = next[owners[p]]++;
    by_owner[to->place[p]] = ids[p];
  }
  MPI_Alltoallv(by_owner, to->sent, to->sent_at, MPI_UINT64_T, keys, to->received, to->received_at,
                MPI_UINT64_T, MPI_COMM_WORLD);
  return n;
}

/* The model: pulls the sum of a sample's rows to the sum of their targets. The rows become their
 * gradients. Returns the loss of the sample. */
static double pull(const uint64_t* ids, float (*rows)[DIM], const int* place, int sample) {
  const int begin = sample * IDS_PER_SAMPLE, end = begin + IDS_PER_SAMPLE;
  double loss = 0;
  for (int i = 0; i < DIM; ++i) {
    float error = 0;
    for (int p = begin; p < end; ++p) error += rows[place[p]][i] - target(ids[p], i);
    for (int p = begin; p < end; ++p) rows[place[p]][i] = error;
    loss += (double)error * error;
  }
  return loss;
}

/* Trains this rank's part of a batch, and the rows that it owns. Returns the loss on rank 0: the
 * mean square of the errors. */
static double train(const job* job, int batch) {
  static uint64_t ids[IDS], keys[IDS];
  static float rows[IDS][DIM], owned[IDS][DIM];
  static double losses[SAMPLES], losses_of_all[SAMPLES];
  static routes to;
  const int first = batch * IDS + job->rank * job->id_count;
  double sum = 0;
  int n;
  for (int p = 0; p < job->id_count; ++p) ids[p] = id_at((uint64_t)(first + p));
  n = shard(job, ids, &to, keys);
  check(embank_lookup(job->table, keys, n, EMBANK_MISSING_CREATE, owned, 0, NULL), "lookup");
  MPI_Alltoallv(owned, to.received, to.received_at, job->row, rows, to.sent, to.sent_at, job->row,
                MPI_COMM_WORLD);
  for (int s = 0; s < job->sample_count; ++s) losses[s] = pull(ids, rows, to.place, s);
  MPI_Alltoallv(rows, to.sent, to.sent_at, job->row, owned, to.received, to.received_at, job->row,
                MPI_COMM_WORLD);
  check(embank_apply_gradients(job->table, keys, n, owned[0], 0, NULL), "apply_gradients");
  /* No MPI_Reduce: it would add in another order for each number of ranks. */
  MPI_Gather(losses, job->sample_count, MPI_DOUBLE, losses_of_all, job->sample_count, MPI_DOUBLE, 0,
             MPI_COMM_WORLD);
  for (int s = 0; s < SAMPLES; ++s) sum += losses_of_all[s];
  return sum / (SAMPLES * DIM);
}

/* Opens a store in memory. One with a path would need a directory for each rank. */
static void open_store(job* job) {
  embank_store_options store;
  embank_table_options table;
  embank_store_options_init(&store, sizeof store);
  store.seed = 1;           /* the same on all ranks */
  store.worker_threads = 1; /* ranks of one machine share its cores */
  check(embank_store_open(&store, &job->store), "store_open");
  embank_table_options_init(&table, sizeof table);
  table.dim = DIM;
  table.optimizer = EMBANK_OPT_ADAGRAD;
  table.learning_rate = 0.1f;
  table.initializer = EMBANK_INIT_UNIFORM;
  table.init_a = -0.5f;
  table.init_b = 0.5f;
  check(embank_table_create(job->store, table_name, &table, &job->table), "table_create");
}

/* Prints how many rows all ranks have. */
static void print_rows(const job* job) {
  embank_table_info info;
  uint64_t rows = 0;
  info.struct_size = sizeof info;
  check(embank_table_get_info(job->table, &info), "table_get_info");
  fprintf(stderr, "rank %d of %d has %" PRIu64 " rows\n", job->rank, job->ranks, info.rows);
  MPI_Reduce(&info.rows, &rows, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (job->rank == 0) printf("rows %" PRIu64 "\n", rows);
}

int main(int argc, char** argv) {
  job job = {0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  if (job.ranks > RANKS_MAX || SAMPLES % job.ranks != 0) {
    if (job.rank == 0) fprintf(stderr, "%d ranks do not divide %d samples\n", job.ranks, SAMPLES);
    MPI_Finalize();
    return 2;
  }
  job.sample_count = SAMPLES / job.ranks;
  job.id_count = job.sample_count * IDS_PER_SAMPLE;
  MPI_Type_contiguous(DIM, MPI_FLOAT, &job.row);
  MPI_Type_commit(&job.row);
  open_store(&job);
  for (int batch = 0; batch < BATCHES; ++batch) {
    const double loss = train(&job, batch);
    if (job.rank != 0 || (batch + 1) % BATCHES_PER_LINE != 0) continue;
    printf("batch %d: loss %.17g\n", batch + 1, loss);
  }
  print_rows(&job);
  check(embank_store_close(job.store), "store_close");
  MPI_Type_free(&job.row);
  MPI_Finalize();
  return 0;
}
