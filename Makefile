# SPDX-License-Identifier: Apache-2.0
# Every target first sets up what it lacks (scripts/setup.sh); a second run sets nothing up again.
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
FLAGS     := GOLDEN WAVES FAST BGR FUNCTIONS DISTURB SHARE RECORD BASELINE MAP PLACE ROUTE QUICK MUTANTS ALL
VARIABLES := $(FLAGS) SIM CONFIG BUS VECTORS MODEL NETWORK MATMUL TYPE KIND INPUT OUTPUT IMAGE IMAGES LAYERS VIA MAPS ROUNDING ACTIONS \
  DETECTOR PNG SCALE BIAS REPORT SEEDS SEED N MINUTES ITEM CLUSTER JOBS TESTS MODULE LEVEL STEPS MHZ PART PYTHON OPENKPU_SIM_SECONDS OPENKPU_SHARED \
  OPENKPU_COVERAGE XDG_CACHE_HOME TMPDIR PATH SHELL
given     = $(if $(filter command line,$(origin $(1))),$(1))
UNKNOWN   := $(firstword $(filter-out $(VARIABLES) MAKE% .% -%,$(foreach v,$(.VARIABLES),$(call given,$(v)))))
nearest    = $(shell python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1, 0.5))' \
  $(1) $(VARIABLES) 2>/dev/null)
ifneq ($(UNKNOWN),)
NEAREST := $(call nearest,$(UNKNOWN))
$(error unknown variable $(UNKNOWN), $(if $(NEAREST),did you mean $(NEAREST)?,'make help' lists those there are))
endif
TARGETS := help setup sim predict stream stalls waves test testplan sweep control regress coverage mutate bench bench-continuous bench-kept cycles \
  nightly lint synth synth-check fpga asic equivalence gates configs clean formal soak

# What a target takes beside the last of them (EVERYWHERE): a variable that it would ignore is an error.
EVERYWHERE := JOBS PYTHON OPENKPU_% XDG_CACHE_HOME TMPDIR PATH SHELL
TAKES_sim := SIM CONFIG BUS VECTORS GOLDEN REPORT WAVES IMAGES MODEL IMAGE LAYERS VIA MAPS ROUNDING FUNCTIONS DETECTOR PNG BGR SCALE BIAS \
  FAST MATMUL TYPE NETWORK INPUT OUTPUT SEED
TAKES_waves       := $(TAKES_sim)
TAKES_predict     := CONFIG BUS MHZ MODEL VIA MAPS FUNCTIONS NETWORK MATMUL TYPE REPORT SEED
TAKES_stream      := CONFIG BUS IMAGES NETWORK INPUT DISTURB REPORT SEED
TAKES_stalls      := REPORT PNG
TAKES_bench       := QUICK RECORD
TAKES_test        := TESTS ALL SEED
TAKES_sweep       := SEED
TAKES_control     := ACTIONS SEED
# every test with several seeds, or N random items
TAKES_regress     := SEEDS N KIND TESTS $(if $(SEEDS),,SEED SIM CONFIG CLUSTER)
TAKES_soak        := MINUTES SEED CONFIG ITEM
TAKES_coverage    := SHARE RECORD
TAKES_cycles      := RECORD
TAKES_nightly     := STEPS
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
$(foreach f,$(FLAGS),$(if $(filter-out 0 1,$($(f)))$(word 2,$($(f))),$(error $(f)=$($(f)): expected 0 or 1)))

SHELL  := /bin/bash
# relative to this file's folder, in which make stands: a path with a space never enters a recipe
RUN    := scripts/run.sh
OPENKPU := exec $(RUN) -m openkpu
PYTEST := exec $(RUN) -m pytest -n "$(JOBS)" --dist worksteal --durations=60 --durations-min=10
# a whole run leaves its results for the page of the test plan, where the checkout can be written
RECORDED = mkdir -p reports 2>/dev/null && [ -w reports ] && rm -f reports/results.jsonl && \
  export OPENKPU_RESULTS="$$PWD/reports/results.jsonl";
ON      = $(filter-out 0,$(1))
# a value stays with its name, so that one that begins with a dash is not taken for an option
option  = $(if $($(2)),--$(1)="$($(2))")
flag    = $(if $(call ON,$($(2))),--$(1))
# a variable of make's command line, or what a target takes without it
chosen  = $(if $(call given,$(1)),$($(1)),$(2))
SIM_ARGS = --sim="$(SIM)" --config="$(CONFIG)" $(call option,bus,BUS) $(if $(VECTORS),--vectors $(VECTORS)) \
  $(call flag,golden,GOLDEN) $(call option,report,REPORT) $(call flag,waves,WAVES) \
  $(call option,images,IMAGES) $(call option,model,MODEL) $(if $(IMAGE),--image $(IMAGE)) \
  $(call option,layers,LAYERS) $(call option,via,VIA) $(call option,maps,MAPS) $(call option,rounding,ROUNDING) \
  $(call flag,functions,FUNCTIONS) $(call option,detector,DETECTOR) $(call option,png,PNG) \
  $(call flag,bgr,BGR) $(call option,scale,SCALE) $(call option,bias,BIAS) $(call flag,fast,FAST) \
  $(if $(MATMUL),--matmul $(MATMUL)) $(call option,type,TYPE) \
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
	@echo "  SIM=icarus|verilator  CONFIG=nano|compact|small|medium|k210|large  BUS=32|64|128 (the configuration's)  VECTORS=\"file-or-folder ...\""
	@echo "  GOLDEN=1 golden model alone  REPORT=file.json  WAVES=1 FST file  IMAGES=number of digits"
	@echo "  NETWORK=net.npz a saved network (docs/networks.md)  INPUT=maps.npy  OUTPUT=results.npy"
	@echo "  MATMUL=512x512x512 or MATMUL=\"a.npy b.npy\" matrix product  TYPE=int8|uint8|fp16|fp16to16  OUTPUT=c.npy"
	@echo
	@echo "  with MODEL=file.kmodel:"
	@echo "  IMAGE=\"picture ...\"  LAYERS=3-7 those on the RTL, the others on the golden model"
	@echo "  VIA=burst|layers|tasks  how layers are started   ROUNDING=nncase|v01|trunc"
	@echo "  MAPS=dma|window  who moves maps: the device, or the host through the AI RAM window"
	@echo "  DETECTOR=side.json anchors and classes   PNG=out.png picture with boxes"
	@echo "  BGR=1 blue plane first   SCALE=, BIAS= float inputs: pixel * SCALE + BIAS"
	@echo "  FUNCTIONS=1 the KPU functions of a v5 model one by one, on random maps"
	@echo "  FAST=1 maps through the bench's back door instead of the host's bus"

setup: ## .venv, and Icarus when it is missing
	@scripts/setup.sh icarus verilator

sim: ## run a network or vectors on the RTL (see the variables below)
	@scripts/setup.sh $(if $(call ON,$(GOLDEN)),,"$(SIM)" $(if $(call ON,$(WAVES)),fst))
	@$(OPENKPU) sim $(SIM_ARGS)

predict: ## cycles of every layer without a simulator (MODEL, NETWORK or MATMUL and TYPE, CONFIG, BUS, VIA, MAPS, MHZ=100, REPORT)
	@scripts/setup.sh
	@$(OPENKPU) predict --config="$(CONFIG)" $(call option,bus,BUS) $(call option,mhz,MHZ) \
	  $(call option,model,MODEL) $(call option,via,VIA) $(call option,maps,MAPS) $(call flag,functions,FUNCTIONS) \
	  $(call option,network,NETWORK) $(if $(MATMUL),--matmul $(MATMUL)) $(call option,type,TYPE) \
	  $(call option,report,REPORT)

stream: ## digits, or maps of NETWORK=net.npz (INPUT=maps.npy), in one continuous run (IMAGES=1000 DISTURB=1 REPORT=file.json)
	@scripts/setup.sh verilator
	@$(OPENKPU) stream --sim=verilator --config="$(CONFIG)" $(call option,images,IMAGES) $(call option,bus,BUS) \
	  $(call option,network,NETWORK) $(call option,input,INPUT) $(call flag,disturb,DISTURB) $(call option,report,REPORT)

stalls: ## REPORT=report.json: draw where the cycles of each layer went (PNG=out.png)
	@scripts/setup.sh
	@$(OPENKPU) stalls $(call option,png,PNG) -- $(if $(REPORT),"$(REPORT)")

bench: ## what the device reaches -> reports, README (QUICK=1 CI's part, RECORD=1 new record)
	@scripts/setup.sh verilator
	@$(OPENKPU) bench $(call flag,quick,QUICK) $(call flag,record,RECORD)

bench-continuous: ## what continuous inference saves; writes docs/continuous.md
	@scripts/setup.sh verilator
	@$(OPENKPU) bench-continuous

bench-kept: ## what weights that stay in the AI RAM save; writes docs/kept.md
	@scripts/setup.sh verilator
	@$(OPENKPU) bench-kept

waves: ## the same with WAVES=1
	@$(MAKE) --no-print-directory sim WAVES=1

test: ## the tests, both simulators (TESTS=path narrows it, ALL=1 further sizes as well, JOBS=processes, SEED=number)
	@scripts/setup.sh icarus verilator
	@$(if $(TESTS),,$(RECORDED)) $(PYTEST) $(call flag,all,ALL) $(TESTS)

testplan: ## what is verified, by what, and what `make test` gave -> reports
	@scripts/setup.sh
	@$(OPENKPU) testplan

sweep: ## every register written in every cycle around every event (Verilator, nano; some minutes)
	@scripts/setup.sh verilator
	@OKPU_SWEEP=whole OPENKPU_SIM_SECONDS="$${OPENKPU_SIM_SECONDS:-7200}" \
	  exec $(RUN) -m pytest -n "$(JOBS)" tb/device/test_hostile.py -k "test_sweep and verilator"

control: ## a host that does anything at any time, ACTIONS=10000 of them (SEED=number)
	@scripts/setup.sh verilator
	@ACTIONS="$(or $(ACTIONS),10000)" exec $(RUN) -m pytest tb/device/test_control_random.py -k verilator

regress: ## N=200 SEED=1: random items (SIM, CONFIG, KIND=layer|product|elementwise|pool|float16|network|list, CLUSTER=tcp://...); SEEDS=10: every test with seeds 1 to 10
	@scripts/setup.sh $(if $(N),"$(call chosen,SIM,verilator)",icarus verilator)
	@$(OPENKPU) regress $(call option,seeds,SEEDS) $(call option,n,N) \
	  $(if $(N),$(call option,seed,SEED) --sim="$(call chosen,SIM,verilator)" \
	  $(if $(call given,CONFIG),--config="$(CONFIG)") $(call option,cluster,CLUSTER)) $(call option,kind,KIND) \
	  $(if $(or $(SEEDS),$(call given,JOBS)),--jobs="$(JOBS)") -- $(TESTS)

soak: ## MINUTES=60: random networks, streams, errors and resets in one simulation (SEED, CONFIG, ITEM)
	@scripts/setup.sh verilator
	@$(OPENKPU) soak $(call option,minutes,MINUTES) $(call option,seed,SEED) \
	  --config="$(CONFIG)" $(call option,item,ITEM)

coverage: ## device tests with coverage -> reports/coverage (SHARE=1 CI's part, RECORD=1 new record)
	@scripts/setup.sh verilator
	@$(OPENKPU) coverage --jobs="$(JOBS)" $(call flag,share,SHARE) $(call flag,record,RECORD)

cycles: ## cycles of layers, digits and a model against their record (RECORD=1 takes them over)
	@scripts/setup.sh verilator
	@$(OPENKPU) cycles --jobs="$(JOBS)" $(call flag,record,RECORD)

nightly: ## all long runs one after the other -> docs/verification.md (STEPS="name ...")
	@scripts/setup.sh icarus verilator asic
	@$(OPENKPU) nightly --steps="$(STEPS)"

mutate: ## RTL changed in N places, one at a time, must fail (SEED, MODULE=names or folders, KIND=logic|wiring, JOBS, RECORD=1 keeps verdicts) -> reports
	@scripts/setup.sh icarus verilator
	@$(OPENKPU) mutate --jobs="$(JOBS)" $(call option,n,N) $(call option,seed,SEED) \
	  $(call option,kind,KIND) $(call option,module,MODULE) $(call option,level,LEVEL) \
	  $(call flag,record,RECORD)

lint: ## Verilog and Python linters; clean or fails
	@scripts/setup.sh icarus verilator
	@$(OPENKPU) lint

synth: ## CONFIG=name|all mapped to ECP5, hierarchy kept: LUT, flip-flops, DSP, RAM of every box (REPORT=file.json, RECORD=1)
	@scripts/setup.sh
	@$(OPENKPU) synth $(if $(REPORT),--json="$(REPORT)") $(call flag,record,RECORD) -- "$(call chosen,CONFIG,nano)"

synth-check: ## every configuration elaborated by Yosys: no latch, loop, second driver, path through the bus ports
	@scripts/setup.sh
	@$(OPENKPU) synth --check

fpga: ## CONFIG=nano|nano_fp16|small placed and routed, compact placed, k210 mapped for an ECP5 -> reports/fpga (PART=25k|45k|85k, SEED=n; MAP=1, PLACE=1, ROUTE=1: how far; BASELINE=1, RECORD=1)
	@scripts/setup.sh
	@$(OPENKPU) fpga --config="$(if $(filter command line,$(origin CONFIG)),$(CONFIG),nano)" \
	  $(call flag,map-only,MAP) $(call flag,place-only,PLACE) $(call flag,route,ROUTE) \
	  $(call flag,baseline,BASELINE) $(call flag,record,RECORD) $(call option,seed,SEED) $(call option,part,PART)

asic: ## CONFIG=name in standard cells, timed -> reports/asic (BASELINE=1, RECORD=1)
	@scripts/setup.sh asic
	@$(OPENKPU) asic --config="$(if $(filter command line,$(origin CONFIG)),$(CONFIG),nano)" \
	  $(call flag,baseline,BASELINE) $(call flag,record,RECORD)

equivalence: ## CONFIG=name: what synthesis made of each module is the RTL, proven
	@scripts/setup.sh
	@$(OPENKPU) equivalence --config="$(if $(filter command line,$(origin CONFIG)),$(CONFIG),nano)" \
	  --jobs="$(JOBS)"

formal: ## properties of the RTL proven -> reports (MODULE=name, QUICK=1, MUTANTS=1 breaks each, RECORD=1)
	@scripts/setup.sh
	@$(OPENKPU) formal --jobs="$(JOBS)" $(call flag,quick,QUICK) $(call flag,mutants,MUTANTS) \
	  $(call flag,record,RECORD) -- $(MODULE)

gates: ## CONFIG=nano|compact|small: the netlist of ECP5 cells computes a layer and two digits (SIM, SEED)
	@scripts/setup.sh icarus verilator
	@$(OPENKPU) gates --config="$(if $(filter command line,$(origin CONFIG)),$(CONFIG),nano)" \
	  --sim="$(if $(filter command line,$(origin SIM)),$(SIM),verilator)" $(call option,seed,SEED)

configs: ## print the README's table of configurations
	@scripts/setup.sh
	@$(OPENKPU) configs

clean: ## remove builds and recordings (keeps .venv)
	rm -rf sim_build waves reports .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
