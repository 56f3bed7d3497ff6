# SPDX-License-Identifier: Apache-2.0
# Every target is a command of scripts/openkpu_tools/registry.py, and make knows no more of it: it passes on the
# variables that the user has typed. `make help` lists the targets, docs/command-line.md their variables.

# Their names, without make's own; names with a dot are this file's.
.names := $(filter-out -*-% MAKEFLAGS MAKEOVERRIDES,$(.VARIABLES))
.given := $(foreach .v,$(.names),$(if $(filter command,$(origin $(.v))),$(.v)))
# Neither make nor a shell expands a value: from here on it is the text that was typed, and reaches commands by the
# environment.
$(foreach .v,$(.given),$(eval override export $(.v) := $$(value $(.v))))
override export OPENKPU_GIVEN := $(strip $(.given))
override export OPENKPU_GOALS := $(MAKECMDGOALS)
.run := exec '$(subst ','\'',$(dir $(lastword $(MAKEFILE_LIST))))scripts/make.sh'

.SUFFIXES:
.DEFAULT_GOAL := help
.PHONY: FORCE
FORCE $(MAKEFILE_LIST): ;
# a pattern has no default goal
help: FORCE
	@$(.run) help
%: FORCE
	@$(.run) '$(subst ','\'',$@)'
