#!/usr/bin/env bash
# Installs what is missing, builds Embank and tests it:
#   ./test.sh          checks of the house and all tests: under 15 minutes on 2 cores
#   ./test.sh --full   also clang with its lock analysis and sanitizers, clang-tidy, fuzzers: under
#                      45 minutes
#   ./test.sh --nightly [MINUTES]
#                      long random runs with seeds of their own, slice after slice, for MINUTES or
#                      until Ctrl-C; the next call goes on with the seeds that follow
#   ./test.sh --analyze
#                      the static analysis of clang, which follows paths: some 20 minutes
#   ./test.sh --cuda   the library with the device of CUDA, where nvcc is; compares the device with
#                      its twin and measures it, where there is one; --full does this, too
# The last line is "N passed, N failed"; the exit status is 0 only if nothing failed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=.ci/house.sh
. "$root/.ci/house.sh"

kind=${1-}
minutes=
case "$kind" in
  '' | --full | --cuda | --analyze) ;;
  --nightly)
    [[ ${2-1} =~ ^[1-9][0-9]{0,5}$ ]] || fail "--nightly takes minutes, 1 to 999999, and not '$2'"
    minutes=${2-}
    [[ $# -lt 2 ]] || shift
    ;;
  -h | --help)
    sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  *) fail "unknown option '$1': see ./test.sh --help" ;;
esac
[[ $# -le 1 ]] || fail "unknown option '$2': see ./test.sh --help"

passed=0
failed=0
table=()

# record NAME SECONDS PASSED FAILED [SKIPPED]
record() {
  passed=$((passed + $3))
  failed=$((failed + $4))
  local outcome=ok
  [[ $4 == 0 ]] || outcome=FAILED
  table+=("$(printf '%-34s %7d %7d %7d %8d  %s' "$1" "$2" "$3" "$4" "${5-0}" "$outcome")")
  say "$1: $outcome in $2 s"
}

# stage NAME COMMAND...: one thing that passes or fails as a whole; tells by its status which.
stage() {
  local name=$1 begin=$SECONDS
  shift
  say "$name ..."
  if ("$@"); then
    record "$name" $((SECONDS - begin)) 1 0
  else
    record "$name" $((SECONDS - begin)) 0 1
    return 1
  fi
}

# tests NAME PRESET [CTEST OPTION...]: runs ctest; every test counts by itself.
tests() {
  local name=$1 preset=$2 begin=$SECONDS status=0
  local results=$root/build/$preset/results.xml
  shift 2
  say "$name ..."
  rm -f "$results"
  (cd "$root" && ctest --preset "$preset" --parallel "$(nproc)" --output-on-failure \
    --no-tests=error --timeout 1200 --output-junit "$results" "$@") || status=1
  local counts total=0 bad=0 skipped=0
  if counts=$(python3 "$root/.ci/count_tests.py" "$results"); then
    read -r total bad skipped <<<"$counts"
  fi
  # ctest can fail with no failed test (a program missing, no test found): that is one failure.
  [[ $status == 0 || $bad -gt 0 ]] || bad=1
  record "$name" $((SECONDS - begin)) $((total > bad + skipped ? total - bad - skipped : 0)) \
    "$bad" "$skipped"
  # Why something was skipped.
  grep -ahE "^skipped: |[.]{3} skipped '" "$root/build/$preset/Testing/Temporary/LastTest.log"
  # What the random suites have counted; their other words are in the same file.
  grep -ah '^quantities: ' "$root/build/$preset/Testing/Temporary/LastTest.log"
  return "$status"
}

# build_and_test WORD PRESET [CTEST OPTION...]
build_and_test() {
  local word=$1 preset=$2
  shift 2
  stage "$word: configure" configure "$preset" && stage "$word: build" build "$preset" &&
    tests "$word: tests" "$preset" "$@"
}

# The library and the trainer, as they are compiled (EMBANK_UNITY): a room at a time, and each of
# the sources that have options of their own. What follows paths through functions takes ten times
# as long as the rest: analyze does that.
tidy() {
  cd "$root" || return 1
  python3 .ci/compiled_sources.py build/asan-ubsan base tiers gpu store train bindings/c |
    xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p build/asan-ubsan \
      --checks='-clang-analyzer-*,-bugprone-suspicious-include' \
      --header-filter='/(base|tiers|gpu|store|train|bindings/c)/[^/]*(/[^/]*)?[.](h|hpp|cc)$'
}

analyze() {
  cd "$root" || return 1
  local rooms=() room
  for room in base tiers store gpu train bindings/c; do [[ ! -d $room ]] || rooms+=("$room"); done
  # The device of CUDA is not in that build.
  find "${rooms[@]}" -name '*.cc' ! -name 'cuda_*.cc' | sort |
    xargs -P "$(nproc)" -n 2 clang-tidy --quiet -p build/clang --checks='-*,clang-analyzer-*'
}

# All fuzzers at once for EMBANK_FUZZ_SECONDS (60), from what was kept on; their findings are in
# build/fuzz. Five share two cores: each has 24 s of one.
fuzz() {
  local seconds=${EMBANK_FUZZ_SECONDS-60} corpus
  cd "$root/build/fuzz" || return 1
  for corpus in "$root"/tests/fuzz/corpus/*; do
    mkdir -p "found/${corpus##*/}" && basename "$corpus"
  done | xargs -P 0 -I NAME sh -c "bin/NAME_fuzz -max_total_time=$seconds \
    -max_len=4096 -timeout=60 -rss_limit_mb=4096 -artifact_prefix=NAME- found/NAME \
    '$root/tests/fuzz/corpus/NAME' >NAME.log 2>&1 || { tail -n 50 NAME.log; exit 255; }
    echo \"NAME: \$(grep '^Done' NAME.log)\""
}

# The suites with the label random, ten times as long, with the seeds that no slice has had yet: no
# suite uses more than these in one. The first of the next slice is remembered once a slice has
# ended.
slice_seeds=10000
nightly() {
  local folder=$root/build/nightly seed begin=$SECONDS
  mkdir -p "$folder" || return 1
  while [[ -z $minutes || $((SECONDS - begin)) -lt $((minutes * 60)) ]]; do
    seed=$((slice_seeds + 1))
    [[ ! -s $folder/next_seed ]] || read -r seed <"$folder/next_seed"
    EMBANK_TEST_SEED_BEGIN=$seed EMBANK_TEST_SCALE=10 tests "seeds from $seed" dev -L random || {
      cp "$root/build/dev/Testing/Temporary/LastTest.log" "$folder/failed-$seed.log"
      say "replay: EMBANK_TEST_SEED_BEGIN=$seed EMBANK_TEST_SCALE=10 ctest --preset dev -L random"
    }
    echo $((seed + slice_seeds)) >"$folder/next_seed"
  done
}

# Compares the device of this machine with its twin; without one there is nothing to compare. The
# program has to run where nothing is installed, and to be quick to copy.
check_device() {
  local status=0 program=$root/build/cuda/bin/embank_gpu_check needed
  needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux-x86-64)[.]so' || true)
  [[ -z $needed ]] || { echo "embank_gpu_check needs $needed"; return 1; }
  if [[ $(stat -c %s "$program") -gt $((30 << 20)) ]]; then
    echo "embank_gpu_check is larger than 30 MiB"
    return 1
  fi
  "$root/tools/gpu_check.sh" "$root/build/cuda/gpu_check" || status=$?
  [[ $status != 77 ]] || say "skipped: this machine has no device that CUDA can use"
  [[ $status == 0 || $status == 77 ]]
}

# The Python package as its users have it: a wheel in an environment of its own, where PyTorch is
# that of the system. pip fetches what builds the wheel.
install_wheel() {
  local folder=$root/build/wheel
  rm -f "$folder/embank-"*.whl
  "$folder/venv/bin/pip" wheel --quiet --no-deps --wheel-dir "$folder" "$root" &&
    "$folder/venv/bin/pip" install --quiet --no-deps "$folder/embank-"*.whl || return 1
  ls -l "$folder/embank-"*.whl
  [[ $(stat -c %s "$folder/embank-"*.whl) -le 3000000 ]] || { echo "larger than 3 MB"; return 1; }
  (cd "$folder" && venv/bin/python -I -m embank)
}
# test_wheel PYTHON: all suites. tests/python/io has a folder of its own.
test_wheel() {
  local folder log=$root/build/wheel/suites.log status=0
  cd "$root/build/wheel" || return 1
  for folder in tests/python tests/python/io; do
    PATH=$root/build/dev/bin:$PATH OPENBLAS_NUM_THREADS=1 \
      EMBANK_TRAIN=$root/build/dev/bin/embank-train \
      "$1" -B -m unittest discover -v -s "$root/$folder" >"$log" 2>&1 || status=1
    [[ $status == 0 ]] || cat "$log"
    # Why something was skipped, and how many have run: none is no success.
    grep -aE "[.]{3} skipped '|^Ran " "$log"
    [[ $status == 0 ]] && grep -qE '^Ran [1-9]' "$log" || return 1
  done
}
# A Python of the user's own with another PyTorch, such as PyPI's, takes the wheel's files.
test_other_torch() {
  local folder=$root/build/wheel
  rm -rf "$folder/site"
  "$folder/venv/bin/pip" install --quiet --no-deps --target "$folder/site" \
    "$folder/embank-"*.whl || return 1
  export PYTHONPATH=$folder/site
  "$EMBANK_TORCH_PYTHON" -c 'import torch; print("PyTorch", torch.__version__)' &&
    test_wheel "$EMBANK_TORCH_PYTHON"
}
wheel() {
  local folder=$root/build/wheel
  rm -rf "$folder/venv"
  if ! /usr/bin/python3 -m venv --system-site-packages "$folder/venv" ||
    ! "$folder/venv/bin/pip" download --quiet --no-deps --dest "$folder" scikit-build-core; then
    say "skipped: pip cannot fetch scikit-build-core, which builds the wheel"
    record "wheel" 0 0 0 1
    tests "dev: PyTorch" dev -L torch
    return
  fi
  stage "wheel: install" install_wheel || return
  stage "wheel: tests" test_wheel venv/bin/python
  if [[ -z ${EMBANK_TORCH_PYTHON-} ]]; then
    say "skipped: EMBANK_TORCH_PYTHON names no Python with another PyTorch, such as PyPI's"
    record "wheel: another PyTorch" 0 0 0 1
    return
  fi
  stage "wheel: another PyTorch" test_other_torch
}

# Kernels that spill registers fail the build.
cuda() {
  if ! command -v nvcc >/dev/null && [[ ! -x $root/build/cuda-toolkit/nvidia/cu13/bin/nvcc ]]; then
    say "skipped: nvcc is not on the path; tools/fetch_cuda.sh installs it into build/cuda-toolkit"
    record "cuda" 0 0 0 1
    return
  fi
  stage "cuda: configure" configure cuda &&
    stage "cuda: build" build cuda embank embank_gpu_check && stage "cuda: device" check_device
}

summary() {
  printf '\n%-34s %7s %7s %7s %8s\n' stage seconds passed failed skipped
  printf '%s\n' "${table[@]}"
  printf '%-34s %7d\n\n' total $((SECONDS - started_seconds))
  printf '%d passed, %d failed\n' "$passed" "$failed"
  [[ $failed == 0 ]]
}

packages=test
[[ $kind != --full ]] || packages=full
stage "packages" install_packages "$packages" || {
  summary
  exit 1
}
# The packages are there: a build that did not find MPI is a failure, and no skip.
export EMBANK_TEST_NEED_MPI=1
if [[ $kind == --nightly ]]; then
  trap 'summary; exit 130' INT
  stage "dev: configure" configure dev && stage "dev: build" build dev && nightly
  summary
  exit
fi
if [[ $kind == --analyze ]]; then
  stage "clang: configure" configure clang && stage "static analysis" analyze
  summary
  exit
fi
if [[ $kind == --cuda ]]; then
  cuda
  summary
  exit
fi
if [[ $kind == --full ]]; then
  build_and_test "dev" dev -LE torch
  wheel
  build_and_test "asan-ubsan" asan-ubsan -LE house
  stage "clang-tidy" tidy
  build_and_test "tsan" tsan -LE house
  stage "fuzz: configure" configure fuzz && stage "fuzz: build" build fuzz embank_fuzz_targets &&
    stage "fuzz" fuzz
  cuda
else
  build_and_test "dev" dev -LE 'long|torch'
fi
summary
