# SPDX-License-Identifier: Apache-2.0
# Read by setup.sh and run.sh after $root is set: $venv, the virtual environment of this checkout.
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
