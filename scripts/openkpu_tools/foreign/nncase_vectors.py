# SPDX-License-Identifier: Apache-2.0
"""Compare the golden model with the vendor's simulator (nncase 1.x), and keep what it computed.

    python3.8 -m venv nn38 && nn38/bin/pip install nncase==1.9.0.20230322 numpy
    python -m openkpu_tools.foreign.nncase_vectors --python nn38/bin/python --networks 20 --out DIR

Networks are random convolutional networks, compiled by nncase with random calibration data: the
output of the whole program must be equal, and so must every KPU layer when it runs alone on the
vendor's simulator (a kmodel v5 made of one KPU function, docs/kpu.md 5.1). Layers are random,
arguments no compiler would choose among them. Any release from 1.0.0 on will do. With --out every
case becomes an .npz of layer vectors with the vendor's outputs, ready for VECTORS=DIR.

Exit status: 0 all equal, 1 something differs or the vendor's tool failed, 2 bad request.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from openkpu.generators.generate import Limits, random_layer
from openkpu.kmodel import LayerEvent, loads_kmodel, run_kmodel
from openkpu.kmodel.build import build_v5_alone
from openkpu.layer.vectors import VectorLayer, save_file
from openkpu_tools import command
from openkpu_tools.arguments import Parser
from openkpu_tools.foreign.onnx_net import random_network

CHILD = Path(__file__).with_name("nncase_child.py")
SAMPLES = 4  # pictures of noise for calibration
# what every KPU has, and maps no smaller than the vendor's compiler takes (docs/kpu.md 2)
KPU = Limits(signed=False, fully_connected=False, sixteen_bit=False)
WHOLE = command.integer_in(0, (1 << 32) - 1)
PROBE = "import nncase, numpy; nncase.Simulator, nncase.Compiler"


class VendorError(command.UsageError):
    """The given interpreter cannot be used."""


@dataclasses.dataclass
class Case:
    """A network or a single layer, and what came of it."""

    name: str
    layers: list[VectorLayer]  # y is the golden model's
    kmodel: bytes = b""
    x: np.ndarray | None = None  # input of a whole network
    y: np.ndarray | None = None  # the golden model's output


def vendor(python: str, folder: Path) -> None:
    """Run the child until every file has a result or a reason; a crash costs one file.

    It runs in the folder, where nncase may leave what it likes.
    """
    words = [os.path.abspath(shutil.which(python) or python), str(CHILD), str(folder)]
    while True:
        result = subprocess.run(words, capture_output=True, text=True, cwd=folder)
        busy = sorted(folder.glob("*.busy"))
        for path in busy:
            path.rename(path.with_suffix(".err"))
            path.with_suffix(".err").write_text(f"nncase died (status {result.returncode})")
        if result.returncode and not busy:
            last = result.stderr.strip().splitlines()[-1:] or [f"status {result.returncode}"]
            raise VendorError(f"{python}: {last[0]}")
        if not busy:
            return


def probe(python: str) -> None:
    """VendorError unless the interpreter has nncase."""
    try:
        result = subprocess.run([python, "-c", PROBE], capture_output=True, text=True)
    except OSError as error:
        raise VendorError(f"{python}: {error.strerror}") from None
    if result.returncode:
        last = result.stderr.strip().splitlines()[-1:] or ["it failed"]
        raise VendorError(f"{python}: {last[0]}; expected a Python 3.7-3.9 with nncase 1.9")


def answer(folder: Path, name: str) -> tuple[np.ndarray | None, str]:
    """(the vendor's output, "") or (None, reason)."""
    reason = folder / f"{name}.err"
    if reason.exists():
        return None, reason.read_text()
    return np.load(folder / f"{name}.out.npy"), ""


def build_networks(rng: np.random.Generator, count: int, folder: Path) -> list[str]:
    """ONNX files, calibration data and inputs; their names."""
    names = [f"net_{i:03d}" for i in range(count)]
    for name in names:
        shape, onnx = random_network(rng)
        (folder / f"{name}.onnx").write_bytes(onnx)
        for kind, n in (("calib", SAMPLES), ("in", 1)):
            data = rng.integers(0, 256, (n, *shape), dtype=np.uint8)
            np.save(folder / f"{name}.{kind}.npy", data)
    return names


def read_network(name: str, folder: Path) -> Case:
    """The compiled network through the golden model, layer by layer."""
    kmodel = (folder / f"{name}.kmodel").read_bytes()
    x = np.load(folder / f"{name}.in.npy")
    events: list[LayerEvent] = []
    result = run_kmodel(loads_kmodel(kmodel, name), x, hook=events.append)
    layers = [vector(name, i, event) for i, event in enumerate(events)]
    return Case(name, layers, kmodel, x, result.output)


def vector(case: str, index: int, event: LayerEvent) -> VectorLayer:
    """A layer as it ran, with table addresses 0."""
    step = event.step
    arg = step.arg.replace(para_start_addr=0, bwsx_base_addr=0, active_addr=0)
    tables = step.weights, step.bn, step.act
    name = f"L{index:02d}"
    return VectorLayer(case, name, arg.encode(), arg, *tables, event.x, event.y, step.eight_bit)


def random_case(rng: np.random.Generator, number: int) -> Case:
    """A single layer."""
    name = f"layer_{number:03d}"
    while True:
        layer = random_layer(rng, limits=KPU, case=name, plain=bool(rng.random() < 0.3))
        if min(layer.arg.in_shape[1:]) >= 4:
            return Case(name, [layer])


def ask_layers(cases: Sequence[Case], folder: Path) -> None:
    """A container and an input for every layer of the cases."""
    for case in cases:
        for layer in case.layers:
            stem = f"{case.name}_{layer.name}"
            (folder / f"{stem}.kmodel").write_bytes(build_v5_alone([layer]))
            np.save(folder / f"{stem}.in.npy", layer.x[None])


def judge(case: Case, folder: Path, out: Path | None) -> tuple[int, int, list[str]]:
    """(layers compared, bytes that differ, complaints); writes the vectors."""
    wrong, said, kept = 0, [], []
    for layer in case.layers:
        y, reason = answer(folder, f"{case.name}_{layer.name}")
        if y is None:
            said.append(f"{layer.title}: {reason}")
            continue
        y = y.reshape(layer.y.shape)
        bad = int((y != layer.y).sum())
        if bad:
            said.append(f"{layer.title}: {bad} of {y.size} bytes differ")
        wrong += bad
        kept.append(dataclasses.replace(layer, y=y))
    extra: dict[str, np.ndarray] = {}
    if case.kmodel:
        y, reason = answer(folder, case.name)
        if y is None:
            said.append(f"{case.name}: {reason}")
        else:
            assert case.x is not None, "a network has an input"
            bad = int((y != case.y).sum())
            wrong += bad
            if bad:
                said.append(f"{case.name}: {bad} of {y.size} values of its output differ")
            kmodel = np.frombuffer(case.kmodel, dtype=np.uint8)
            extra = {"kmodel": kmodel, "net_input": case.x, "net_output": y}
    if out and kept:
        out.mkdir(parents=True, exist_ok=True)
        save_file(out / f"{case.name}.npz", kept, extra)
    return len(kept), wrong, said


def compare(args: argparse.Namespace, folder: Path) -> bool:
    """The whole comparison in a working folder; True when all is equal."""
    rng = np.random.default_rng(args.seed)
    names = build_networks(rng, args.networks, folder)
    cases = [random_case(rng, i) for i in range(args.layers)]
    print(f"seed {args.seed}: {len(names)} networks to compile, {len(cases)} single layers")
    vendor(args.python, folder)
    good, compiled = True, []
    for name in names:
        if (folder / f"{name}.kmodel").exists():
            compiled.append(read_network(name, folder))
        else:
            print(f"{name}: {answer(folder, name)[1]}")
            good = False
    ask_layers([*compiled, *cases], folder)
    vendor(args.python, folder)
    compared = wrong = 0
    for case in (*compiled, *cases):
        count, bad, said = judge(case, folder, args.out)
        compared, wrong = compared + count, wrong + bad
        good &= not said
        for line in said:
            print(line)
    print(f"{len(compiled)} networks, {compared} layers compared, {wrong} values differ")
    return good and compared > 0


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    more = {"description": __doc__, "formatter_class": argparse.RawTextHelpFormatter}
    parser = Parser(prog="nncase_vectors", **more)
    parser.add_argument("--python", required=True, help="an interpreter with nncase 1.9")
    parser.add_argument("--networks", type=WHOLE, default=10)
    parser.add_argument("--layers", type=WHOLE, default=50)
    parser.add_argument("--seed", type=WHOLE, default=1)
    parser.add_argument("--out", type=command.folder, help="for the vectors")
    args = parser.parse_args(argv)
    probe(args.python)
    with tempfile.TemporaryDirectory(prefix="openkpu_nncase_") as folder:
        good = compare(args, Path(folder))
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(command.run_command(main))
