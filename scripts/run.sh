#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh <arguments of python>: this checkout's Python with this checkout's modules, tools first on PATH.
# It is replaced by Python, so that a signal to make reaches the command itself.
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd -P)
. "$root/scripts/where.sh"
[ -x "$venv/bin/python" ] || {
  echo "error: $venv is not set up; run 'make setup'" >&2
  exit 2
}
# flags that a caller exports for programs of its own would reach the makefiles of Verilator's builds
unset CFLAGS CPPFLAGS CXXFLAGS LDFLAGS LDLIBS OPT OPT_FAST OPT_GLOBAL OPT_SLOW
# and these would choose other tests
unset PYTEST_ADDOPTS PYTEST_PLUGINS
PATH=$root/scripts/bin:$venv/bin:$PATH
export PATH PYTHONPATH
# Packages are installed without compiled code, and a run of the tests starts hundreds of interpreters, each of which
# would compile numpy and cocotb again: where nothing may be written beside sources, it goes into the environment.
if [ "${PYTHONDONTWRITEBYTECODE:-}" ] || ! [ -w "$root" ]; then
  export PYTHONDONTWRITEBYTECODE=1
  [ -w "$venv" ] && unset PYTHONDONTWRITEBYTECODE && export PYTHONPYCACHEPREFIX="$venv/bytecode"
fi
open_output
# A signal before Python can answer it would show where Python was: it waits until the command, or
# conftest.py, looks.
case "$1 ${2-}" in
"-m openkpu" | "-m openkpu_tools" | "-m pytest")
  signals=--block-signal=INT,TERM,HUP
  env $signals true 2>/dev/null && exec env $signals "$venv/bin/python" "$@"
  ;;
esac
exec "$venv/bin/python" "$@"
