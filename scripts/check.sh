#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The second tier (`make check`): tests of the tier, the share of the coverage, quick proofs, mutants of a
# module, the quick bench, lint, and one configuration mapped, each beside the others where a core is idle.
# check.sh <jobs> <options of pytest>: reports are left in reports/, a line for each step is printed last.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=$1
shift
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT
worst=0
said=()

step() { # title, words of the command
  local began=$SECONDS title=$1
  shift
  echo "== $title: $*"
  if "$@"; then
    said+=("$title: good ($((SECONDS - began)) s)")
  else
    said+=("$title: FAILED ($((SECONDS - began)) s)")
    worst=1
  fi
}

tests() { scripts/run.sh -m pytest -n "$jobs" --dist worksteal --durations=30 --durations-min=10 --tier=check "$@" | tee "$kept/tests"; }
flows() { make asic CONFIG=nano BASELINE=1 && make fpga CONFIG=nano_fpga MAP=1 BASELINE=1; }
flowed() {
  local status=0
  wait "$flowing" || status=$?
  cat "$kept/flows"
  return $status
}

mkdir -p reports 2>/dev/null && [ -w reports ] && export OPENKPU_RESULTS="$PWD/reports/results.jsonl"
step tests tests "$@"
# they take one processor, and the build of the next step leaves one idle
flows >"$kept/flows" 2>&1 &
flowing=$!
step coverage make coverage SHARE=1 JOBS="$jobs"
step "test plan" make testplan
step formal make formal QUICK=1 JOBS="$jobs"
step mutation make mutate N=8 SEED=1 MODULE=fifo_sync JOBS="$jobs"
step bench make bench QUICK=1
step lint make lint
step "asic and fpga, begun before coverage" flowed

printf '%s\n' "${said[@]}"
# what pytest said before all the other steps: what did not run, and which command runs it
grep -E '^[0-9]+ (skipped: |of (another tier|a tool))' "$kept/tests"
grep -E '^(FAILED|ERROR) ' "$kept/tests"
exit $worst
