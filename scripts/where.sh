# SPDX-License-Identifier: Apache-2.0
# Read by the scripts beside it after $root is set: $venv, the virtual environment of this checkout, and what some of
# them do.
# Verilator's makefiles take no path with a space, and cocotb's libraries lie in the environment: for
# such a checkout, and for one that cannot be written, it is in the cache (tb/openkpu_tb/places.py has the same
# rule for builds).
venv=$root/.venv
case $root in
*[[:space:]]*) elsewhere=1 ;;
*) [ -x "$venv/bin/python" ] || [ -w "$root" ] && elsewhere= || elsewhere=1 ;;
esac
if [ "$elsewhere" ]; then
  base=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}
  case $base in *[[:space:]]*) base=${TMPDIR:-/tmp} ;; esac
  venv=$base/openkpu/$(printf %s "$root" | sha256sum | cut -c1-12)/venv
fi

# a caller's Python is not this one, and its optimization would leave out assertions, which benches are made of
unset PYTHONHOME PYTHONOPTIMIZE PYTHONINSPECT PYTHONPLATLIBDIR

# the roots of pyproject.toml and nothing of the caller's, whose modules would be imported; a test compares
PYTHONPATH=$root:$root/models:$root/tb:$root/scripts

# Nothing starts whose output nobody can see, and no file gets the output's number.
open_output() {
  ( : 3>&1 ) 2>/dev/null || {
    echo "error: the standard output is closed, expected it open (> /dev/null drops it)" >&2
    exit 2
  }
}

# MODULE WORD...: go on as a module of the set-up, run by this machine's own Python. A signal before Python can answer
# it would show where Python was: it waits until the module looks.
bootstrap() {
  open_output
  module=$root/scripts/openkpu_tools/setup/$1.py
  shift
  [ -w "$root" ] || export PYTHONDONTWRITEBYTECODE=1
  export PYTHONPATH
  signals=--block-signal=INT,TERM,HUP
  env $signals true 2>/dev/null || signals=
  for name in "${OPENKPU_PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    [ "$("$name" -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null)" = True ] &&
      exec env $signals "$name" -P "$module" "$venv" "$@"
    [ -z "${OPENKPU_PYTHON:-}" ] || {
      echo "error: OPENKPU_PYTHON=$OPENKPU_PYTHON: expected Python 3.11 or later" >&2
      exit 2
    }
  done
  echo "error: Python 3.11 or later is missing; please install python3" >&2
  exit 2
}
