# SPDX-License-Identifier: Apache-2.0
"""`make stream MODEL=`: K210 models and quantised ones; every inference is the whole model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.tests.bands import test_bands
from models.tests.compiler.compiled_graphs import Maker
from models.tests.kmodel import test_kmodel_containers as containers
from openkpu.compiler import okpu
from openkpu.compiler.build import build_program
from openkpu.configs import load_config
from openkpu.kmodel import load_kmodel, run_kmodel
from openkpu_tools.commands import run_stream
from scripts.tests.conftest import Refused


def words(model: Path, *more: str) -> list[str]:
    return ["--config", "nano", "--sim", "verilator", "--model", str(model), *more]


@pytest.fixture
def kmodel(tmp_path: Path) -> Path:
    path = tmp_path / "net.kmodel"
    path.write_bytes(containers.CONTAINERS["v4"])
    return path


def test_stream_of_a_kmodel(
    kmodel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given maps in turn, more often than there are, on the RTL."""
    maps = np.random.default_rng(4).integers(0, 256, (2, *containers.X.shape), dtype=np.uint8)
    np.save(tmp_path / "maps.npy", maps)
    args = run_stream.parse_stream(
        words(kmodel, "--input", str(tmp_path / "maps.npy"), "--images", "3")
    )
    given = run_stream.stream_work(args)
    np.testing.assert_array_equal(given.images, maps[[0, 1, 0]])
    program = load_kmodel(kmodel)
    for x in maps:
        (expected,) = run_kmodel(program, [x.reshape(program.inputs[0].shape)]).outputs.values()
        got = given.network.run(x).y
        np.testing.assert_array_equal(got.ravel(), np.frombuffer(expected.tobytes(), np.uint8))
    assert run_stream.run_stream(args, given)
    assert "results stored    3, wrong 0" in capsys.readouterr().out


@pytest.mark.parametrize("bad", ["middle", "shape", "kind", "cut"])
def test_models_that_are_no_stream(
    bad: str, kmodel: Path, tmp_path: Path, refused: Refused
) -> None:
    """One line, status 2."""
    more: list[str] = []
    says = ""
    if bad == "middle":
        kmodel.write_bytes(containers.v3_bytes())
        says = "2 runs of layers"
    elif bad == "shape":
        np.save(tmp_path / "x.npy", np.zeros((1, 3, 3, 3), np.uint8))
        more, says = ["--input", str(tmp_path / "x.npy")], "expected"
    elif bad == "kind":
        kmodel.write_text("no model")
        says = "magic"
    else:
        kmodel.write_bytes(kmodel.read_bytes()[:100])
        says = "net.kmodel"
    refused(["stream", *words(kmodel, *more)], says)


def test_an_input_in_bands_is_no_stream(tmp_path: Path, refused: Refused) -> None:
    """One line that says why there are several maps of one input."""
    path = tmp_path / "net.okpu"
    m = Maker(3)
    x = m.conv(m.input(1, 16, 40, 20), 4, (3, 3))
    program = test_bands.on(m.done(m.pool(x, "max", (2, 2), (2, 2))), 100)
    path.write_bytes(okpu.dumps(program))
    why = "which are bands for the AI RAM of nano_fpga"
    refused(["stream", *words(path)], f"{path}: a stream is", why)


def test_results_that_are_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of several results a stream compares the last one, and says so."""
    path = tmp_path / "net.okpu"
    m = Maker(3)
    x = m.conv(m.input(1, 3, 8, 8), 4, (3, 3))
    path.write_bytes(
        okpu.dumps(build_program(m.done(x, m.conv(x, 2, (1, 1))), load_config("nano")))
    )
    args = run_stream.parse_stream(words(path))
    run_stream.stream_work(args)
    assert "compared: maps of the last layer; not 1 results" in capsys.readouterr().out
