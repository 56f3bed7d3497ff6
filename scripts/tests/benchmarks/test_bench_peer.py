# SPDX-License-Identifier: Apache-2.0
"""`make bench-peer`: NNgen's layer in integers, its table and goal, and what is refused.

The simulator is a program that only pretends, but for the last test, which installs NNgen.
"""

import functools
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openkpu.checkout import ROOT
from openkpu_tb import simrun, verilated
from openkpu_tools import marked
from openkpu_tools.benchmarks import bench_peer, bench_tables
from openkpu_tools.benchmarks.bench_peer import ROWS, PeerError, PeerLayer, reference

pytestmark = pytest.mark.fixed  # the same with every seed
PLACES = {"x": 0, "y": 1 << 15, "params": 1 << 16, "start": 16}
NOWHERE = "http://127.0.0.1:1/simple"


# ---- NNgen's layer in integers
def one_pixel(value: int, bias: int, scale: int, shift: int) -> int:
    """The result of a 1x1 layer of one channel and a weight of 1."""
    pixel, weight = np.full((1, 1, 1), value, np.int8), np.ones((1, 1, 1, 1), np.int8)
    layer = PeerLayer(pixel, weight, np.array([bias], np.int32), np.array([scale], np.int8), shift)
    return int(reference(layer)[0, 0, 0])


def test_scaling() -> None:
    """(sum + bias) * scale / 2^shift: a half goes up, less goes down; saturated; no negatives."""
    assert [one_pixel(n, 0, 1, 2) for n in (1, 2, 5, 6, 7)] == [0, 1, 1, 2, 2]
    assert one_pixel(7, 3, 6, 2) == 15
    assert (one_pixel(126, 0, 4, 2), one_pixel(127, 0, 4, 2), one_pixel(127, 1, 4, 2)) == (
        *(126, 127),
        127,
    )
    assert (one_pixel(-5, 0, 1, 1), one_pixel(-128, 0, 127, 1), one_pixel(0, -1, 1, 1)) == (0, 0, 0)


@pytest.mark.parametrize("kernel", [1, 3])
def test_sums(kernel: int) -> None:
    """Every sum is of the pixels around it, zeros beyond the border."""
    rng = np.random.default_rng(kernel)
    x = rng.integers(-128, 128, (3, 4, 2), dtype=np.int8)
    weights = rng.integers(-128, 128, (5, kernel, kernel, 2), dtype=np.int8)
    bias, scale = np.arange(5, dtype=np.int32) * 100, np.arange(1, 6, dtype=np.int8)
    y = reference(PeerLayer(x, weights, bias, scale, 10))
    for place in np.ndindex(y.shape):
        total = int(bias[place[2]])
        for r, c, i in np.ndindex(kernel, kernel, 2):
            at = place[0] + r - kernel // 2, place[1] + c - kernel // 2
            inside = 0 <= at[0] < 3 and 0 <= at[1] < 4
            total += int(x[*at, i]) * int(weights[place[2], r, c, i]) if inside else 0
        exact = total * int(scale[place[2]]) / 1024
        assert y[place] == min(max(int(np.floor(exact + 0.5)), 0), 127)
    assert len(np.unique(y)) > 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_results_spread(row: bench_peer.PeerRow) -> None:
    """Rows compare results of all values, and both ends of the range."""
    layer = bench_peer.peer_layer(row)
    y = reference(layer)
    counts = np.bincount(y.reshape(-1), minlength=128)
    assert y.shape == (16, 16, 64) and counts.min() > 5 and counts.max() < 0.6 * y.size


# ---- table and goal
def figures(ours: int, peer: int) -> dict[str, dict[str, list[int]]]:
    """Rows that all need so many cycles."""
    return {row.name: {"openkpu": [ours], "nngen": [peer]} for row in ROWS}


def test_table() -> None:
    """Multipliers, cycles, use and who is ahead; rows that were not measured are left out."""
    found = figures(300_000, 327_680)
    *_, other, last = bench_peer.peer_table(found)
    layer = "64 to 64 at 16x16"
    small = f"| 3x3, {layer} | `small` | 144 | 300,000 | 21.8 %"
    assert bench_peer.peer_table(found)[5] == (
        f"{small} | 1x1x4x4 | 144 | 327,680 | 20.0 % | `small` |"
    )
    nano = f"| 1x1, {layer} | `nano` | 36 | 300,000 | 9.7 %"
    assert last == f"{nano} | 1x4x4x2 | 32 | 327,680 | 10.0 % | `nano` |"
    del found[ROWS[-1].name]
    assert bench_peer.peer_table(found)[-1] == other and len(bench_peer.peer_table(found)) == 7


@pytest.mark.parametrize(("ours", "ahead"), [(9, "`nano`"), (10, "neither"), (11, "NNgen")])
def test_goal(ours: int, ahead: str) -> None:
    """Fewer cycles in every row; as many are not fewer, and no row may be missing."""
    found = figures(9, 10)
    found[ROWS[0].name]["openkpu"] = [ours]
    assert bench_peer.peer_table(found)[2].endswith(f" {ahead} |")
    told = "met" if ours == 9 else f"missed by {ROWS[0].name}"
    assert bench_peer.verdict(found) == f"goal, fewer cycles than NNgen: {told}"
    del found[ROWS[0].name]
    assert bench_peer.verdict(found).endswith(f"missed by {ROWS[0].name}")


def test_page() -> None:
    """It has the table of the record, with every row, and names the release that is installed."""
    table = bench_peer.recorded_table()
    assert len(table) == 2 + len(ROWS)
    assert marked.part(bench_tables.PAGE, "bench-peer") == "\n".join(table)
    (pin,) = re.findall(r"^nngen==(\S+)", (ROOT / "constraints.txt").read_text(), re.M)
    assert f"installs release {pin} " in bench_tables.PAGE.read_text()


# ---- what is refused
FAKE = """#!{python}
import sys
mode = {mode!r}
if mode != "silent":
    words = open("memory.hex").read().split()
    result = open({result!r}).read().split()
    words[{y}:{y} + len(result)] = result
    if mode == "result": words[{y} + 7] = "12345678"
    if mode == "elsewhere": words[-1] = "00000001"
    if mode == "half": words[{y}] = open("memory.hex").read().split()[{y}]
    open("result.hex", "w").write("//0\\n" + "\\n".join(words))
    print("cycles 12345 words 4096")
"""


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Runs the last row on a simulator that behaves like that."""
    row = ROWS[-1]

    def run(mode: str, multipliers: int = row.peer_multipliers) -> int:
        y = reference(bench_peer.peer_layer(row)).reshape(-1).view("<u4")
        (tmp_path / "result").write_text(" ".join(f"{word:08x}" for word in y))
        program = tmp_path / "program"
        values = {"python": sys.executable, "mode": mode, "y": PLACES["y"] // 4}
        program.write_text(FAKE.format(result=str(tmp_path / "result"), **values))
        program.chmod(0o755)
        monkeypatch.setattr(verilated, "model", lambda *_: tmp_path)
        monkeypatch.setattr(verilated, "program", lambda *_: program)
        (tmp_path / f"{row.name}.json").write_text(
            json.dumps({**PLACES, "multipliers": multipliers})
        )
        np.save(tmp_path / f"{row.name}.params.npy", np.zeros(100, np.uint8))
        return bench_peer.run_peer(row, tmp_path)

    return run


def test_cycles_of_the_peer(peer: Callable[..., int]) -> None:
    assert peer("right") == 12345


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        *(("result", " bytes of the storage differ"), ("elsewhere", " 1 bytes of the storage")),
        *(("half", " 4 bytes of the storage differ"), ("silent", "the simulation failed")),
    ],
)
def test_wrong_bytes(mode: str, said: str, peer: Callable[..., int]) -> None:
    """Of the result, outside it, never written, or no result at all."""
    with pytest.raises(PeerError, match=said):
        peer(mode)


def test_other_multipliers(peer: Callable[..., int]) -> None:
    """An array of another size than the row's is not compared."""
    with pytest.raises(PeerError, match="has 31 multipliers, expected 32"):
        peer("right", multipliers=31)


def test_failed_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row that fails, or needs over 1 % more than recorded, is status 1, a missed goal is not;
    the others run on, and a failed run is not recorded."""

    def fails(*_: object) -> int:
        raise PeerError("device: broken")

    record, page = tmp_path / "record.json", tmp_path / "page.md"
    page.write_text("<!-- bench-peer -->\n<!-- /bench-peer -->\n")
    monkeypatch.setattr(bench_peer, "RECORD", record)
    monkeypatch.setattr(bench_tables, "PAGE", page)
    monkeypatch.setattr(simrun, "check_tool", lambda _: None)
    monkeypatch.setattr(bench_peer, "peer_python", lambda _: tmp_path)
    monkeypatch.setattr(bench_peer, "generate", lambda *_: "nngen 0")
    monkeypatch.setattr(bench_peer, "run_device", lambda *_: 1000)
    monkeypatch.setattr(bench_peer, "run_peer", lambda *_: 990)
    record.write_text(json.dumps(figures(1000, 990)))
    assert bench_peer.main([]) == 0
    assert "missed by conv3x3_nano_2x2x1x1, " in capsys.readouterr().out
    record.unlink()
    assert bench_peer.main(["--record"]) == 0
    assert json.loads(record.read_text()) == figures(1000, 990)
    assert marked.part(page, "bench-peer").count("| 1,000 |") == len(ROWS)
    record.write_text(before := json.dumps(figures(989, 990)))
    assert bench_peer.main([]) == 1
    assert (
        "worse: conv3x3_nano_2x2x1x1, openkpu: 1000 cycles, recorded 989" in capsys.readouterr().out
    )
    monkeypatch.setattr(bench_peer, "run_device", fails)
    assert bench_peer.main(["--record"]) == 1
    assert capsys.readouterr().out.count("failed: device: broken") == len(ROWS)
    assert record.read_text() == before


def test_generator_that_fails(tmp_path: Path) -> None:
    """Its last line."""
    with pytest.raises(
        PeerError, match="NNgen failed: ModuleNotFoundError: No module named 'nngen'"
    ):
        bench_peer.generate(Path(sys.executable), ROWS, tmp_path)


def test_without_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line of error, status 2, and nothing is simulated."""
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(simrun, "check_tool", lambda _: None)
    monkeypatch.setattr(simrun, "builds", lambda: tmp_path)
    monkeypatch.setattr(bench_peer, "generate", lambda *_: pytest.fail("it went on"))
    assert bench_peer.main([]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: ") and "no package index can be reached" in line


# ---- the real thing
@pytest.mark.check
@pytest.mark.tool("peer")
def test_nngen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last row's accelerator computes the reference, and no other, in the recorded cycles."""
    row = ROWS[-1]
    python = bench_peer.peer_python(simrun.builds() / bench_peer.GROUP)
    assert python, "NNgen is installed from the package index"
    assert importlib.util.find_spec("nngen") is None, "it is not in the checkout's environment"
    bench_peer.generate(python, [row], tmp_path)
    assert bench_peer.run_peer(row, tmp_path) == bench_peer.recorded_cycles()[row.name]["nngen"][0]
    (tmp_path / row.name).rename(tmp_path / "first")
    other = functools.partial(np.add, 1)
    monkeypatch.setattr(bench_peer, "reference", lambda layer: other(reference(layer)))
    with pytest.raises(PeerError, match="16384 bytes of the storage differ"):
        bench_peer.run_peer(row, tmp_path)
