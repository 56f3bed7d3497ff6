# SPDX-License-Identifier: Apache-2.0
"""Requests that cannot be met: one line that says why, status 2, nothing printed or written.

What holds for every command is tested by kind: numbers (test_numbers.py), files that are read
(test_file_arguments.py), pairs of options of sim (test_pairs.py), configurations here.
"""

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from models.tests.readers.test_onnx_exporters import File
from openkpu import digits
from openkpu.checkout import ROOT
from openkpu.generators.generate import Limits
from openkpu.generators.generate_products import random_product
from openkpu.layer.vectors import save_file
from openkpu_tb import simrun
from openkpu_tools import command
from openkpu_tools.entries.flows import every_config
from openkpu_tools.registry import COMMANDS, parse_command
from scripts.tests.conftest import Refused

pytestmark = pytest.mark.fixed  # the same with every seed

# matrices and calibration data beside the samples
ARRAYS = {
    "a": np.zeros((2, 3), np.int8),
    "w": np.zeros((3, 2), np.int16),
    "h": np.zeros((2, 2), np.float16),
    "e": np.zeros((0, 2), np.float16),
    "k": np.zeros((1, 9217), np.float16),
    "l": np.zeros((9217, 1), np.float16),
    "m": np.zeros((1, 131073), np.int8),
    "n": np.zeros((131073, 1), np.int8),
    "narrow": np.zeros((3, 3, 16, 15), np.float32),
    "no": np.zeros((0, 3, 16, 16), np.float32),
    "nan": np.full((2, 3, 16, 16), np.nan, np.float32),
    "inf": np.full((2, 3, 16, 16), np.inf, np.float32),
    "bytes": np.zeros((2, 3, 16, 16), np.uint8),
    "map": np.zeros((1, 9, 8, 1), np.int8),
    "words": np.zeros((1, 8, 8, 1), np.int32),
}
# What is typed, and parts of the answer. {K}: a K210 model with its picture, {Q} and {F}: a model
# that is quantised, that is float. Of commands with commas between them each says it.
TABLE = """
sim --golden --model m.kmodel | --model without --image, expected a picture
sim --golden --model m.kmodel --input x.npy | --input is of networks and compiled models
sim --golden=1 | --golden='1': expected no value
sim --golden --matmull a.npy b.npy | unknown option --matmull, did you mean --matmul?
sim --golden --xyzzy | unknown option --xyzzy, openkpu sim --help lists those there are
sim --golden --model=-- --image=p.png | error: --model: --: No such file
vectors --out x | unknown option --out, expected its value alone
stalls --report=x.json | unknown option --report, expected its value alone
stalls --report x.json | unknown option --report, expected its value alone
sim --golden --model q.tflite --input nothing.npz | nothing.npz: no array for the input
sim --golden --matmul behind.npy a.npy | behind.npy: not a complete .npy file: it goes on behind its array
quantise {F} --wide=-5% | --wide='-5': expected a number from 0 to 1000 in front of %
quantise {F} --wide 1e9% | --wide='1e9': expected a number from 0 to 1000 in front of %
sim --golden --image p.png | --image without --model, expected a model
sim --golden --layers 0-1 | --layers without --model
sim --golden --rounding v01 | --rounding without --model
sim --golden --via tasks | --via without --model
sim --golden --input i.npy | --input without --network, expected a network
sim --golden --network n.npz --input i.npy --images 2 | --input and --images together: the file says how many
sim --golden {K} --vectors v.npz | --model and --vectors together, expected one of them
sim --golden {K} --images 3 | --images counts digits or maps of a network; a model takes --image
sim --golden --vectors v.npz --images 3 | all layers of the files are run
sim --golden --vectors v.npz --png a.png | --png and --vectors together, expected digits, a model or a network
sim --golden --vectors sums.npz --config lite_fpga | sums/L00: sums of 32 bits, configuration lite_fpga has out32 = 0
sim --vectors sums.npz --config lite_fpga | sums/L00: sums of 32 bits, configuration lite_fpga has out32 = 0
sim --golden --vectors {ROOT}/models/tests/data/vectors/raw_pool0.npz --config lite_fpga | L00: BAD_ADDR: output map occupies
sim --golden --check | --golden and --check together
sim --golden --waves | --golden and --waves together: no simulator runs
sim --sim x | --sim='x': expected icarus or verilator
sim --what | --what
sim --gol | --gol
sim --golden --network= | --network='': expected a name
sim --golden --matmul 2x2x2 --report= | --report='': expected a name
sim --golden --matmul 2x2x2 --png= | --png='': expected a name
sim --golden --matmul 2x2x2 --output= | --output='': expected a name
sim --golden --network n.npz --report a.npy --output a.npy | a.npy: named for two outputs
sim --golden {K} --layers a-b | --layers='a-b': expected layers, for example 3-7
sim --golden {K} --layers 2-9 | layers '2-9': the model has layers 0-3
sim --golden {K} --layers {NINES} | the model has layers 0-
sim --golden {K} --layers 0-{NINES} | the model has layers 0-
sim --golden {K} --layers {NINES}- | the model has layers 0-
sim --golden {K} --rounding up | --rounding='up': expected nncase, v01 or trunc
sim --golden {K} --png out.jpg | out.jpg: expected a name that ends in .png
sim --golden {K} --png no/o.png | no/o.png: the folder does not exist
sim --golden --model m.kmodel --image p.png p.png --png o.png | --png shows one picture, expected one --image
sim --golden --model m.kmodel --functions | version 3 has no functions, expected version 5
sim --golden {K} --functions | --functions and --image together: functions run on random maps
sim --golden --model p.png --image p.png | p.png
sim --golden --model m.kmodel --image m.kmodel | m.kmodel: no picture that can be read
sim --golden {K} --image p.png | --image: given twice, expected once
sim --golden --images 2 --images 3 | --images: given twice, expected once
sim --golden --vectors v.npz --vectors v.npz | --vectors: given twice, expected once
sim --golden --report r.json --report s.json | --report: given twice, expected once
predict --model m.kmodel --model m.kmodel | --model: given twice, expected once
stream --seed 1 --seed 2 | --seed: given twice, expected once
kmodel m.kmodel --image p.png --image q.png | --image: given twice, expected once
sim --golden {K} --scale 0.5 | is uint8, not float
sim --golden {K} --bias 0.0 | is uint8, not float
sim --golden {K} --numbering 1.33 | '1.33': expected a release of nncase; 1.0-dev, 1.0.0
sim --golden --numbering 1.3.0 | --numbering without --model
sim,predict --golden --model two.kfpkg:five.kmodel --functions --numbering 1.3.0 | expected no --functions with it
sim,predict --model two.kfpkg --golden --image p.png | five.kmodel, three.kmodel, expected one: two.kfpkg:name
sim,predict --model two.kfpkg:five.kmodel --golden --image p.png --numbering 1.0.0 | nncase 1.0.0, as asked
sim,predict --model two.kfpkg:three.kmodel --golden --image p.png --numbering 1.9.0 | version 3 has no numbering
sim --golden --model two.kfpkg:three.kmodel --image p.png --report two.kfpkg | two.kfpkg: would be read and written

sim,predict --golden --matmul=-4x4x4 | -4x4x4: No such file or directory, nor is it MxKxN, for example 4x36x16
sim --golden --matmul 4x4x4 -4x4x4 | 4x4x4: No such file or directory
sim --golden --matmul -4x4x4 4x4x4 | -4x4x4: No such file or directory
sim --golden --matmul -1 | -1: No such file or directory, nor is it MxKxN
sim --golden --matmul -a.npy a.npy | -a.npy: No such file or directory
sim --golden --matmul 4x5 | 4x5: No such file or directory, nor is it MxKxN
sim --golden --matmul a.npy a.npy a.npy | expected MxKxN, for example 4x36x16, or two
sim --golden --matmul 4x16385x3 | --matmul=4x16385x3: expected sizes of 1 to 16384
sim --golden --matmul 4x123456789x3 | 4x123456789x3: expected sizes of 1 to 16384
sim,predict --golden --matmul 0x1x1 | --matmul=0x1x1: expected sizes
sim --golden --matmul m.npy n.npy | K = 131073, a product has 131072 at most
sim,predict --golden --matmul 4x9217x3 --type=fp16 | expected sizes of 1 to 16384, K to 9216
sim --golden --matmul no_such.npy a.npy | no_such.npy: No such file or directory
sim --golden --matmul a.npy a.npy | a.npy is (2, 3), a.npy is (2, 3)
sim --golden --matmul a.npy w.npy | w.npy: int16(3, 2), expected a matrix of int8
sim --golden --matmul a.npy a.npy --type=int8 | --type is of random matrices
sim --golden --matmul a.npy a.npy --type=fp16 | a.npy is int8, expected float16
sim --golden --matmul h.npy h.npy --type=uint8 | --type is of random matrices
sim --golden --matmul a.npy h.npy | a.npy is int8, h.npy is float16
sim --golden --matmul e.npy h.npy | e.npy: float16(0, 2), expected a matrix of int8
sim --golden --matmul k.npy l.npy | K = 9217, a layer has at most 9216 input channels
predict --matmul 4x6x8 --type=fp16 --config=k210 | a product of float16, configuration k210 has fp16_lanes = 0
sim,predict --golden --type=int8 | --type without --matmul
sim --golden --matmul 1x1x1 --images=3 | a product has two matrices
sim --golden --matmul 1x1x1 --vectors=a.npy | --vectors and --matmul together

sim,predict --golden {Q} --via tasks | --via and q.onnx together, expected a kmodel
sim --golden {Q} --layers 3-7 | --layers and q.onnx together, expected a kmodel
sim --golden {Q} --rounding trunc | --rounding and q.onnx together
sim --golden {Q} --input x.npy --images 2 | --input and --images together
sim --golden {Q} --image p.png --input x.npy | --image and --input together: both say what comes in
sim --golden {Q} --mean 1 | --mean without --image
sim --golden {Q} --detector d.json | --detector without --image
sim --golden {Q} --png o.png | --png without --image
sim --golden {Q} --raw | --raw without --output
sim --golden --model flat.onnx --image p.png | a picture needs one input of four sizes, the model has 'x' (1, 12)
sim --golden {Q} --image none.png | none.png: No such file
sim --golden {Q} --labels none.txt | none.txt: No such file
sim --golden {Q} --labels l.txt | 1 names, expected 10
sim --golden --model q.tflite --shape 1x1x8x8 | sizes of a TFLite model are fixed
compile q.tflite -o no/o.okpu | --output: no/o.okpu: the folder does not exist
sim --golden --model q.tflite --input map.npy --output y.npy | expected
sim --golden --model q.tflite --input words.npy --output y.npy | expected
sim --golden --labels l.txt | --labels without a TFLite or ONNX --model
sim --golden --raw | --raw without a TFLite or ONNX --model
sim --golden --mean 1 | --mean without a TFLite or ONNX --model
sim --golden --shape 1x2 | --shape without a TFLite or ONNX --model
predict,stream --shape 1x1x8x8 | --shape without
compile cut.tflite -o net.okpu | cut.tflite
compile none.onnx -o net.okpu | none.onnx: No such file
compile q.tflite -o net.txt | net.txt: expected a name that ends in .okpu
compile q.tflite --shape 1xa | expected a shape, for example
compile,predict,stream {F} | a float model: compile, sim, predict, stream and quantise need; --calibration=
compile,predict,stream,sim {Q} --calibration x.npy --wide a | this one is quantised already
compile net.okpu --calibration x.npy | this one is quantised already
quantise {F} | no --calibration, expected a folder of pictures
compile,predict,stream,sim,quantise {F} --samples 3 | --samples without --calibration
compile,predict,stream,sim {F} --wide /net/Conv_0 | --wide without --calibration
compile,predict,stream {F} --mean 3 | --mean without --calibration
predict,stream,quantise {F} --calibration x.npy --mean 3 | expected a folder of pictures
predict,stream --calibration x.npy | --calibration without
predict,stream --model m.kmodel --calibration x.npy | --calibration without a quantised model
predict,stream {F} --calibration x.npy --report x.npy | x.npy: would be read and written
quantise {F} --calibration x.npy --method best | expected minmax, percentile or entropy
quantise {F} --calibration nothing | nothing: No such file
quantise {F} --calibration none | no picture in it
quantise {F} --calibration broken | x.png: no picture that can be read
quantise {F} --calibration f.onnx | not a complete .npy file
quantise {F} --calibration narrow.npy | expected (1, 3, 16, 16), or (n, 3, 16, 16)
quantise {F} --calibration no.npy | expected (1, 3, 16, 16)
quantise {F} --calibration nan.npy | has a NaN or infinity
quantise {F} --calibration inf.npy | has a NaN or infinity
quantise {F} --calibration bytes.npy | uint8(2, 3, 16, 16) for the input 'x', expected float32
quantise {F} --calibration x.npy -o q.txt | q.txt: expected a name that ends in .onnx
quantise {F} --calibration x.npy -o f.onnx | f.onnx: would be read and written
quantise x.npy --calibration x.npy | no model, expected one of

export --base 0x80000004 | --base=0x80000004: expected a multiple of 8
export --base 08 | --base='08': expected an address, for example 0x80000000
export --base 0xfffff000 | expected them to end below 4 GiB
export --memory 1000 | --memory=1000: expected 13568 bytes or more, 13440 of them for the
export --output folder | folder: is a folder, expected the first part of the files' names
export --output openkpu | openkpu: the driver's begin with openkpu, expected another name
export --output OpenKPU_AI | the driver's begin with openkpu, expected another name by
export --output string | --output=string: string.h is a header of C, expected another
export --config nano_fpga --model empty | empty
export --config nano_fpga --model {DIGITS}/network.npz | network.npz: layer 0: BAD_ADDR: output
soc --devices 2 | expected --program=stream
soc --model digits digits | 2 models, expected at most --devices=1
soc --model nothing.npz | nothing.npz
soc --images 2 --program k210 | --images=2 with --program=k210, expected
soc --images 2 --program recovery | expected --program=run or stream
soc --quiet | --quiet with --program=run, expected --program=stream
soc --images 1000 | --images=1000 with --model=digits, expected

sim,predict,stream --golden --network {DIGITS}/network.npz --config nano_fpga | network.npz: layer 0: BAD_ADDR
predict --model= | --model='': expected a name
predict --model "two  spaces" | error: --model: two  spaces: No such file or directory
predict --model " " | error: --model:  : No such file or directory
predict --model https://host/a.kmodel | error: --model: https://host/a.kmodel: No such file or directory
predict --model no.kfpkg:a | error: --model: no.kfpkg:a: No such file or directory
predict --model m.kmodel --network n.npz | --model and --network together, expected one of them
predict --functions | --functions without --model
predict --maps=window | --maps without --model
predict --mhz=fast | 'fast': expected a number from 0.001 to 1e+06
predict --report=no/report.json | the folder does not exist
predict --model two.kfpkg:five.kmodel --numbering=x | expected a release of nncase
stream --input i.npy | --input without --network
stream --input= | --input='': expected a name
stream --report /proc/x.json | /proc/x.json
stalls | no report, expected a JSON file that a run has written
stalls r.json | r.json: not the report of a run: no 'config' in it
stalls list.json | list.json: not the report of a run: a part is of another type
stalls deep.json | deep.json: not a JSON file: its parts are nested too deeply
sim --golden {K} --detector list.json | list.json: no detector description: expected an object
sim --golden {K} --detector type.json | type.json: no detector description: a part is of another type
sim --golden --model m.kmodel --image huge.png | huge.png: too many pixels, expected 67108864 at most
sim --golden --model m.kmodel --image wide.png | wide.png: 8193 x 8193 pixels, expected 67108864 at most
sim --golden --model m.kmodel --image l.txt | l.txt: no picture that can be read, expected one in PNG, JPEG or
sim --golden --network v.npz | v.npz: not a network image: no 'words' in it
sim --golden --matmul objects.npy a.npy | objects.npy: not a complete .npy file: it holds Python objects
predict --matmul= | --matmul='': expected a name
predict --matmul 4x4x4 --config {NINES} | unknown configuration '9999999999999999999999999999999999999999', expected
equivalence nothere | no module nothere, expected some of the RTL
kmodel m.kmodel --image= | argument --image: '': expected a name
kmodel "" | argument file: '': expected a name
kmodel m.kmodel --image p.png --png=/dev/tty | /dev/tty: expected a file, or a
kmodel m.kmodel --png=o.png | --png without --image
kmodel m.kmodel --scale=1 | --scale without --image
kmodel m.kmodel --functions --image=p.png | --image and --functions
kmodel m.kmodel --image p.png --scale 2 | --scale: the input of m.kmodel is u1, not float
kmodel m.kmodel --image p.png --bias 1 | --bias: the input of m.kmodel is u1, not float
kmodel --nu=1 x | --nu
vectors out --count=3 | --count is of random layers, expected --set random
vectors out --set=pools --size=40 | --size is of random layers
vectors out --set random --channels 1024 --size 512 | --channels=1024 with --size=512: 2 maps of 1024x512x512
vectors,register-formats v.npz | out: v.npz: v.npz is a file, expected a folder
vectors,register-formats v.npz/below | v.npz is a file, expected a folder
vectors /proc/out | /proc/out

regress | no --n and no --seeds, expected one of them
regress --n=200 | no --seed
regress --n=2 --seed=1 --sim=vcs | vcs
regress --n=2 --seed=1 --seeds=3 | --n and --seeds together
regress --n=2 --seed=1 --cluster=nowhere | --cluster=nowhere: expected tcp://host:port
regress --n=2 --seed=1 --kind=sums | 'sums'
regress --n=2 --seed=1 --kind=float16 | small has fp16_lanes = 0, expected --config=nano_fp16
regress --n=2 --seed=1 --kind=product --config=lite_fpga | lite_fpga has out32 = 0, expected
regress --n=2 --seed=1 --kind=graph --config=lite_fpga | lite_fpga has pool_lanes = 0, expected
regress --n=3 --seed=1 --cluster=a:1 --jobs=2 | --cluster and --jobs together
regress --n=2 --seed=1 {ROOT}/tb | --n and tests together
regress --seeds=2 --kind=list | --kind without --n
regress --seeds=2 --seed=4294967295 | --seed=4294967295 and --seeds=2: expected seeds below 4294967296
soak | no --minutes, expected a number of minutes
soak --min=1 | --min
formal --mutants --record | --mutants and --record together
nightly --page --check | --page and --check together
nightly --steps=lint --page | --steps and --page together
nightly --steps=lint --check | --steps and --check together
nightly --record --release | --record and --release together
nightly --steps=sleep | --steps: no step 'sleep', expected some of tests
predict --matmul 4x6x8 --config=lite_fpga | layer 0: sums of 32 bits, configuration lite_fpga has out32 = 0
testplan --results none.jsonl | none.jsonl: no results, run make test first
testplan --results l.txt --out /proc/x | /proc/x
claims Q1 | 'Q1' is no claim
mutate --n=1 --plan=/dev/zero | /dev/zero: is a device, expected a file
mutate --n=1 --plan=no_such.toml | no_such.toml: No such file
{MUTATE} --n many | 'many': expected a whole number
{MUTATE} --module no_such | --module='no_such': expected a module or a folder
{MUTATE} --module step_counter no_such | --module='no_such': expected a module
{MUTATE} --module fifo_sync | --module=fifo_sync: expected a module or a folder
{MUTATE} --kind no_such | 'no_such'
judge | expected a model, --table, --floats or --write
judge q.tflite --table | expected a model, --table, --floats or --write
judge nothing.onnx | nothing.onnx: No such file
judge n.npz | no model, expected one of .tflite, .onnx
judge net.okpu | net.okpu: a compiled program, expected the model: one of .tflite, .onnx
quantise net.okpu --calibration x.npy | net.okpu: a compiled program, expected the model
bench --quick --record | --record records all figures, expected no --quick
bench --quick --reports l.txt | --reports: l.txt: l.txt is a file, expected a folder
synth --check --record | --check and --record together: nothing is mapped
synth --check --json=x.json | --check and --report together: nothing is mapped
synth --json /proc/x.json | /proc/x.json
synth all nano | all nano: all is every configuration, expected it alone
synth --check nano nano | nano nano: nano is given twice, expected once
synth-check --report=x.json | unknown option --report
waves --golden | unknown option --golden
waves --waves | unknown option --waves
synth nanoo | 'nanoo', expected one of nano, compact
fpga --map-only --route | --map and --route together
fpga --map-only --place-only | --map and --place together
fpga --config=nano_fpga --map-only --seed=2 | a seed is of the placement
fpga --config=k210 --seed=2 | a seed is of the placement
fpga --config=k210 --place-only | k210 has no part, expected neither --place nor --route
fpga --config=k210 --route | k210 has no part, expected neither --place nor --route
fpga --config=large | large has no part, expected
fpga,synth,asic,gates --params POOL_LANES | --params='POOL_LANES': expected NAME=VALUE, for example POOL_LANES=0
fpga,synth,asic,gates --params =3 | --params='=3': expected NAME=VALUE
fpga,synth,asic,gates --params POOL_LANES= | --params='POOL_LANES=': the value is empty, expected a whole number
fpga,synth,asic,gates --params POOL_LANES=x | --params='POOL_LANES=x': expected a whole number
fpga,synth,asic,gates --params POOL_LANES=-1 | --params: POOL_LANES = -1, expected 0, 1, 2, 4 or 8
fpga,synth,asic,gates --params PERF=-1 | --params: PERF = -1, expected 0 or 1
fpga,synth,asic,gates --params GATE=-1 | --params=GATE=-1: expected 0 or 1
fpga,synth,asic,gates --params POOL_LANES=--1 | --params='POOL_LANES=--1': expected a whole number
fpga,synth,asic,gates --params POOL_LANES={NINES} | expected fewer digits
fpga,synth,asic,gates --params AI_RAM_ROWS=99999999999999999999 | --params: AI_RAM_ROWS = 99999999999999999999, expected 16 to 32768
fpga,synth,asic,gates --params BIAS_FIFO_DEPTH=0 | --params: BIAS_FIFO_DEPTH = 0, expected 2 to 1048576 words
fpga,synth,asic,gates --params POOL_LANE=0 | --params=POOL_LANE=0: unknown parameter, did you mean POOL_LANES?
fpga,synth,asic,gates --params QQQ=0 | --params=QQQ=0: unknown parameter, expected N_Y, N_Z, AHB_W
fpga,synth,asic,gates --params POOL_LANES=0 POOL_LANES=0 | --params=POOL_LANES=0: POOL_LANES is given twice, expected once
fpga,synth,asic,gates --params GATE=0 --params POOL_LANES=0 | --params: given twice, expected once
fpga,synth,asic,gates --params | --params: expected at least one argument
fpga,synth,asic,gates --params POOL_LANES=3 | --params: POOL_LANES = 3, expected 0, 1, 2, 4 or 8
fpga,synth,asic,gates --params GATE=2 | --params=GATE=2: expected 0 or 1
fpga,synth,asic,gates --params POST_SHARE=4 | --params: POST_SHARE = 4, expected N_Z = 2 at most
fpga,synth,asic,gates --params FLAT_MAPS=1 | --params: FLAT_MAPS = 1, expected 0 with N_Y * N_Z = 4 lanes
fpga,synth,asic,gates --params N_Y=16 N_Z=16 | --params: N_Y * N_Z = 256 lanes, expected 128 at most
fpga,synth,asic,gates --params PATH=8 | --params: PATH = 8, expected 16, 32, 64 or 128
fpga,synth,asic --params POOL_LANES=0 --record | --params and --record together: a record is of a configuration
fpga,asic --params POOL_LANES=0 --baseline | --params and --baseline together: a record is of a configuration
synth --params POOL_LANES=0 --check | --check and --params together: nothing is mapped
features --config=k210 | k210 has no part, expected nano_fpga
features --params POOL_LANE=0 | --params=POOL_LANE=0: unknown parameter, did you mean POOL_LANES?
features --params POOL_LANES=3 | --params: POOL_LANES = 3, expected 0, 1, 2, 4 or 8
synth all --params N_Y=4 N_Z=4 | --params: k210_fp16 has FP16_LANES = 256, expected 0 or a power of two, 4 to 64
synth all --params POST_SHARE=4 | --params: POST_SHARE = 4, expected N_Z = 2 at most (nano)
features --params POOL_LANES=1 | --params=POOL_LANES=1: nano_fpga has this value, expected another one
features --params PERF=0 GATE=1 | --params=GATE=1: nano_fpga has this value, expected another one
features --params AHB_W=32 | --params=AHB_W=32: nano_fpga has this value, expected another one
features --params PERF=0 PERF=0 | --params=PERF=0 twice, expected once
features --params PERF=0 --record | --params and --record together: a record has every setting
fpga --family=vhs | --family='vhs': expected ecp5 or xc7
fpga --part=12k | --part='12k': expected 25k, 45k, 85k, 35t, 50t, 100t or 200t
fpga --family=ecp5 --part=100t | --part=100t and --family=ecp5 together: expected 25k, 45k or 85k
fpga --family=xc7 --part=45k | --part=45k and --family=xc7 together: expected 35t, 50t, 100t or 200t
fpga --family=xc7 --place | --family=xc7 and --place together: it is mapped only
fpga --part=200t --route | --family=xc7 and --route together: it is mapped only
fpga --family=xc7 --seed=0 | --family=xc7 and --seed together: it is mapped only
fpga --family=xc7 --baseline | --family=xc7 and --baseline together: its figures are only recorded
gates --config=k210 | k210 has no part, expected
gates --params ROUNDING=1 | --params=ROUNDING=1: results are compared with those of rounding nncase, expected ROUNDING=0
sim,predict,stream --golden --params POOL_LANE=0 | --params=POOL_LANE=0: unknown parameter, did you mean POOL_LANES?
sim,predict,stream --golden --params POOL_LANES | --params='POOL_LANES': expected NAME=VALUE, for example POOL_LANES=0
sim,predict,stream --golden --params POOL_LANES=0 POOL_LANES=0 | --params=POOL_LANES=0: POOL_LANES is given twice, expected once
sim,predict,stream --golden --params PATH=8 | --params: PATH = 8, expected 16, 32, 64 or 128 (small)
sim,predict,stream --golden --config=nano --params POST_SHARE=4 | --params: POST_SHARE = 4, expected N_Z = 2 at most (nano)
sim,predict,stream --golden --params GATE=2 | --params=GATE=2: expected 0 or 1
sim,predict,stream --golden --bus=32 --params AHB_W=64 | --bus=32 and --params=AHB_W=64 together, expected one width
sim,predict,stream --golden --config=medium --bus=128 --params PATH=16 | WEIGHT_AHEAD = 1, expected 0 with PATH below two bus words of 128 bits
sim,stream --golden --params ROUNDING=1 | --params=ROUNDING=1: results are compared with those of rounding nncase, expected ROUNDING=0
predict --matmul 4x6x8 --params OUT32=0 | layer 0: sums of 32 bits, configuration small, OUT32=0 has out32 = 0
sim --golden --vectors sums.npz --params OUT32=0 | sums/L00: sums of 32 bits, configuration small, OUT32=0 has out32 = 0
sim --vectors sums.npz --params OUT32=0 | sums/L00: sums of 32 bits, configuration small, OUT32=0 has out32 = 0
sim,predict,stream --golden --params WBUF_ROWS=64 DILATION=9 | --params: DILATION = 9, expected 1 to 8
regress --n=1 --seed=1 --params POOL_LANE=0 | --params=POOL_LANE=0: unknown parameter, did you mean POOL_LANES?
regress --n=1 --seed=1 --params ROUNDING=2 | --params=ROUNDING=2: results are compared with those of rounding nncase, expected ROUNDING=0
regress --n=1 --seed=1 --kind=product --params OUT32=0 | small, OUT32=0 has out32 = 0, expected --config=nano
regress --seeds=2 --params OUT32=0 | --params without --n, expected a number of random items
soak --minutes=1 --params POOL_LANES=3 | --params: POOL_LANES = 3, expected 0, 1, 2, 4 or 8 (small)
soak --minutes=1 --params AHB_W=64 | --params=AHB_W=64: its bus has 32 bits, expected AHB_W=32
soak --minutes=1 --params POOL_LANES=0 | small, POOL_LANES=0 has pool_lanes = 0: its sequences run pooling tasks
soak --minutes=1 --params OUT32=0 | small, OUT32=0 has out32 = 0: its sequences run pooling tasks
soak --minutes=1 --config=lite_fpga | lite_fpga has pool_lanes = 0: its sequences run pooling tasks
soak --minutes=1 --params ROUNDING=1 | --params=ROUNDING=1: results are compared with those
fpga,asic --baseline --record | --baseline and --record together
"""  # noqa: E501
GIVEN = {
    "K": "--model m.kmodel --image p.png",
    "MUTATE": "mutate --plan tb/mutation/example/benches.toml",
    "DIGITS": shlex.quote(str(digits.FOLDER)),
    "ROOT": shlex.quote(str(ROOT)),
    "NINES": "9" * 5000,
}
BY_POSITION = ("compile", "quantise")  # commands whose model is no option


def cases() -> list[tuple[str, str]]:
    """A command line and what it gets, of each row and command."""
    found = []
    for row in filter(None, TABLE.splitlines()):
        line, text = row.rsplit(" | ", 1)
        names, _, words = line.partition(" ") if not line.startswith("{") else ("", "", line)
        for name in names.split(","):
            option = "" if name in BY_POSITION else "--model "
            more = {"Q": f"{option}q.onnx", "F": f"{option}f.onnx"}
            asked = words if name == "sim" else words.replace("--golden ", "")
            if name == "predict":
                asked = asked.replace("--image p.png", "").replace("--matmul=-", "--matmul -")
            found.append((f"{name} {asked}".strip().format(**GIVEN, **more), text))
    return found


def flat() -> bytes:
    """A quantised model of a vector."""
    f = File()
    words = f.put(np.ones((12, 5)), np.int8), f.put(0.1), f.put(0, np.int8)
    y = f.node("MatMul", f.qdq("x", 0.05, 128), f.node("DequantizeLinear", *words))
    return f.data(f.qdq(y, 0.3, 120), (1, 12), (1, 5))


@pytest.fixture(scope="module")
def folder(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    place = Path(shutil.copytree(samples, tmp_path_factory.mktemp("refused") / "all"))
    sums = random_product(np.random.default_rng(1), limits=Limits(channels=4, size=8))
    save_file(place / "sums.npz", [sums])
    for name, text in (
        ("r", "{}"),
        ("list", "[]"),
        ("type", '{"anchors": 1}'),
        ("deep", "[" * 9**5),
    ):
        (place / f"{name}.json").write_text(text)
    (place / "flat.onnx").write_bytes(flat())
    Image.new("1", (60_000, 60_000)).save(place / "huge.png")
    Image.new("1", (8193, 8193)).save(place / "wide.png")
    np.save(place / "objects.npy", np.array([[{}]], object))
    for name, array in ARRAYS.items():
        np.save(place / f"{name}.npy", array)
    np.savez(place / "nothing.npz")
    (place / "behind.npy").write_bytes((place / "a.npy").read_bytes() + b"!")
    return place


@pytest.mark.parametrize(("line", "text"), cases(), ids=lambda value: value[:60])
def test_refused(
    line: str, text: str, folder: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("OPENKPU_SEED", raising=False)
    monkeypatch.setattr(simrun, "check_tool", lambda _sim: None)
    before = sorted(folder.rglob("*"))
    assert len(refused(shlex.split(line), *text.split("; "))) < 600
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("sim", "there", "text"),
    [
        ("icarus", [], "iverilog is not on PATH, expected it for icarus: apt install iverilog"),
        ("icarus", ["iverilog"], "vvp is not on PATH, expected it for icarus: apt install"),
        ("verilator", [], "g++ is not on PATH, expected it for verilator: apt install g++"),
        ("verilator", ["g++"], "make is not on PATH, expected it for verilator: apt install make"),
    ],
)
def test_a_simulator_that_is_missing(
    sim: str,
    there: list[str],
    text: str,
    tmp_path: Path,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in there:
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(["sim", f"--sim={sim}", "--matmul=2x2x2"], text)


@pytest.mark.parametrize("name", COMMANDS)
def test_empty_values(name: str) -> None:
    """An empty value is none that could be taken for an option that is not given."""
    for action in COMMANDS[name].parser()._actions:
        if action.nargs != 0:
            words = [f"{action.option_strings[-1]}="] if action.option_strings else [""]
            with pytest.raises(command.UsageError, match=r"''|=: "):
                parse_command(name, words)


@pytest.mark.parametrize("name", COMMANDS)
def test_unknown_configuration(name: str) -> None:
    """Each command with configurations refuses an unknown one and lists their names."""
    for action in COMMANDS[name].parser()._actions:
        if action.type in (command.config, every_config):
            words = ["--config=giant"] if action.option_strings else ["giant"]
            more = {"soak": ["--minutes=1"], "compile": ["x"], "quantise": ["x"]}.get(name, [])
            with pytest.raises(command.UsageError, match="unknown configuration 'giant', expected"):
                parse_command(name, [*words, *more])
