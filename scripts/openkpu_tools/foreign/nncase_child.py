# SPDX-License-Identifier: Apache-2.0
"""Runs in an interpreter that has nncase 1.9 (Python 3.7-3.9) for nncase_vectors.py.

For every NAME.onnx of the folder: compile it for the K210, with NAME.calib.npy (samples, C, H, W;
bytes) as calibration data, into NAME.kmodel. For every NAME.kmodel: run the vendor's simulator on
NAME.in.npy and write NAME.out.npy. A failure writes its reason to NAME.err. NAME.busy exists while
a file is being processed, so that the caller can assign a crash to its file. Needs numpy and nncase
only, no module of the project.
"""

import glob
import os
import sys

import nncase  # pyright: ignore[reportMissingImports]
import numpy as np


def compile_onnx(stem):
    """An ONNX file into a kmodel."""
    calibration = np.load(stem + ".calib.npy")
    options = nncase.CompileOptions()
    options.target = "k210"
    options.preprocess = True
    options.input_type = "uint8"
    options.input_shape = [1, *calibration.shape[1:]]
    options.input_range = [0.0, 1.0]
    options.mean = [0.0] * calibration.shape[1]
    options.std = [1.0] * calibration.shape[1]
    compiler = nncase.Compiler(options)
    with open(stem + ".onnx", "rb") as file:
        compiler.import_onnx(file.read(), nncase.ImportOptions())
    samples = nncase.PTQTensorOptions()
    samples.samples_count = calibration.shape[0]
    samples.set_tensor_data(calibration.tobytes())
    compiler.use_ptq(samples)
    compiler.compile()
    with open(stem + ".kmodel", "wb") as file:
        file.write(compiler.gencode_tobytes())


def simulate(stem):
    """The vendor's simulator on one input; its first output."""
    simulator = nncase.Simulator()
    with open(stem + ".kmodel", "rb") as file:
        simulator.load_model(file.read())
    simulator.set_input_tensor(0, nncase.RuntimeTensor.from_numpy(np.load(stem + ".in.npy")))
    simulator.run()
    np.save(stem + ".out.npy", simulator.get_output_tensor(0).to_numpy())


def work(folder, suffix, result, function):
    """Call the function for every file that has no result yet."""
    for path in sorted(glob.glob(os.path.join(folder, "*" + suffix))):
        stem = path[: -len(suffix)]
        if os.path.exists(stem + result) or os.path.exists(stem + ".err"):
            continue
        open(stem + ".busy", "w").close()
        try:
            function(stem)
        except Exception as error:  # whatever the bindings raise
            with open(stem + ".err", "w") as file:
                file.write("{}: {}".format(type(error).__name__, error))  # noqa: UP032
        os.remove(stem + ".busy")


if __name__ == "__main__":
    work(sys.argv[1], ".onnx", ".kmodel", compile_onnx)
    work(sys.argv[1], ".kmodel", ".out.npy", simulate)
