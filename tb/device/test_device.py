# SPDX-License-Identifier: Apache-2.0
"""The whole device under pytest: vectors, digits, counters."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.checkout import ROOT, python_path
from openkpu_tb.device import cycles
from openkpu_tb.runs import launch
from openkpu_tb.simrun import SIMS

VECTORS = ROOT / "models/tests/data/vectors"


def sim(*args: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the command line; the caller looks at status and output."""
    return subprocess.run(
        [sys.executable, "-m", "openkpu_tools.commands.sim", *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
    )


def replay(tmp_path: Path, *args: str) -> dict:
    """Run the command line and return its report; everything must have matched."""
    report = tmp_path / "report.json"
    result = sim(*args, "--report", str(report))
    assert result.returncode == 0, result.stdout + result.stderr
    content = json.loads(report.read_text())
    assert content["totals"]["mismatching_bytes"] == 0
    for layer in content["layers"]:
        assert layer["cycles"] > 0 and layer["efficiency"] > 0, layer
        assert 0 <= sum(layer["stalls"].values()) <= layer["cycles"], layer
    return content


@pytest.mark.check
@pytest.mark.parametrize("config", ["small", "k210"])
def test_vectors_verilator(config: str, tmp_path: Path) -> None:
    """All committed vectors; the counters agree with the golden model's counts."""
    content = replay(tmp_path, "--sim", "verilator", "--config", config, "--vectors", str(VECTORS))
    assert len(content["layers"]) == 88
    assert content["totals"]["end_to_end"]["cycles"] is None
    golden = tmp_path / "golden.json"
    args = ["--golden", "--config", config, "--vectors", str(VECTORS), "--report", str(golden)]
    assert sim(*args).returncode == 0
    expected = json.loads(golden.read_text())["layers"]
    for layer, want in zip(content["layers"], expected, strict=True):
        assert (layer["name"], layer["macs"]) == (want["name"], want["macs"])
        assert layer["macs_gated"] == want["macs_gated"], layer["name"]
    cycles.check_cycles(f"vectors on {config}", cycles.of_report(content["layers"]))


@pytest.mark.tier(check=["icarus"])
@pytest.mark.parametrize("simulator", SIMS)
def test_small_vectors(simulator: str, tmp_path: Path) -> None:
    """Small layers, on the smallest configuration and both simulators."""
    files = [str(VECTORS / f"{name}.npz") for name in ("raw_pool7", "raw_depthwise", "rand_5000")]
    content = replay(tmp_path, "--sim", simulator, "--config", "nano", "--vectors", *files)
    assert len(content["layers"]) == 10


@pytest.mark.check
def test_digits_verilator(tmp_path: Path) -> None:
    """The main job with its default configuration."""
    content = replay(tmp_path, "--sim", "verilator", "--images", "10")
    assert content["totals"]["inferences"] == 10
    assert len(content["layers"]) == 40
    figures = cycles.of_report(content["layers"])
    end = content["totals"]["end_to_end"]
    figures["end to end"] = [end["cycles"]]
    figures["an inference"] = [content["totals"]["cycles_per_inference"]]
    cycles.check_cycles("digits on small", figures)


def test_digits_icarus(tmp_path: Path) -> None:
    content = replay(tmp_path, "--sim", "icarus", "--images", "1")
    assert len(content["layers"]) == 4
    end = content["totals"]["end_to_end"]
    assert (
        end["cycles"] == content["totals"]["cycles_per_inference"]
        and sum(end["parts"].values()) == end["cycles"]
    )
    assert end["parts"]["host_maps"] == 0 and 0 <= end["parts"]["other"] < 8


@pytest.mark.fixed
@pytest.mark.parametrize(("simulator", "room"), [("icarus", 4 << 20), ("verilator", 64 << 20)])
def test_size_of_the_storage_changes_no_build(simulator: str, room: int) -> None:
    """Jobs of any usual size, in bytes, share a build; a larger one has its own."""
    config = configs.load_config("small")
    least = launch.parameters(config, 1, sim=simulator)
    assert launch.parameters(config, room, sim=simulator) == least
    assert launch.parameters(config, room + 1, sim=simulator) != least
