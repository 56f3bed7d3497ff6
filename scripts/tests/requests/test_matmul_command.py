# SPDX-License-Identifier: Apache-2.0
"""make sim MATMUL=: products on the golden model, files, tiles, refusals in one line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openkpu.arithmetic import fp16
from openkpu.network.network import Network
from openkpu.products import matmul_lists
from openkpu_tb import simrun
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.runs import launch
from openkpu_tb.runs.launch import Event
from openkpu_tb.runs.requests import NetworkRequest
from openkpu_tools.commands import sim


def test_files_of_both_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-128, 128, (5, 40)).astype(np.int8)
    b = rng.integers(0, 256, (40, 7)).astype(np.uint8)
    names = [str(tmp_path / f"{name}.npy") for name in "abc"]
    np.save(names[0], a)
    np.save(names[1], b)
    report = tmp_path / "report.json"
    words = ["--golden", "--matmul", *names[:2], f"--output={names[2]}", f"--report={report}"]
    assert sim.main(words) == 0
    assert "C: as numpy's A @ B" in capsys.readouterr().out
    c = np.load(names[2])
    assert c.dtype == np.int32 and (c == a.astype(int) @ b.astype(int)).all()
    (layer,) = json.loads(report.read_text())["layers"]
    assert layer["macs"] == 5 * 40 * 7


@pytest.mark.parametrize(("kind", "dtype"), [("fp16", np.float32), ("fp16to16", np.float16)])
def test_float16(
    kind: str, dtype: type, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of float16, and random matrices, with results of either kind; float32 without TYPE."""
    rng = np.random.default_rng(4)
    a, b = (rng.normal(0, 1, s).astype(np.float16) for s in ((5, 40), (40, 7)))
    names = [str(tmp_path / f"{name}.npy") for name in "abc"]
    np.save(names[0], a)
    np.save(names[1], b)
    for more in (["--type", kind], [] if dtype == np.float32 else ["--type", kind]):
        words = ["--golden", "--config=nano_fp16", "--matmul", *names[:2], *more]
        assert sim.main([*words, f"--output={names[2]}"]) == 0
        assert "C: as the exact sums, rounded once" in capsys.readouterr().out
        c = np.load(names[2])
        want = fp16.multiply(a, b, dtype == np.float32)
        assert c.dtype == dtype and c.tobytes() == want.tobytes()
    words = ["--golden", "--config=nano_fp16", "--matmul", "3x10x250", "--type", kind]
    assert sim.main(words) == 0 and "PASS" in capsys.readouterr().out


def test_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    """1009 columns do not fit a map, so they are cut; every tile has its line, all are one list."""
    assert sim.main(["--golden", "--matmul", "3x10x1009", "--type=uint8"]) == 0
    said = capsys.readouterr().out
    assert "2 layers in 1 list, " in said and said.count("rows 0-2") == 2 and "PASS" in said
    assert sim.main(["--golden", "--matmul", "3x10x1008", "--type=uint8"]) == 0
    assert ": 1 layer, " in capsys.readouterr().out


def test_parts_of_k(capsys: pytest.CaptureFixture[str]) -> None:
    """K too large for a layer: the parts and their sum are a tile with one line."""
    assert sim.main(["--golden", "--matmul", "4x9217x3", "--type=uint8"]) == 0
    said = capsys.readouterr().out
    assert "9 layers in 1 list, " in said and said.count("rows 0-3, columns 0-2\n") == 1
    assert "C: as numpy's A @ B" in said and "PASS" in said


def test_several_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """More tiles than a list may have: the minimum number of lists, which is printed."""
    split = matmul_lists.split_tiles
    monkeypatch.setattr(matmul_lists, "split_tiles", lambda tiles: split(tiles, most_layers=4))
    report = tmp_path / "report.json"
    words = ["--golden", "--matmul", "1030x2x1009", f"--report={report}"]
    assert sim.main(words) == 0
    said = capsys.readouterr().out
    assert "6 layers in 2 lists (one has at most 1023 layers, 256 MiB), " in said
    assert said.count("rows ") == 6 and "C: as numpy's A @ B" in said
    content = json.loads(report.read_text())
    names = [f"list{n}/image0/L0{i}" for n, count in ((0, 4), (1, 2)) for i in range(count)]
    assert [layer["name"] for layer in content["layers"]] == names
    assert content["totals"]["macs"] == 1030 * 2 * 1009


def device_events(network: Network, image: np.ndarray, at: int | None) -> list[Event]:
    """Events of a device whose only error is the first byte of the stored map of layer ``at``."""
    run = network.run(image)
    counters = dict.fromkeys(COUNTERS, 1) | {"total": 100}
    layers = [
        {
            "index": i,
            "counters": counters,
            "macs": result.macs,
            "macs_gated": 0,
            "mismatching_bytes": 0,
            "first": None,
        }
        for i, result in enumerate(run.layers)
    ]
    events: list[Event] = []
    for i, y in matmul_lists.maps_of(run, network).items():
        wrong = {"at": [0, 0, 0], "got": int(y[0]) ^ 1, "expected": int(y[0])}
        event = {"event": "stored", "index": 0, "layer": i, "mismatching_bytes": 0, "first": None}
        if i == at:
            y = np.concatenate([y[:1] ^ 1, y[1:]])
            event |= {"mismatching_bytes": 1, "first": wrong}
        events.append({**event, "y": y.tolist()})
    inference = counters | {"total": 100 * len(layers) + 30}
    result = {"y": run.stored.tolist(), "mismatching_bytes": 0, "first": None, "failure": None}
    return [
        *events,
        {"event": "image", "index": 0, "layers": layers, "inference": inference, **result},
    ]


@pytest.mark.parametrize("at", [None, 1])
def test_stored_maps_are_compared(
    at: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong byte of a tile in storage is reported, with its tile, and fails the run."""

    def run_job(
        _sim: str, _config: Any, request: NetworkRequest, on_event: Any, **_more: object
    ) -> None:
        for event in device_events(request.network, request.images[0], at):
            on_event(event)

    monkeypatch.setattr(launch, "build_device", lambda *_a, **_k: None)
    monkeypatch.setattr(launch, "run_job", run_job)
    monkeypatch.setattr(simrun, "check_tool", lambda _sim: None)
    assert sim.main(["--matmul", "1030x2x1009", "--config=nano"]) == (at is not None)
    said = capsys.readouterr().out
    tiles = [line for line in said.splitlines() if line.startswith("rows ")]
    assert [line.split()[4:6] for line in tiles] == [["100", "cycles"]] * 5 + [["130", "cycles"]]
    assert [i for i, line in enumerate(tiles) if "1 bytes differ" in line] == [1] * (at == 1)
    assert "cycles per inference             630" in said
    wrong = "map of L01 in storage: 1 bytes differ, first at c=0 y=0 x=0"
    assert (wrong in said) == (at == 1)
    elements = "C: 1 of 1039270 elements differ from numpy's A @ B"
    assert (elements if at == 1 else "C: as numpy's A @ B") in said
