#!/usr/bin/env bash
# Installs what is missing, builds Embank, and shows what it does and that it is right:
#   ./run.sh                 with a generated stream of keys, and a generated log of clicks
#   ./run.sh --trace FILE    the first and the third of its four runs with keys of yours; further
#                            options go to `embank-bench replay` and `embank-bench tiers`
#   ./run.sh --data FILE     the fourth run, a training, with a log of clicks of yours in Criteo's
#                            format, plain or .zst; with --columns FILE the log is CSV
# It prints four tables and explains them, and leaves out/report.html with the pictures.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=.ci/house.sh
. "$root/.ci/house.sh"
bench=$root/build/release/bin/embank-bench
train=$root/build/release/bin/embank-train
trained=$root/build/release/trained
scores=$root/out/scores.csv
figures_file=$root/build/release/trained.json
report=$root/out/report.html

if [[ ${1-} == -h || ${1-} == --help ]]; then
  sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 0
fi

# The options of the training go to no other run.
data='' columns=''
bench_options=() figures=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --data | --columns)
      [[ -n ${2-} ]] || fail "$1 needs a file"
      [[ $1 == --columns ]] || data=$2
      [[ $1 == --data ]] || columns=$2
      shift 2
      ;;
    --data=*) data=${1#*=}; shift ;;
    --columns=*) columns=${1#*=}; shift ;;
    *) bench_options+=("$1"); shift ;;
  esac
done
[[ -z $columns || -n $data ]] || fail "--columns needs --data FILE"
# A wrong name must not be found after a build of minutes.
for file in "$data" "$columns"; do
  [[ -z $file || -r $file ]] || fail "$file cannot be read"
done

install_packages run
configure release || fail "cmake could not configure the release preset: see the lines above"
# What it runs, and no more.
build release embank-bench embank-train || fail "the build failed: see the lines above"
mkdir -p "$root/out"
rm -f "$report"

cat <<'WORDS'

--- 1 of 4: a store in memory ---

A training job sends batches of keys. For each batch it looks up the rows of these keys, creating
those that are missing, and then applies gradients to them. At the end all rows are read in a scan.

A second, simple implementation (the "oracle"), which shares no code with the store, does the same.
Every answer and every row is compared with it, bit for bit. This proves that with large batches
and several threads the store computes exactly what a plain table in memory would.

WORDS
say "replay: embank-bench replay ${bench_options[*]}"
"$bench" replay --report "$report" "${bench_options[@]}"

cat <<'WORDS'

--- 2 of 4: a store on disk that is killed ---

The same job with four times as many rows as the store's memory holds: the other rows are on disk.
A checkpoint makes the store durable from time to time. Its process is killed three times (kill -9):
in the middle of batches, during a checkpoint, and while it opens its store again. Each time the
store is opened and all its rows are compared with the oracle's at the checkpoint that was found.
This proves that after a kill the store is its last checkpoint, whole, and nothing else.

WORDS
say "survive: embank-bench survive"
"$bench" survive --path "$root/build/release" --report "$report"

cat <<'WORDS'

--- 3 of 4: a store with four tiers ---

A row lives where its heat says: the hottest rows in device memory (HBM), then memory (DRAM), then
persistent memory (PMem), and the rest on the SSD. Which rows are in HBM is decided anew while
batches go on. Here the device is its twin in host memory, and the directory of PMem is an ordinary
one, so that this runs on every machine. The table says which tier answered how many lookups, and
how rows moved. Every answer and every row is compared with the oracle's again: the tiers change no
bit.

WORDS
say "tiers: embank-bench tiers ${bench_options[*]}"
"$bench" tiers --path "$root/build/release" --report "$report" "${bench_options[@]}"

printf '\n--- 4 of 4: a click model that is trained ---\n\n'
store_options=(--dram-mib 48 --hbm-mib 1 --path "$trained")
rm -rf "$trained"
if [[ -n $data ]]; then
  cat <<'WORDS'
A click model learns from your log of clicks: DLRM, or a feed-forward network where the log has no
dense features. Its embedding rows are in a store with three tiers. AUC and logloss are of each
sample before the step that learns from it. The run is short: it ends with the log, or after 4,000
steps.

WORDS
  log_options=(--data "$data")
  [[ -z $columns ]] || log_options+=(--columns "$columns")
  # DLRM needs dense features, which a log in Criteo's format has.
  [[ -z $columns ]] || grep -Eq '^[[:space:]]*dense[[:space:]]' "$columns" ||
    log_options+=(--model ffnn)
  say "train: embank-train ${log_options[*]}"
  train_options=("${log_options[@]}" --batch 32 --steps 4000 "${store_options[@]}")
  "$train" "${train_options[@]}" --json "$figures_file"
else
  cat <<'WORDS'
A click model (DLRM) learns from a generated log of clicks in Criteo's format. Its labels were drawn
from a hidden model, so that the best possible AUC is known. Its embedding rows are in a store with
three tiers. After its first checkpoint the training is killed (kill -9). It goes on there, and
ends with the model of a training that nobody killed. AUC and logloss are of samples that the model
had not seen. At the end it predicts a log without labels: a score for each line.

WORDS
  log_options=(--generate criteo-kaggle --divisor 1000 --samples 150000 --eval-samples 20000)
  train_options=("${log_options[@]}" "${store_options[@]}" --checkpoint-every 40)
  say "train: embank-train ${log_options[*]}, killed after its first checkpoint"
  "$train" "${train_options[@]}" &
  training=$!
  # A training that fails tells why in its second run.
  until "$train" describe --path "$trained" &> /dev/null || ! kill -0 "$training" 2> /dev/null; do
    sleep 0.1
  done
  kill -KILL "$training" 2> /dev/null || true
  wait "$training" 2> /dev/null || true
  say "train: embank-train ${log_options[*]} --resume"
  train_options+=(--resume)
  "$train" "${train_options[@]}" --json "$figures_file"
  say "predict: embank-train predict, the samples of the evaluation without their labels"
  "$train" "${log_options[@]}" --write-log "$trained.log"
  tail -n 20000 "$trained.log" | cut -f 2- > "$trained.unlabelled"
  "$train" predict --path "$trained" --data "$trained.unlabelled" --out "$scores"
  printf 'The first scores:\n'
  head -n 4 "$scores"
  rm -f "$trained.log" "$trained.unlabelled"
  say "ranks: embank-train --ranks 2, against one rank"
  ranks_options=(--generate criteo-kaggle --divisor 1000 --samples 50000)
  "$train" "${ranks_options[@]}" --weights "$trained.one" > /dev/null
  "$train" "${ranks_options[@]}" --ranks 2 --weights "$trained.two"
  cmp "$trained.one" "$trained.two"
  printf 'The weights of two ranks are those of one, bit for bit.\n'
  rm -f "$trained.one" "$trained.two"
  say "staleness: embank-train --staleness 4, against none, with rows on disk"
  rate_and_auc='s/.*"samples_per_second": ([0-9]+).*"eval_auc": ([0-9.]{6}).*/\1 \2/'
  for staleness in 0 4; do
    rm -rf "$trained"
    "$train" "${log_options[@]}" --dram-mib 32 --path "$trained" --staleness "$staleness" \
      --json "$trained.$staleness" > /dev/null
    figures[staleness]=$(sed -E "$rate_and_auc" "$trained.$staleness")
    rm -f "$trained.$staleness"
  done
  printf 'Rows up to 4 steps late: %s samples/s and AUC %s, in place of %s and %s.\n' \
    ${figures[4]} ${figures[0]}
fi
"$bench" training --json "$figures_file" --command "embank-train ${train_options[*]}" \
  --report "$report"
rm -rf "$trained" "$figures_file"

cat <<WORDS

All answers and all rows of the first three runs are those of the oracle.

The results of the four runs, with pictures and all numbers, are in
  $report

Four things to try next:
  1. Keys of your own, one number per line:
       ./run.sh --trace keys.txt
  2. A log of clicks of your own, in Criteo's format:
       ./run.sh --data day_0.txt.zst
  3. Embank beside two other hash tables, with the same batches:
       build/release/bin/embank-bench kv --rows 2000000 --dim 64 --rounds 3
  4. A training loop that keeps its rows on disk, is interrupted and goes on where it was, in C,
     C++, Python, Rust and Go: examples/README.md
WORDS
