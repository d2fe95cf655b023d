# Sourced by run.sh and test.sh: packages, presets, words about progress.
# Expects $root, the top folder of the sources.

started_seconds=$SECONDS

say() { printf '[%4ds] %s\n' "$((SECONDS - started_seconds))" "$*"; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Names of the packages of packages.txt for "run", for "test" (which needs those of "run" too), or
# for "full" (which needs all three).
packages_for() {
  local kinds=run
  [[ $1 == run ]] || kinds='run|test'
  [[ $1 != full ]] || kinds='run|test|full'
  awk -v kinds="^($kinds)\$" '!/^#/ && NF && $2 ~ kinds { print $1 }' "$root/packages.txt"
}

missing_packages() {
  local package
  for package in $(packages_for "$1"); do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      echo "$package"
  done
}

# Installs what is missing of the packages for $1; touches neither apt nor the network otherwise.
install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    fail "Embank is built on Debian 12 or 13, and this system has no apt-get. It needs the" \
      "equivalents of: $(packages_for "$1" | xargs)"
  local missing
  missing=$(missing_packages "$1" | xargs)
  if [[ -z $missing ]]; then
    say "packages: all installed"
    return 0
  fi
  if [[ $(id -u) != 0 ]]; then
    printf '%s\n' "error: some packages are missing. Run this as root, then start again:" \
      "  apt-get update && apt-get install -y --no-install-recommends $missing" >&2
    exit 1
  fi
  say "packages: installing $missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q || fail "apt-get update failed: see the lines above (network? apt sources?)"
  # shellcheck disable=SC2086  # one argument per package
  apt-get install -q -y --no-install-recommends $missing ||
    fail "apt-get install failed: see the lines above"
  missing=$(missing_packages "$1" | xargs)
  [[ -z $missing ]] || fail "still missing after apt-get install: $missing"
}

# Configures preset $1 into build/$1. A build folder that was made elsewhere (the sources were moved
# or copied) is of no use to cmake: it is made again.
configure() {
  local cache=$root/build/$1/CMakeCache.txt
  if [[ -f $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    say "configure: build/$1 belongs to another folder; making it again"
    rm -rf "${root:?}/build/$1"
  fi
  say "configure: preset $1"
  (cd "$root" && cmake --preset "$1" --log-level=WARNING)
}

# Builds preset $1 (all targets, or those named after it).
build() {
  local preset=$1 target
  shift
  local arguments=()
  for target in "$@"; do arguments+=(--target "$target"); done
  say "build: preset $preset"
  cmake --build "$root/build/$preset" --parallel "$(nproc)" "${arguments[@]}"
}
