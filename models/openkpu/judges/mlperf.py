# SPDX-License-Identifier: Apache-2.0
"""Inputs of the MLPerf Tiny models, from the files that are published beside them.

Models and inputs are those of the benchmark's reference implementation, mlcommons/tiny, Apache-2.0;
the project has no copy of them. ``samples`` gives them quantised, as the graph of a model has its
input: (n, 1, C, H, W) or (n, 1, K) int8.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph

FOLDER = "real/mlperf_tiny"
MODELS = {  # file: what it does, the file of its inputs
    "pretrainedResnet_quant.tflite": ("image classification", "ic_inputs.cc"),
    "pretrainedResnet_large_int8.tflite": ("image classification, larger", "ic_inputs.cc"),
    "kws_ref_model.tflite": ("keyword spotting", "kws_input_data.cc"),
    "vww_96_int8.tflite": ("visual wake words", "vww_inputs.cc"),
    "ad01_int8.tflite": ("anomaly detection", "normal_id_01_00000000_hist_librosa.bin"),
    "str_ww_ref_model.tflite": ("streaming wake word", "calibration_samples.npz"),
}
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def c_array(text: str) -> npt.NDArray[np.float64]:
    """The numbers of the first initialised array of a C file, (n,)."""
    found = re.search(r"\]\s*=\s*\{(.*?)\};", text, re.DOTALL)
    if found is None:
        raise ValueError("no initialised array, expected one")
    body = re.sub(r"/\*.*?\*/|//[^\n]*", "", found[1], flags=re.DOTALL)
    return np.array([float(word) for word in NUMBER.findall(body)])


def samples(model: str, graph: Graph, folder: Path) -> npt.NDArray[np.int8]:
    """The published inputs of a model of MODELS, as the graph's input has them."""
    tensor = graph.tensors[graph.inputs[0]]
    path = folder / MODELS[model][1]
    if path.suffix == ".bin":  # windows of 640 float32
        real = np.frombuffer(path.read_bytes(), "<f4").reshape(-1, *tensor.shape)
        return quantised(real, tensor.scale or 1.0, tensor.zero)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as data:
            real = data["specs"].transpose(0, 3, 1, 2)[:, None]
        return quantised(real, tensor.scale or 1.0, tensor.zero)
    values = c_array(path.read_text())
    if path.name.startswith("kws"):  # int8 already
        steps = values.astype(np.int8)
    elif path.name.startswith("ic"):  # pixel bytes
        steps = (values - 128).astype(np.int8)
    else:  # grey of -1 to 1; the model has three channels of pixel bytes
        grey = quantised((values + 1) / 2, tensor.scale or 1.0, tensor.zero)
        steps = np.repeat(grey, 3)
    n, c, high, wide = tensor.shape
    if steps.size % (c * high * wide):
        raise CompileError(f"{path.name}: {steps.size} numbers, expected {c * high * wide} each")
    return steps.reshape(-1, n, high, wide, c).transpose(0, 1, 4, 2, 3)


def quantised(real: npt.NDArray, scale: float, zero: int) -> npt.NDArray[np.int8]:
    """Real numbers as int8."""
    return np.clip(np.rint(real / scale) + zero, -128, 127).astype(np.int8)
