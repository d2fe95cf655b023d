#!/usr/bin/env bash
# Installs what is missing, builds Embank, and replays a key trace through a store in memory, then
# through one on disk with a quarter of its rows in memory, which is killed and opened again:
#   ./run.sh                 a generated trace
#   ./run.sh --trace FILE    a real one, in memory; further options go to `embank-bench replay`
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=.ci/house.sh
. "$root/.ci/house.sh"

install_packages run
configure release || fail "cmake could not configure the release preset: see the lines above"
build release || fail "the build failed: see the lines above"
say "replay: embank-bench replay $*"
"$root/build/release/bin/embank-bench" replay "$@"
say "survive: embank-bench survive"
"$root/build/release/bin/embank-bench" survive --path "$root/build/release"
say "all rows are what the oracle says"
