#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh NAME...: sets up what the named groups and tools need and nothing twice
# (scripts/openkpu_tools/setup/setup_env.py). Exit status 2 with one line when something is missing that cannot be
# installed from here.
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd -P)
. "$root/scripts/where.sh"
bootstrap setup_env "$@"
