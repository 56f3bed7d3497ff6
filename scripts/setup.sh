#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh NAME...: sets up what the named groups and tools need and nothing twice (scripts/openkpu_tools/setup/setup_env.py,
# which this machine's own Python runs). Exit status 2 with one line when something is missing that
# cannot be installed from here.
root=$(cd "$(dirname "$0")/.." && pwd -P)
. "$root/scripts/where.sh"
for name in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
  "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
    exec "$name" -P "$root/scripts/setup_env.py" "$venv" "$@"
  [ -z "${PYTHON:-}" ] || { echo "setup: PYTHON=$PYTHON: expected Python 3.11 or later" >&2; exit 2; }
done
echo "setup: Python 3.11 or later is missing; please install python3" >&2
exit 2
