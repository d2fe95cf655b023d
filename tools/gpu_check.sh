#!/usr/bin/env bash
# tools/gpu_check.sh OUT: checks and measures the CUDA device of this machine, in at most nine
# minutes, and leaves JSON in the folder OUT after each part: device, identity, rates, and sanitizer
# where compute-sanitizer is on the path. The program is build/cuda/bin/embank_gpu_check of
# ./test.sh --cuda, or EMBANK_GPU_CHECK.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
[[ $# == 1 && $1 != -* ]] || {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
out=$1
program=${EMBANK_GPU_CHECK-$root/build/cuda/bin/embank_gpu_check}
[[ -x $program ]] || {
  echo "error: $program is not there: ./test.sh --cuda builds it" >&2
  exit 2
}
mkdir -p "$out" || exit 2

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,pcie.link.gen.current \
    --format=csv >"$out/nvidia_smi.csv"
fi

status=0
timeout 300 "$program" "$out" || status=$?
[[ $status != 77 ]] || exit 77

# sanitize TOOL: its report is OUT/TOOL.txt; prints a field of JSON.
sanitize() {
  mkdir -p "$out/$1" || return 1
  local code=0
  timeout 110 compute-sanitizer --tool "$1" --error-exitcode 9 "$program" "$out/$1" --short \
    >"$out/$1.txt" 2>&1 || code=$?
  printf ', "%s_exit": %d' "$1" "$code"
  return "$code"
}

if command -v compute-sanitizer >/dev/null; then
  {
    printf '{"part": "sanitizer"'
    sanitize memcheck || status=1
    sanitize racecheck || status=1
    printf '}\n'
  } >"$out/sanitizer.json"
  cat "$out/sanitizer.json"
else
  echo "skipped: compute-sanitizer is not on the path"
fi
exit "$status"
