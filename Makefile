# SPDX-License-Identifier: Apache-2.0
# Every target is a command of scripts/openkpu_tools/registry.py, and make knows no more of it: it passes on the
# variables that the user has typed. `make help` lists the targets, docs/command-line.md their variables.

# Their names, without make's own.
GIVEN := $(foreach v,$(filter-out MAKE% -%,$(.VARIABLES)),$(if $(filter command,$(origin $v)),$v))
# Neither make nor a shell expands a value: from here on it is the text that was typed, and reaches commands by the
# environment.
$(foreach v,$(GIVEN),$(eval override export $v := $$(value $v)))
override export OPENKPU_GIVEN := $(strip $(GIVEN))
override export OPENKPU_GOALS := $(MAKECMDGOALS)

.SUFFIXES:
.DEFAULT_GOAL := help
.PHONY: FORCE
FORCE Makefile: ;
# a pattern has no default goal
help: FORCE
	@exec scripts/make.sh help
%: FORCE
	@exec scripts/make.sh '$@'
