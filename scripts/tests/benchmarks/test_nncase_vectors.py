# SPDX-License-Identifier: Apache-2.0
"""foreign/nncase_vectors.py with an interpreter that only pretends to have nncase.

What it computes comes from the golden model, right or with one wrong value; what is tested is the
way of the files there and back, and that a difference, a crash or a missing module is noticed.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from openkpu.layer.vectors import load_file
from openkpu_tools.foreign import nncase_vectors
from openkpu_tools.foreign.onnx_net import random_network
from scripts.tests.conftest import Refused

pytestmark = [pytest.mark.check, pytest.mark.tool("vectors")]

ROOT = Path(__file__).resolve().parents[3]
FAKE = """
import os, sys
sys.path.insert(0, os.path.join({root!r}, "models"))
import numpy as np
from openkpu.kmodel import loads_kmodel, run_kmodel
class CompileOptions: pass
class ImportOptions: pass
class PTQTensorOptions:
    def set_tensor_data(self, data): self.data = data
class Compiler:
    def __init__(self, options): assert options.target == "k210"
    def import_onnx(self, data, options):
        if {mode!r} != "no compiler": assert b"Conv" in data and b"net" in data
    def use_ptq(self, samples): assert len(samples.data) % samples.samples_count == 0
    def compile(self): raise RuntimeError("no compiler here")
class RuntimeTensor:
    def __init__(self, data): self.data = data
    @classmethod
    def from_numpy(cls, data): return cls(data)
    def to_numpy(self): return self.data
class Simulator:
    def load_model(self, data): self.program = loads_kmodel(data)
    def set_input_tensor(self, number, tensor): self.x = tensor.data
    def run(self):
        if {mode!r} == "crash" and self.x.size % 2: os._exit(139)
        self.y = run_kmodel(self.program, self.x).output
        if {mode!r} == "wrong": self.y.flat[-1] ^= 4
    def get_output_tensor(self, number): return RuntimeTensor(self.y)
"""


def fake(tmp_path: Path, mode: str) -> str:
    """An interpreter whose nncase behaves like that."""
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "nncase.py").write_text(FAKE.format(root=str(ROOT), mode=mode))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return str(python)


@pytest.mark.parametrize(("mode", "status"), [("right", 0), ("wrong", 1), ("crash", 1)])
def test_layers(mode: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    args = ["--python", fake(tmp_path, mode), "--networks", "0", "--layers", "6"]
    assert nncase_vectors.main([*args, "--out", str(out)]) == status
    said = capsys.readouterr().out
    if mode == "right":
        assert "6 layers compared, 0 values differ" in said
    elif mode == "wrong":
        assert said.count(" bytes differ") == 6 and "6 values differ" in said
    else:
        assert "nncase died (status 139)" in said and "0 values differ" in said
    files = sorted(out.glob("*.npz"))
    assert len(files) == 6 if mode != "crash" else 0 < len(files) < 6
    for path in files:
        (layer,) = load_file(path)
        assert layer.y.shape == layer.arg.out_shape and layer.eight_bit


def test_compiler_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--python", fake(tmp_path, "right"), "--networks", "2", "--layers", "1"]
    assert nncase_vectors.main(args) == 1
    assert capsys.readouterr().out.count("RuntimeError: no compiler here") == 2


@pytest.mark.parametrize("python", ["/nowhere/python3.8", "/bin/false"])
def test_no_such_interpreter(python: str, refused: Refused) -> None:
    refused(["--python", python], python, main=nncase_vectors.main)


def test_child_is_old_python() -> None:
    """Python 3.7 must read it: no syntax or names of later ones."""
    source = (ROOT / "scripts/openkpu_tools/foreign/nncase_child.py").read_text()
    compiled = compile(source, "nncase_child.py", "exec", dont_inherit=True)
    assert compiled is not None and ":=" not in source and "match " not in source
    code = f"import ast; ast.parse({source!r}, feature_version=(3, 7))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_networks_are_seeded() -> None:
    """The same seed, the same file; shapes in the file are those of the input."""
    first, again = (random_network(np.random.default_rng(3)) for _ in range(2))
    assert first == again
    assert first != random_network(np.random.default_rng(4))
    assert b"Conv" in first[1] and len(first[0]) == 3
