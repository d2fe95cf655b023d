#!/usr/bin/env bash
# Installs what is missing, builds Embank, and shows what it does and that it is right:
#   ./run.sh                 with a generated stream of keys
#   ./run.sh --trace FILE    the first and the third of its four runs with keys of yours; further
#                            options go to `embank-bench replay` and `embank-bench tiers`
# It prints four tables and explains them, and leaves out/report.html with the pictures.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=.ci/house.sh
. "$root/.ci/house.sh"
bench=$root/build/release/bin/embank-bench
report=$root/out/report.html

if [[ ${1-} == -h || ${1-} == --help ]]; then
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  exit 0
fi

install_packages run
configure release || fail "cmake could not configure the release preset: see the lines above"
build release || fail "the build failed: see the lines above"
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
say "replay: embank-bench replay $*"
"$bench" replay --report "$report" "$@"

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
persistent memory (PMem), and the rest on the SSD. The hot set is renewed while batches go on. Here
the device is its twin in host memory, and the directory of PMem is an ordinary one, so that this
runs on every machine. The table says which tier answered how many lookups, and how rows moved.
Every answer and every row is compared with the oracle's again: the tiers change no bit.

WORDS
say "tiers: embank-bench tiers $*"
"$bench" tiers --path "$root/build/release" "$@"

cat <<'WORDS'

--- 4 of 4: a click model that is trained ---

A click model (DLRM) learns from a generated log of clicks in Criteo's format. Its labels were drawn
from a hidden model, so that the best possible AUC is known. Its embedding rows are in a store with
three tiers. AUC and logloss are of samples that the model had not seen.

WORDS
say "train: embank-train --generate criteo-kaggle"
rm -rf "$root/build/release/trained"
"$root/build/release/bin/embank-train" --generate criteo-kaggle --divisor 1000 --samples 150000 \
  --eval-samples 20000 --dram-mib 48 --hbm-mib 1 --path "$root/build/release/trained"
rm -rf "$root/build/release/trained"

cat <<WORDS

All answers and all rows of the first three runs are those of the oracle.

The pictures (throughput, hit ratio over time, how long batches took) and all numbers are in
  $report

Three things to try next:
  1. Keys of your own, one number per line:
       ./run.sh --trace keys.txt
  2. Embank beside two other hash tables, with the same batches:
       build/release/bin/embank-bench kv --rows 2000000 --dim 64 --rounds 3
  3. A training loop that keeps its rows on disk, is interrupted and goes on where it was, in C,
     C++, Python, Rust and Go: examples/README.md
WORDS
