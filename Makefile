# SPDX-License-Identifier: Apache-2.0
# Every target first sets up what it lacks (scripts/setup.sh); a second run sets nothing up again.
SIM     ?= icarus
CONFIG  ?= small
VECTORS ?=
MODEL   ?=
IMAGE   ?=
LAYERS  ?=
VIA     ?=
ROUNDING ?=
FUNCTIONS ?=
DETECTOR ?=
PNG     ?=
BGR     ?=
SCALE   ?=
BIAS    ?=
FAST    ?=
GOLDEN  ?=
REPORT  ?=
WAVES   ?=
IMAGES  ?=
DISTURB ?=
SEEDS   ?= 5
JOBS    ?= 2
TESTS   ?=
SHARE   ?=
RECORD  ?=

SHELL  := /bin/bash
BIN    := $(CURDIR)/.venv/bin
PYTHON_RUN := PATH="$(CURDIR)/scripts/bin:$(BIN):$$PATH" PYTHONPATH="$(CURDIR)" $(BIN)/python
PYTEST := $(PYTHON_RUN) -m pytest -n $(JOBS) --dist worksteal
ON      = $(filter-out 0,$(1))
SIM_ARGS = --sim "$(SIM)" --config "$(CONFIG)" $(if $(VECTORS),--vectors $(VECTORS)) \
  $(if $(call ON,$(GOLDEN)),--golden) $(if $(REPORT),--report "$(REPORT)") \
  $(if $(call ON,$(WAVES)),--waves) $(if $(IMAGES),--images "$(IMAGES)") \
  $(if $(MODEL),--model "$(MODEL)") $(if $(IMAGE),--image $(IMAGE)) \
  $(if $(LAYERS),--layers "$(LAYERS)") $(if $(VIA),--via "$(VIA)") \
  $(if $(ROUNDING),--rounding "$(ROUNDING)") $(if $(call ON,$(FUNCTIONS)),--functions) \
  $(if $(DETECTOR),--detector "$(DETECTOR)") $(if $(PNG),--png "$(PNG)") \
  $(if $(call ON,$(BGR)),--bgr) $(if $(SCALE),--scale="$(SCALE)") $(if $(BIAS),--bias="$(BIAS)") \
  $(if $(call ON,$(FAST)),--fast)

.DEFAULT_GOAL := help
.PHONY: help setup sim stream waves test regress coverage bench-continuous lint synth synth-check configs clean

help: ## this list
	@echo "make sim SIM=icarus              handwritten digits on the RTL"
	@echo "make sim SIM=verilator CONFIG=k210 VECTORS=models/tests/data/vectors   replay layer vectors"
	@echo "make sim SIM=verilator CONFIG=k210 MODEL=face.kmodel IMAGE=photo.jpg PNG=found.png   a K210 model"
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
	@echo
	@echo "  SIM=icarus|verilator  CONFIG=nano|small|medium|k210|large  VECTORS=\"file-or-folder ...\""
	@echo "  GOLDEN=1 golden model alone  REPORT=file.json  WAVES=1 FST file  IMAGES=number of digits"
	@echo
	@echo "  with MODEL=file.kmodel:"
	@echo "  IMAGE=\"picture ...\"  LAYERS=3-7 those on the RTL, the others on the golden model"
	@echo "  VIA=burst|layers|tasks  how layers are started   ROUNDING=nncase|v01|trunc"
	@echo "  DETECTOR=side.json anchors and classes   PNG=out.png picture with boxes"
	@echo "  BGR=1 blue plane first   SCALE=, BIAS= float inputs: pixel * SCALE + BIAS"
	@echo "  FUNCTIONS=1 the KPU functions of a v5 model one by one, on random maps"
	@echo "  FAST=1 maps through the bench's back door instead of the host's bus"

setup: ## .venv, and Icarus when it is missing
	@scripts/setup.sh icarus verilator

sim: ## run a network or vectors on the RTL (see the variables below)
	@scripts/setup.sh $(if $(call ON,$(GOLDEN)),,$(SIM) $(if $(call ON,$(WAVES)),fst))
	@$(PYTHON_RUN) -m scripts.sim $(SIM_ARGS)

stream: ## digits in one continuous run (IMAGES=1000 DISTURB=1 random wait states and grants)
	@scripts/setup.sh verilator
	@$(PYTHON_RUN) -m scripts.run_stream --sim verilator --config "$(CONFIG)" \
	  $(if $(IMAGES),--images "$(IMAGES)") $(if $(call ON,$(DISTURB)),--disturb)

bench-continuous: ## what continuous inference saves; writes docs/continuous.md
	@scripts/setup.sh verilator
	@$(PYTHON_RUN) -m scripts.bench_continuous

waves: ## the same with WAVES=1
	@$(MAKE) --no-print-directory sim WAVES=1

test: ## every test, both simulators (TESTS=path narrows it, JOBS=processes, SEED=number)
	@scripts/setup.sh icarus verilator
	@$(PYTEST) $(TESTS)

regress: ## every test with seeds 1 to SEEDS (TESTS, JOBS as for test)
	@scripts/setup.sh icarus verilator
	@$(PYTHON_RUN) -m scripts.regress --seeds="$(SEEDS)" --jobs "$(JOBS)" -- $(TESTS)

coverage: ## device tests with coverage -> reports/coverage (SHARE=1 CI's part, RECORD=1 new record)
	@scripts/setup.sh verilator
	@$(PYTHON_RUN) -m scripts.coverage --jobs "$(JOBS)" $(if $(call ON,$(SHARE)),--share) \
	  $(if $(call ON,$(RECORD)),--record)

lint: ## Verilog and Python linters; clean or fails
	@scripts/setup.sh icarus verilator
	@$(PYTHON_RUN) -m scripts.lint

synth: ## nano mapped to ECP5: LUT, carry, flip-flops, DSP, RAM of every box
	@scripts/setup.sh
	@$(PYTHON_RUN) -m scripts.synth

synth-check: ## every configuration elaborated by Yosys: no latch, no loop, one driver a net
	@scripts/setup.sh
	@$(PYTHON_RUN) -m scripts.synth --check

configs: ## print the README's table of configurations
	@scripts/setup.sh
	@$(PYTHON_RUN) -m scripts.configs

clean: ## remove builds and recordings (keeps .venv)
	rm -rf sim_build waves reports .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
