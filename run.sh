#!/usr/bin/env bash
# Installs what is missing, builds Embank, and replays a key trace through a store:
#   ./run.sh                 a generated trace
#   ./run.sh --trace FILE    a real one; further options go to `embank-bench replay`
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=.ci/house.sh
. "$root/.ci/house.sh"

install_packages run
configure release || fail "cmake could not configure the release preset: see the lines above"
build release || fail "the build failed: see the lines above"
say "replay: embank-bench replay $*"
exec "$root/build/release/bin/embank-bench" replay "$@"
