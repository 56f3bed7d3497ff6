# SPDX-License-Identifier: Apache-2.0
# Every target is a command of scripts/openkpu_tools/registry.py, and make knows no more of it: it passes on the
# variables that the user has typed. `make help` lists the targets, docs/command-line.md their variables.

# Their names, without make's own.
override .given := $(foreach .v,$(filter-out -*-% MAKEFLAGS MAKEOVERRIDES,$(.VARIABLES)),$(if \
  $(filter command,$(origin $(.v))),$(.v)))
# Names with a dot are this file's or make's: with one of them something else would run.
override .refused := $(filter .% MAKEFILE_LIST PATH SHELL,$(.given) $(if $(filter command,$(origin .v)),.v))
$(if $(.refused),$(error unknown variable $(firstword $(.refused)), 'make help' lists those there are))
# Neither make nor a shell expands a value: from here on it is the text that was typed, and reaches commands by the
# environment.
$(foreach .v,$(.given),$(eval override export $(.v) := $$(value $(.v))))
override export OPENKPU_GIVEN := $(strip $(.given))
override export OPENKPU_GOALS := $(MAKECMDGOALS)

# This file may lie in a folder whose name has a space.
override .space := $(subst ,, )
override .self := $(wildcard $(subst $(.space),\ ,$(MAKEFILE_LIST)))
override .self := $(or $(.self),$(lastword $(MAKEFILE_LIST)))
override .run := exec "$$(dirname -- "$$(readlink -f -- '$(subst ','\'',$(.self))')")/scripts/make.sh"

.SUFFIXES:
.DEFAULT_GOAL := help
.PHONY: FORCE
FORCE $(if $(findstring $(.space),$(.self)),$(subst $(.space),\ ,$(.self)),$(MAKEFILE_LIST)): ;
# a pattern has no default goal
help: FORCE
	@$(.run) help
%: FORCE
	@$(.run) '$(subst ','\'',$@)'
