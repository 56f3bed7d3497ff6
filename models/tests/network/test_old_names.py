# SPDX-License-Identifier: Apache-2.0
"""Modules by the names that they had before 0.3.0: the same modules, with a warning."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

from openkpu import models
from openkpu.checkout import python_path
from openkpu.layer import golden

# what `git ls-tree` had in models/ at 0.2.0, without tests, and without the four parts of the
# prediction that the simpler one does not have
MODULES = """
activation airam bound compare configs conv cycles cycles_array cycles_fp16
cycles_front cycles_maps cycles_model cycles_pool cycles_shape digits
digits.float_model digits.quantise elementwise files fp16 generate generate_fp16 generate_lists
generate_pools generate_products generate_tasks golden kept kmodel kmodel.__main__ kmodel.binary
kmodel.boxes kmodel.build kmodel.bytecode kmodel.container5 kmodel.describe kmodel.errors
kmodel.execute kmodel.flow kmodel.guess kmodel.images kmodel.joins kmodel.k210 kmodel.kernels
kmodel.layers kmodel.names kmodel.neutral4 kmodel.nnil kmodel.node4 kmodel.numbering
kmodel.operations kmodel.package kmodel.products kmodel.products4 kmodel.program kmodel.requantize
kmodel.resident kmodel.results kmodel.shapes kmodel.ssd kmodel.stackvm kmodel.tensor5 kmodel.v0
kmodel.v3 kmodel.v4 kmodel.v5 kmodel.yolo layer layout matmul matmul_deep matmul_fp16 matmul_lists
network network_rules params pixels pool_tasks pooling regdesc regmap relay roofline terminal
vectors words
"""
BEFORE = MODULES.split()


def test_none_is_left_out() -> None:
    assert set(models.NAMES) == {f"openkpu.models.{name}" for name in BEFORE}


@pytest.mark.parametrize("name", BEFORE)
def test_old_name(name: str) -> None:
    """The module of today, its own name and spec unchanged, and a warning that says it."""
    old = f"openkpu.models.{name}"
    today = models.NAMES[old]
    if name.endswith("regdesc"):
        pytest.importorskip(
            "systemrdl", reason="make setup GROUPS=registers brings systemrdl-compiler"
        )
    spec = importlib.import_module(today).__spec__
    sys.modules.pop(old, None)
    with pytest.warns(FutureWarning, match=rf"{old} is {today} since 0.3.0"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(today)
    assert module.__name__ == today and module.__spec__ is spec


def test_contents() -> None:
    """What programs of 0.2.0 import from the modules, by the names that it had there."""
    code = """
from openkpu.models.airam import pack, unpack
from openkpu.models.compare import describe
from openkpu.models.configs import load as load_config
from openkpu.models.cycles import run as predict
from openkpu.models.kept import fault, moved, rows
from openkpu.models.kmodel import Outcome, Result, Step, Tensor, load, loads, run
from openkpu.models.kmodel.results import draw, overlap
from openkpu.models.matmul import operands, plan, product
from openkpu.models.matmul_fp16 import product as product_fp16
from openkpu.models.roofline import beside, cycles
assert product.__module__ == "openkpu.products.matmul" != product_fp16.__module__
print(load_config("nano").name, run.__name__, run.__module__)
"""
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={"PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout.endswith(" run_kmodel openkpu.kmodel.execute\n"), said.stderr


def test_names_of_contents() -> None:
    """Each old name is free, so that it hides nothing that the module has."""
    code = """
import importlib
from openkpu.models import CONTENTS
for today, pairs in CONTENTS.items():
    there = vars(importlib.import_module(f"openkpu.{today}"))
    for pair in pairs.split():
        old, now = pair.split("=")
        assert now in there and old not in there, (today, pair)
"""
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": python_path()}, check=True)


def test_what_is_not_there() -> None:
    name = "openkpu.models.nothing"
    with pytest.raises(ModuleNotFoundError, match=name):
        importlib.import_module(name)


def test_statement() -> None:
    """As a user writes it; the line that is warned of is his."""
    code = "from openkpu.models.golden import run_layer\nprint(run_layer.__module__)"
    said = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={"PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == golden.__name__
    assert "<string>:1: FutureWarning: openkpu.models.golden" in said.stderr
