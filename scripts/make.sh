#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh TARGET: every target of the Makefile (scripts/openkpu_tools/setup/launch.py). It becomes the command
# itself in the end, so that SIGTERM, which make passes on, reaches that.
root=$(cd "$(dirname "$0")/.." && pwd -P)
. "$root/scripts/where.sh"
bootstrap launch "$@"
