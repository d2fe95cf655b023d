#!/usr/bin/env bash
# Proves that a machine with nothing but a minimal Debian can build, run and test Embank, and
# install the Python package:
#   tests/minimal_root.sh [--full | --python] RELEASE TARGET [MIRROR]
# RELEASE: bookworm (Debian 12) or trixie (Debian 13). Makes a minimal root of it in the new folder
# TARGET (root and debootstrap are needed), copies the sources into it without .git and build
# folders, and runs ./run.sh and ./test.sh (--full) there as root, then the lines of docs/python.md;
# with --python these alone, so that nothing else is installed. MIRROR: where packages come from; by
# default where this machine has its own from, with its settings of apt and pip.
# The mounts live in a mount namespace of their own: they are gone when this ends, however it ends.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# Runs in the mount namespace: $1 the root, then the command.
inside() {
  local target=$1
  shift
  mount -t proc proc "$target/proc"
  mount --rbind /sys "$target/sys"
  mount --rbind /dev "$target/dev"
  exec chroot "$target" /usr/bin/env -i HOME=/root TERM="${TERM-dumb}" \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    ${pip_settings[@]+"${pip_settings[@]}"} "$@"
}
# Settings of pip (a mirror, a time limit) are in the environment, too. Its certificates lie in a
# file of their own there.
pip_settings=()
while IFS= read -r setting; do pip_settings+=("$setting"); done < <(env | grep '^PIP_' |
  grep -v '^PIP_CERT=')
[[ ! -e ${PIP_CERT-/none} ]] || pip_settings+=("PIP_CERT=/etc/pip_certificates.pem")
if [[ ${1-} == --inside ]]; then
  shift
  inside "$@"
fi

test_options=() python_alone=
if [[ ${1-} == --full ]]; then
  test_options=(--full)
  shift
elif [[ ${1-} == --python ]]; then
  python_alone=1
  shift
fi
[[ ($# == 2 || $# == 3) && $1 =~ ^(bookworm|trixie)$ ]] ||
  fail "usage: tests/minimal_root.sh [--full | --python] bookworm|trixie TARGET [MIRROR]"
release=$1
target=$2
mirror=${3-}
[[ $(id -u) == 0 ]] || fail "debootstrap and chroot need root"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
[[ ! -e $target ]] || [[ -d $target && -z $(ls -A "$target") ]] || fail "$target is not empty"

own_release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
own_mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Release: $own_release" |
    head -n 1
}

# Settings of this machine's apt (proxies, keys), and its sources where they are those of the same
# release and the caller names no mirror; debootstrap has written one otherwise.
copy_apt_settings() {
  local name
  for name in apt.conf apt.conf.d auth.conf auth.conf.d keyrings trusted.gpg.d; do
    [[ ! -e /etc/apt/$name ]] || cp -a "/etc/apt/$name" "$target/etc/apt/"
  done
  if [[ -z $mirror && $release == "$own_release" ]]; then
    rm -f "$target/etc/apt/sources.list"
    for name in sources.list sources.list.d; do
      [[ ! -e /etc/apt/$name ]] || cp -a "/etc/apt/$name" "$target/etc/apt/"
    done
    mkdir -p "$target/usr/share/keyrings"
    cp -an /usr/share/keyrings/. "$target/usr/share/keyrings/"
  fi
  for name in resolv.conf hosts; do cp -L "/etc/$name" "$target/etc/$name"; done
  [[ ! -e ${PIP_CERT-/none} ]] || cp -L "$PIP_CERT" "$target/etc/pip_certificates.pem"
}

table=()
# timed NAME COMMAND...
timed() {
  local name=$1 begin=$SECONDS status=0
  shift
  "$@" || status=$?
  table+=("$(printf '%-24s %6d s  exit status %d' "$name" $((SECONDS - begin)) "$status")")
  return "$status"
}
in_root() {
  unshare --mount --propagation private "$top/tests/minimal_root.sh" --inside "$target" "$@"
}

failures=0
timed "debootstrap" debootstrap --variant=minbase "$release" "$target" "${mirror:-$(own_mirror)}" ||
  fail "debootstrap failed: see $target/debootstrap/debootstrap.log"
copy_apt_settings
mkdir -p "$target/srv/embank"
tar -C "$top" --exclude=./.git --exclude=./build --exclude=./out --exclude=./.cache -cf - . |
  tar -C "$target/srv/embank" --no-same-owner -xf -
# What docs/python.md tells its reader to type.
install_python() {
  in_root /bin/bash -e -c "cd /srv/embank && export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    apt-get install -q -y --no-install-recommends g++ libxxhash-dev liburing-dev python3-venv \
      python3-torch
    python3 -m venv --system-site-packages /srv/v
    /srv/v/bin/pip install .
    cd /srv && v/bin/python -m embank && v/bin/python embank/examples/python/click_model.py"
}
if [[ -z $python_alone ]]; then
  timed "run.sh" in_root /srv/embank/run.sh || failures=$((failures + 1))
  timed "run.sh, again" in_root /srv/embank/run.sh || failures=$((failures + 1))
  timed "test.sh ${test_options[*]}" in_root /srv/embank/test.sh "${test_options[@]}" ||
    failures=$((failures + 1))
fi
timed "pip install, click_model" install_python || failures=$((failures + 1))
printf '\n'
printf '%s\n' "${table[@]}"
exit $((failures > 0))
