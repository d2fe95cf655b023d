#include "tests/bindings/random_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bindings/c/handles.h"
#include "tests/bindings/device_rows.h"
#include "tests/bindings/differences.h"
#include "tests/support/oracle_numbers.h"
#include "tests/support/packed_feature.h"

namespace embank::test {
namespace {

constexpr uint8_t kUntouchedOutcome = 0x77;
constexpr uint64_t kStepsPerComparison = 12;

const char* NameOf(Verb verb) {
  static constexpr const char* kNames[] = {"lookup",
                                           "upsert",
                                           "gradients",
                                           "bad gradients",
                                           "erase",
                                           "contains",
                                           "get_state",
                                           "set_state",
                                           "get_heat",
                                           "learning rate",
                                           "scan",
                                           "open scan",
                                           "next of a long scan",
                                           "drop and create",
                                           "checkpoint",
                                           "start a checkpoint",
                                           "finish a checkpoint",
                                           "reopen",
                                           "prefetch",
                                           "flush hot",
                                           "upsert full",
                                           "scan full",
                                           "set options"};
  return kNames[static_cast<size_t>(verb)];
}

float RandomGradient(Random* random) {
  switch (random->Below(64)) {
    case 0:
      return 0.0f;
    case 1:
      // Sums, squares and steps may overflow, and most rows of a batch still step.
      return random->Signed() * (random->OneIn(64) ? 3e38f : 1e4f);
    case 2:
      return random->Signed() * 1e-40f;
    case 3:
      return -0.0f;
    default:
      return random->Signed() * std::ldexp(1.0f, static_cast<int>(random->Below(8)) - 4);
  }
}

// A run of all seeds has each of these.
constexpr const char* kEvents[] = {
    "lookup found",
    "lookup created",
    "lookup absent",
    "lookup refused",
    "upsert found",
    "upsert created",
    "upsert refused",
    "upsert full found",
    "upsert full created",
    "states upserted",
    "heats upserted",
    "rows of full scans",
    "states of full scans",
    "heats of full scans",
    "gradients found",
    "gradients absent",
    "gradients not finite",
    "erase found",
    "erase absent",
    "contains found",
    "contains absent",
    "get_state found",
    "get_state absent",
    "set_state found",
    "set_state absent",
    "get_heat found",
    "get_heat absent",
    "sums of more than 32",
    "gradients refused for NaN",
    "scan rows",
    "scan rows while the table changes",
    "scans ended by a drop",
    "rows compared",
    "tables dropped",
    "tables made",
    "tables sharing a row class",
    "heat epochs",
    "empty batches",
    "padded rows",
    "misaligned rows",
    "calls without outcomes",
    "NOT_FOUND without outcomes",
    "learning rates set",
    "options changed",
    "OUT_OF_RANGE without outcomes",
    "missing rule default",
    "missing rule zero",
    "missing rule skip",
    "rows of more than 1000 values",
    "rows in the log",
    "lookups counted in a tier",
    "lookups counted on SSD",
    "rows prefetched",
    "tables on disk with LFU",
    "checkpoints",
    "checkpoints started",
    "checkpoints finished",
    "second starts",
    "steps beside a started checkpoint",
    "stores closed with a started checkpoint",
    "stores closed and opened",
    "crashes",
    "rows read by a read-only opener",
    "previous checkpoints opened",
    "stores without a checkpoint opened",
    "blobs",
    "rows moved by compaction",
    "segments given up",
};

}  // namespace

RandomRun::RandomRun(const Plan& plan, Events* events)
    : plan_(plan),
      events_(events),
      random_(plan.seed ^ 0x5EED),
      device_random_(plan.seed ^ 0xDE71CE),
      disk_(plan.on_disk ? std::make_unique<SimulatedDisk>() : nullptr) {}

void RandomRun::ExpectAll(Events* events) {
  for (const char* const name : kEvents) events->Expect(name);
}

std::string RandomRun::Run() {
  if (const std::string wrong = Open(EMBANK_OPEN_CREATE); !wrong.empty()) return wrong;
  tables_.resize(plan_.tables);
  for (LiveTable& live : tables_) {
    std::string wrong = CreateRandomTable(&live);
    if (!wrong.empty()) return "create: " + wrong;
  }
  for (uint64_t step = 0; step < plan_.steps; ++step) {
    LiveTable* live = &tables_[random_.Below(tables_.size())];
    Verb verb = plan_.verbs[random_.Below(plan_.verbs.size())];
    if (step == 0 && plan_.reopens_early) verb = Verb::kReopen;
    bool compare = step % kStepsPerComparison == 0 || step + 1 == plan_.steps;
    if (started_ != nullptr) events_->Count("steps beside a started checkpoint");
    std::string wrong = Step(live, verb);
    FollowEarlyEpochs(*live);
    if (wrong.empty() && compare) wrong = CompareAll();
    if (!wrong.empty()) {
      return "step " + std::to_string(step) + ", " + NameOf(verb) + ": " + wrong;
    }
  }
  if (const std::string wrong = HitsDifference(); !wrong.empty()) return wrong;
  if (plan_.on_disk && !plan_.crashes) CountLog();
  if (!plan_.on_disk) events_->Count("heat epochs", heat_clock_.epoch);
  CountHotRows();
  return "";
}

std::string RandomRun::Step(LiveTable* live, Verb verb) {
  switch (verb) {
    case Verb::kLookup:
      return Lookup(live);
    case Verb::kUpsert:
      return Upsert(live);
    case Verb::kGradients:
      return Gradients(live);
    case Verb::kBadGradients:
      return BadGradients(live);
    case Verb::kErase:
      return Erase(live);
    case Verb::kContains:
      return Contains(live);
    case Verb::kGetState:
      return GetState(live);
    case Verb::kSetState:
      return SetState(live);
    case Verb::kGetHeat:
      return GetHeat(live);
    case Verb::kLearningRate:
      return LearningRate(live);
    case Verb::kScan:
      return Scan(live);
    case Verb::kOpenScan:
      return OpenTrackedScan(live);
    case Verb::kContinueScan:
      return ContinueScan(live);
    case Verb::kDrop:
      return DropAndCreate(live);
    case Verb::kCheckpoint:
      return Checkpoint();
    case Verb::kStartCheckpoint:
      return StartCheckpoint();
    case Verb::kFinishCheckpoint:
      return FinishCheckpoint();
    case Verb::kReopen:
      return Reopen();
    case Verb::kPrefetch:
      return Prefetch(live);
    case Verb::kFlushHot:
      return FlushHot();
    case Verb::kUpsertFull:
      return UpsertFull(live);
    case Verb::kScanFull:
      return ScanFull(live);
    case Verb::kSetOptions:
      return SetOptions(live);
  }
  return "no such verb";
}

std::string RandomRun::Lookup(LiveTable* live) {
  const oracle::Table& oracle = *live->oracle;
  std::vector<uint64_t> keys = Keys(oracle.options().dim);
  auto missing = static_cast<int32_t>(random_.OneIn(3) ? random_.Below(4) : 0);
  RowBuffer actual = Buffer(keys.size(), oracle.row_bytes());
  RowBuffer expected = actual;
  Outcomes outcomes = MakeOutcomes(keys.size(), plan_.tight);
  embank_status status = EMBANK_OK;
  std::string wrong_bytes;
  if (DrawsDevice("lookups")) {
    DeviceRows rows(store_.get(), actual, keys.size(), oracle.row_bytes(),
                    oracle::ValueBytes(oracle.options().value_type), &device_random_);
    const embank_feature feature = PlainFeature(live->table, keys, rows.data(), rows.stride());
    status =
        device_random_.OneIn(4)
            ? embank_lookup_packed_device(&feature, 1, missing, outcomes.store_pointer(), nullptr)
            : embank_lookup_device(live->table, keys.data(), keys.size(), missing, rows.data(),
                                   rows.stride(), outcomes.store_pointer(), nullptr);
    wrong_bytes = rows.CopyTo(&actual);
  } else if (device_random_.OneIn(4)) {
    const embank_feature feature = PlainFeature(live->table, keys, actual.data(), actual.stride());
    status = embank_lookup_packed(&feature, 1, missing, outcomes.store_pointer());
  } else {
    status = embank_lookup(live->table, keys.data(), keys.size(), missing,
                           keys.empty() ? nullptr : actual.data(), actual.stride(),
                           outcomes.store_pointer());
  }
  embank_status right = live->oracle->Lookup(keys.data(), keys.size(), missing, expected.data(),
                                             expected.stride(), outcomes.oracle_pointer(),
                                             plan_.tight ? outcomes.store.data() : nullptr);
  CountOutcomes("lookup", outcomes);
  static constexpr const char* kRules[] = {"create", "default", "zero", "skip"};
  events_->Count(std::string("missing rule ") + kRules[missing]);
  if (live->scan != nullptr) live->scan->Note(oracle, keys);
  return FirstOf(
      {StatusDifference(status, right), OutcomesDifference(outcomes.store, outcomes.oracle, keys),
       wrong_bytes,
       RowsDifference(actual, expected, keys, oracle.options().dim, oracle.options().value_type)});
}

std::string RandomRun::Upsert(LiveTable* live) {
  const embank_table_options& options = live->oracle->options();
  std::vector<uint64_t> keys = Keys(options.dim);
  RowBuffer rows = RandomRows(*live, keys.size());
  Outcomes outcomes = MakeOutcomes(keys.size(), plan_.tight);
  embank_status status = EMBANK_OK;
  if (DrawsDevice("upserts")) {
    const DeviceRows from(store_.get(), rows, keys.size(), live->oracle->row_bytes(),
                          oracle::ValueBytes(options.value_type), &device_random_);
    status = embank_upsert_device(live->table, keys.data(), keys.size(), from.data(), from.stride(),
                                  outcomes.store_pointer(), nullptr);
  } else {
    status = embank_upsert(live->table, keys.data(), keys.size(), rows.data(), rows.stride(),
                           outcomes.store_pointer());
  }
  embank_status right = live->oracle->Upsert(keys.data(), keys.size(), rows.data(), rows.stride(),
                                             outcomes.oracle_pointer(),
                                             plan_.tight ? outcomes.store.data() : nullptr);
  CountOutcomes("upsert", outcomes);
  if (live->scan != nullptr) live->scan->Note(*live->oracle, keys);
  return FirstOf(
      {StatusDifference(status, right), OutcomesDifference(outcomes.store, outcomes.oracle, keys)});
}

std::string RandomRun::Gradients(LiveTable* live) {
  std::vector<uint64_t> keys = Keys(live->oracle->options().dim);
  if (live->oracle->options().optimizer == EMBANK_OPT_NONE && keys.empty()) return "";
  RowBuffer gradients = RandomGradients(*live, keys.size());
  Outcomes outcomes = MakeOutcomes(keys.size(), false);
  embank_status status = ApplyGradients(*live, keys, gradients, &outcomes);
  embank_status right = live->oracle->ApplyGradients(keys.data(), keys.size(), gradients.floats(),
                                                     gradients.stride(), outcomes.oracle_pointer());
  if (right != EMBANK_FAILED_PRECONDITION) CountOutcomes("gradients", outcomes);
  if (right == EMBANK_NOT_FOUND) events_->Count("NOT_FOUND without outcomes");
  if (right == EMBANK_OUT_OF_RANGE) events_->Count("OUT_OF_RANGE without outcomes");
  events_->Count("sums of more than 32", live->oracle->long_sums());
  if (live->scan != nullptr) live->scan->Note(*live->oracle, keys);
  return FirstOf(
      {StatusDifference(status, right), OutcomesDifference(outcomes.store, outcomes.oracle, keys)});
}

embank_status RandomRun::ApplyGradients(const LiveTable& live, const std::vector<uint64_t>& keys,
                                        const RowBuffer& gradients, Outcomes* outcomes) {
  if (!DrawsDevice("gradients")) {
    return embank_apply_gradients(live.table, keys.data(), keys.size(), gradients.floats(),
                                  gradients.stride(), outcomes->store_pointer());
  }
  const uint64_t row_bytes = live.oracle->options().dim * sizeof(float);
  const DeviceRows from(store_.get(), gradients, keys.size(), row_bytes, sizeof(float),
                        &device_random_);
  return embank_apply_gradients_device(live.table, keys.data(), keys.size(), from.floats(),
                                       from.stride(), outcomes->store_pointer(), nullptr);
}

std::string RandomRun::BadGradients(LiveTable* live) {
  uint32_t dim = live->oracle->options().dim;
  std::vector<uint64_t> keys = Keys(dim);
  if (keys.empty() || live->oracle->options().optimizer == EMBANK_OPT_NONE) return "";
  RowBuffer gradients = RandomGradients(*live, keys.size());
  uint64_t first = random_.Below(keys.size());
  float bad = random_.OneIn(2) ? NAN : (random_.OneIn(2) ? INFINITY : -INFINITY);
  gradients.SetFloat(first, random_.Below(dim), bad);
  gradients.SetFloat(random_.Between(first, keys.size() - 1), random_.Below(dim), NAN);
  Outcomes outcomes = MakeOutcomes(keys.size(), false);
  embank_status status = ApplyGradients(*live, keys, gradients, &outcomes);
  events_->Count("gradients refused for NaN");
  std::string wrong = FirstOf({StatusDifference(status, EMBANK_INVALID_ARGUMENT),
                               OutcomesDifference(outcomes.store, outcomes.oracle, keys)});
  if (!wrong.empty()) return wrong;
  std::string message = embank_last_error();
  if (message.find(std::to_string(keys[first])) == std::string::npos) {
    return "the message does not name key " + std::to_string(keys[first]) + ": " + message;
  }
  return Compare(*live);
}

std::string RandomRun::Erase(LiveTable* live) {
  std::vector<uint64_t> keys = Keys(1);
  Outcomes outcomes = MakeOutcomes(keys.size(), false);
  embank_status status =
      embank_erase(live->table, keys.data(), keys.size(), outcomes.store_pointer());
  live->oracle->Erase(keys.data(), keys.size(), outcomes.oracle_pointer());
  CountOutcomes("erase", outcomes);
  if (live->scan != nullptr) live->scan->Note(*live->oracle, keys);
  return FirstOf({StatusDifference(status, EMBANK_OK),
                  OutcomesDifference(outcomes.store, outcomes.oracle, keys)});
}

std::string RandomRun::Contains(LiveTable* live) {
  std::vector<uint64_t> keys = Keys(1);
  Outcomes outcomes = MakeOutcomes(keys.size(), true);
  embank_status status =
      embank_contains(live->table, keys.data(), keys.size(), outcomes.store_pointer());
  live->oracle->Contains(keys.data(), keys.size(), outcomes.oracle_pointer());
  CountOutcomes("contains", outcomes);
  return FirstOf({StatusDifference(status, EMBANK_OK),
                  OutcomesDifference(outcomes.store, outcomes.oracle, keys)});
}

// Nothing that the oracle has changes.
std::string RandomRun::Prefetch(LiveTable* live) {
  std::vector<uint64_t> keys = Keys(live->oracle->options().dim);
  const std::atomic<uint64_t>& rows = TableOfHandle(live->table)->counters().prefetched_rows;
  const uint64_t before = rows;
  const embank_status status = embank_prefetch(live->table, keys.data(), keys.size());
  events_->Count("rows prefetched", rows - before);
  return StatusDifference(status, EMBANK_OK);
}

std::string RandomRun::GetState(LiveTable* live) {
  uint64_t floats = live->oracle->state_floats();
  std::vector<uint64_t> keys = Keys(std::max<uint64_t>(1, floats));
  if (floats == 0 && keys.empty()) return "";
  RowBuffer actual = Buffer(keys.size(), floats * sizeof(float));
  RowBuffer expected = actual;
  Outcomes outcomes = MakeOutcomes(keys.size(), false);
  embank_status status = embank_get_state(live->table, keys.data(), keys.size(), actual.floats(),
                                          actual.stride(), outcomes.store_pointer());
  embank_status right = live->oracle->GetState(keys.data(), keys.size(), expected.floats(),
                                               expected.stride(), outcomes.oracle_pointer());
  if (right != EMBANK_FAILED_PRECONDITION) CountOutcomes("get_state", outcomes);
  return FirstOf({StatusDifference(status, right),
                  OutcomesDifference(outcomes.store, outcomes.oracle, keys),
                  RowsDifference(actual, expected, keys, floats, EMBANK_F32)});
}

std::string RandomRun::SetState(LiveTable* live) {
  uint64_t floats = live->oracle->state_floats();
  std::vector<uint64_t> keys = Keys(std::max<uint64_t>(1, floats));
  if (floats == 0 && keys.empty()) return "";
  RowBuffer state = RandomStates(*live, keys.size());
  Outcomes outcomes = MakeOutcomes(keys.size(), false);
  embank_status status = embank_set_state(live->table, keys.data(), keys.size(), state.floats(),
                                          state.stride(), outcomes.store_pointer());
  embank_status right = live->oracle->SetState(keys.data(), keys.size(), state.floats(),
                                               state.stride(), outcomes.oracle_pointer());
  if (right != EMBANK_FAILED_PRECONDITION) CountOutcomes("set_state", outcomes);
  return FirstOf(
      {StatusDifference(status, right), OutcomesDifference(outcomes.store, outcomes.oracle, keys)});
}

std::string RandomRun::GetHeat(LiveTable* live) {
  std::vector<uint64_t> keys = Keys(1);
  std::vector<uint32_t> actual(keys.size(), 77);
  std::vector<uint32_t> expected = actual;
  Outcomes outcomes = MakeOutcomes(keys.size(), false);
  embank_status status = embank_get_heat(live->table, keys.data(), keys.size(), actual.data(),
                                         outcomes.store_pointer());
  live->oracle->GetHeat(keys.data(), keys.size(), expected.data(), outcomes.oracle_pointer());
  CountOutcomes("get_heat", outcomes);
  return FirstOf({StatusDifference(status, EMBANK_OK),
                  OutcomesDifference(outcomes.store, outcomes.oracle, keys),
                  actual == expected ? "" : "another heat"});
}

std::string RandomRun::Scan(LiveTable* live) {
  uint64_t rows = live->oracle->rows().size();
  ScanResult scan = ScanAll(live->table, live->oracle->row_bytes(), random_.Between(1, rows + 7));
  if (scan.status != EMBANK_OK) return embank_last_error();
  events_->Count("scan rows", scan.keys.size());
  return Compare(*live);
}

std::string RandomRun::OpenTrackedScan(LiveTable* live) {
  live->scan = std::make_unique<TrackedScan>(live->table, *live->oracle);
  return "";
}

std::string RandomRun::ContinueScan(LiveTable* live) {
  if (live->scan == nullptr) return "";
  uint64_t cap = random_.Between(1, live->oracle->rows().size() / 3 + 2);
  std::string wrong = live->scan->Next(*live->oracle, cap, events_);
  if (live->scan->ended()) live->scan.reset();
  return wrong;
}

std::string RandomRun::DropAndCreate(LiveTable* live) {
  embank_table* dropped = live->table;
  live->oracle->Drop();
  std::string wrong =
      StatusDifference(embank_table_drop(store_.get(), live->oracle->name().c_str()), EMBANK_OK);
  if (wrong.empty() && live->scan != nullptr) {
    wrong = live->scan->NextAfterDrop();
    live->scan.reset();
    events_->Count("scans ended by a drop");
  }
  events_->Count("tables dropped");
  uint64_t key = 0;
  uint8_t outcome = 0;
  if (wrong.empty()) wrong = CreateRandomTable(live);
  if (!wrong.empty()) return wrong;
  return StatusDifference(embank_contains(dropped, &key, 1, &outcome), EMBANK_FAILED_PRECONDITION);
}

bool RandomRun::DrawsDevice(const char* verb) {
  if (plan_.store.hbm_bytes == 0 || !device_random_.OneIn(3)) return false;
  events_->Count(std::string(verb) + " through device memory");
  return true;
}

std::string RandomRun::Compare(const LiveTable& live) {
  if (plan_.on_disk) return DifferenceButHeat(live.table, *live.oracle);
  return Difference(live.table, *live.oracle);
}

// Each position of a lookup that found its row is counted in one tier.
std::string RandomRun::HitsDifference() {
  for (const LiveTable& live : tables_) {
    const CallCounts counts =
        TableOfHandle(live.table)->counters().calls.Counts(TableVerb::kLookup);
    uint64_t hits = 0;
    for (const uint64_t rows : counts.found_in) hits += rows;
    const uint64_t found = counts.keys_by_outcome[EMBANK_ROW_FOUND - 1];
    events_->Count("lookups counted in a tier", hits);
    events_->Count("lookups counted on SSD", counts.found_in[static_cast<size_t>(Tier::kSsd)]);
    if (hits == found) continue;
    return "table " + live.oracle->name() + ": " + std::to_string(found) +
           " positions were found, and the tiers count " + std::to_string(hits);
  }
  return "";
}

std::string RandomRun::CompareAll() {
  for (const LiveTable& live : tables_) {
    std::string wrong = Compare(live);
    if (!wrong.empty()) return "table " + live.oracle->name() + ": " + wrong;
    events_->Count("rows compared", live.oracle->rows().size());
  }
  return "";
}

std::string RandomRun::CreateRandomTable(LiveTable* live) {
  embank_table_options options = RandomTableOptions(plan_, &random_);
  if (tables_made_ > 0 && random_.OneIn(2)) {
    // Same layout as a living or a dropped table: the same slabs hold the rows of both.
    const LiveTable& other = tables_[random_.Below(std::min<size_t>(tables_made_, tables_.size()))];
    if (other.oracle != nullptr) {
      options = other.oracle->options();
      events_->Count("tables sharing a row class");
    }
  }
  // Names come back now and then: a dropped table must not show through.
  std::string name = "t";
  name += std::to_string(random_.OneIn(2) ? tables_made_ : live - tables_.data());
  for (const LiveTable& other : tables_) {
    if (&other != live && other.oracle != nullptr && other.oracle->name() == name) name += "x";
  }
  ++tables_made_;
  if (options.dim > 1000) events_->Count("rows of more than 1000 values");
  embank_status status = embank_table_create(store_.get(), name.c_str(), &options, &live->table);
  live->oracle = std::make_unique<oracle::Table>(plan_.store.seed, name, options, &heat_clock_);
  events_->Count("tables made");
  if (plan_.on_disk && options.eviction == EMBANK_EVICT_LFU) {
    events_->Count("tables on disk with LFU");
  }
  return StatusDifference(status, EMBANK_OK);
}

std::vector<uint64_t> RandomRun::Keys(uint64_t row_elements) {
  static constexpr uint64_t kSizes[] = {0, 1, 2, 40, 40, 300, 1000, 5000};
  uint64_t size_max = plan_.hot ? plan_.batch_max : kSizes[random_.Below(8)];
  size_max = std::min(size_max, std::max<uint64_t>(1, plan_.batch_elements_max / row_elements));
  uint64_t n = random_.Below(size_max + 1);
  if (n == 0) events_->Count("empty batches");
  events_->Count(plan_.on_disk ? kOperationsOnDisk : kOperationsInMemory, n);
  uint64_t style = random_.Below(4);
  uint64_t crowd = random_.Between(1, plan_.keys.size());
  std::vector<uint64_t> keys(n);
  for (uint64_t& key : keys) {
    uint64_t index = random_.Below(plan_.keys.size());
    if (style == 1) index = random_.Below(index + 1);        // the first keys are the hottest
    if (style == 2) index = random_.Below(crowd);            // a part of the universe
    if (style == 3 && !random_.OneIn(3)) index = crowd - 1;  // mostly one key
    key = plan_.keys[index];
  }
  return keys;
}

RandomRun::Outcomes RandomRun::MakeOutcomes(uint64_t n, bool always) {
  Outcomes outcomes;
  outcomes.store.assign(n, kUntouchedOutcome);
  outcomes.oracle.assign(n, kUntouchedOutcome);
  outcomes.asked = always || !random_.OneIn(4);
  if (!outcomes.asked) events_->Count("calls without outcomes");
  return outcomes;
}

RowBuffer RandomRun::Buffer(uint64_t n, uint64_t row_bytes) {
  uint64_t stride = 0;
  if (random_.OneIn(2)) stride = row_bytes + random_.Below(3) * random_.Below(20);
  uint64_t misalignment = random_.OneIn(2) ? random_.Below(8) : 0;
  if (stride > row_bytes) events_->Count("padded rows", n);
  if (misalignment % 4 != 0) events_->Count("misaligned rows", n);
  return RowBuffer(n, row_bytes, stride, misalignment);
}

RowBuffer RandomRun::RandomGradients(const LiveTable& live, uint64_t n) {
  uint32_t dim = live.oracle->options().dim;
  RowBuffer gradients = Buffer(n, dim * sizeof(float));
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t j = 0; j < dim; ++j) gradients.SetFloat(i, j, RandomGradient(&random_));
  }
  return gradients;
}

void RandomRun::CountOutcomes(const std::string& verb, const Outcomes& outcomes) {
  if (!outcomes.asked) return;
  static constexpr const char* kNames[] = {"none",     " found",     " created",   " absent",
                                           " refused", " data loss", " not finite"};
  uint64_t counts[std::size(kNames)] = {};
  for (uint8_t outcome : outcomes.oracle) ++counts[std::min<uint8_t>(outcome, 6)];
  for (size_t i = 1; i < std::size(counts); ++i) {
    if (counts[i] > 0) events_->Count(verb + kNames[i], counts[i]);
  }
}

}  // namespace embank::test
