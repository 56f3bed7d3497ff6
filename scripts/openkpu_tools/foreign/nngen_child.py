# SPDX-License-Identifier: Apache-2.0
"""Runs in the environment of NNgen for bench_peer.py: layers as Verilog, and where their data lie.

    python nngen_child.py FOLDER

FOLDER/NAME.npz has a layer: x (H, W, C), weights (O, K, K, C), bias and scale (O,), shift, lanes
over inputs, outputs, columns and rows. For each it writes NAME.v, module ``peer``, and NAME.json:
addresses of input, result and parameters in bytes, that of the start register, the multipliers of
the array. NAME.params.npy has the parameters' bytes. Prints versions.
"""

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import nngen  # pyright: ignore[reportMissingImports]
import numpy as np
from nngen.verilog import control_reg_start  # pyright: ignore[reportMissingImports]

# an instance of each multiplier with its addition
MULTIPLIER = re.compile(r"^ +__muladd_madd_\d+$", re.MULTILINE)


def generate(path):
    """A 2-D convolution with bias, scale, shift and ReLU, of int8 throughout."""
    layer = np.load(path)
    weights = nngen.variable(nngen.int8, shape=layer["weights"].shape, name="weights")
    bias = nngen.variable(nngen.int32, shape=layer["bias"].shape, name="bias")
    scale = nngen.variable(nngen.int8, shape=layer["scale"].shape, name="scale")
    for variable in (weights, bias, scale):
        variable.set_value(layer[variable.name].astype(np.int64))
    x = nngen.placeholder(nngen.int8, shape=(1, *layer["x"].shape), name="x")
    kind = {"act_func": nngen.relu, "dtype": nngen.int8, "sum_dtype": nngen.int32}
    steps = (1, 1, 1, 1)
    y = nngen.conv2d(x, weights, strides=steps, bias=bias, scale=scale, name="y", **kind)
    names = ("par_ich", "par_och", "par_col", "par_row")
    lanes = dict(zip(names, map(int, layer["lanes"]), strict=True))
    y.attribute(**lanes, cshamt_out=int(layer["shift"]))
    text = nngen.to_verilog([y], "peer", config={"maxi_datawidth": 32}, silent=True)
    if any(tuple(each.aligned_shape) != tuple(each.shape) for each in (x, y)):
        raise ValueError(f"{path.stem}: maps with gaps")
    path.with_suffix(".v").write_text(text)
    np.save(path.with_suffix(".params.npy"), nngen.export_ndarray([y]).astype(np.uint8))
    found = {"x": x.addr, "y": y.addr, "params": weights.addr, "start": 4 * control_reg_start}
    found["multipliers"] = len(MULTIPLIER.findall(text))
    path.with_suffix(".json").write_text(json.dumps(found))


if __name__ == "__main__":
    for each in sorted(Path(sys.argv[1]).glob("*.npz")):
        generate(each)
    print(", ".join(f"{name} {metadata.version(name)}" for name in ("nngen", "veriloggen")))
