#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The second tier (`make check`): tests of the tier, the share of the coverage, quick proofs, mutants of a
# module, the quick bench, lint, one configuration mapped, and the index of the reports. Behind the tests two rows of steps run beside each
# other: most of a step is one process.
# check.sh <jobs> <options of pytest>: reports are left in reports/, a line for each step is printed last.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=$1
shift
kept=$(mktemp -d)
beside=
# the row beside is a process group of its own, which no Ctrl-C reaches
trap '[ -z "$beside" ] || kill -TERM -- "-$beside" 2>/dev/null; rm -rf "$kept"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step() { # title, words of the command
  local began=$SECONDS title=$1 verdict=good
  shift
  echo "== $title: $*"
  "$@" || verdict=FAILED
  echo "$title: $verdict ($((SECONDS - began)) s)" >>"$kept/said"
}

tests() { scripts/run.sh -m pytest -n "$jobs" --dist worksteal --durations=30 --durations-min=10 --tier=check "$@" | tee "$kept/tests"; }
others() {
  step asic make asic CONFIG=nano BASELINE=1
  step fpga make fpga CONFIG=nano_fpga MAP=1 BASELINE=1
  step lint make lint
  step mutation make mutate N=8 SEED=1 MODULE=fifo_sync JOBS="$jobs"
  step bench make bench QUICK=1
}

mkdir -p reports 2>/dev/null && [ -w reports ] && export OPENKPU_RESULTS="$PWD/reports/results.jsonl"
step tests tests "$@"
set -m
others >"$kept/others" 2>&1 </dev/null &
beside=$!
set +m
step coverage make coverage SHARE=1 JOBS="$jobs"
step "test plan" make testplan
step formal make formal QUICK=1 JOBS="$jobs"
wait "$beside"
beside=
step reports make reports
cat "$kept/others" "$kept/said"
# what pytest said before all the other steps: what did not run, and which command runs it
grep -E '^[0-9]+ (skipped: |of (another tier|a tool))' "$kept/tests"
grep -E '^(FAILED|ERROR) ' "$kept/tests"
! grep -q ': FAILED (' "$kept/said"
