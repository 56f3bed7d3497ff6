# SPDX-License-Identifier: Apache-2.0
"""Paths of a device that is placed: found in a file of delays as nextpnr writes it."""

import graphlib
from pathlib import Path

import pytest

from openkpu_tools.flows import fpga, sdf_paths

pytestmark = [pytest.mark.check, pytest.mark.tool("fpga")]

HEAD = """(DELAYFILE
  (TIMESCALE 1ps)
"""


def wire(source: str, sink: str, rise: int, fall: int = 0) -> str:
    return f"(INTERCONNECT {source} {sink} (0:0:{rise}) ({fall}:{fall}:{fall}))"


def cell(kind: str, name: str, *lines: str) -> str:
    return "\n".join([f'(CELL (CELLTYPE "{kind}")', f"  (INSTANCE {name})", *lines, ")"])


def register(name: str, pin: str = "DI", setup: int = 0) -> str:
    return cell(
        "TRELLIS_FF",
        name,
        "(IOPATH CLK Q (430:477:500) (430:477:525))",
        f"(SETUPHOLD (posedge {pin}) (posedge CLK) ({setup}:{setup}:{setup}) (267:285:303))",
    )


def lut(name: str, **ways: int) -> str:
    paths = [f"(IOPATH {pin} F (1:2:{ps}) (1:2:{ps}))" for pin, ps in ways.items()]
    return cell("TRELLIS_COMB", name, *paths)


def written(folder: Path, *parts: str) -> Path:
    file = folder / "placed.sdf"
    file.write_text(HEAD + "\n".join(parts) + "\n)\n")
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two registers to a third through a LUT; the second also straight to the fourth."""
    return written(
        tmp_path,
        wire(r"u_a.q\[0\]/Q", "u_b.lut/A", 700, 800),
        wire("u_b.y/Q", "u_b.lut/B", 900),
        wire("u_b.lut/F", "u_c.z/DI", 1000),
        wire("u_b.y/Q", "u_c.w/LSR", 3000),
        wire("port/O", "u_c.v/DI", 9000),
        register(r"u_a.q\[0\]"),
        register("u_b.y"),
        register("u_c.z"),
        register("u_c.w", "LSR", 424),
        register("u_c.v"),
        lut("u_b.lut", B=100, A=236),
    )


def test_longest(file: Path) -> None:
    """By picoseconds with the setup, the later of rise and fall; a path begins at a register."""
    first, second = sdf_paths.longest(sdf_paths.read_sdf(file))
    assert first.ps == 525 + 3000 + 424
    assert first.pins == [("u_b.y/Q", 525), ("u_c.w/LSR", 3525)]
    assert second.ps == 525 + 800 + 236 + 1000
    assert second.pins[0] == ("u_a.q[0]/Q", 525)
    assert second.pins[1:3] == [("u_b.lut/A", 1325), ("u_b.lut/F", 1561)]


def test_boxes(file: Path) -> None:
    """The time of a wire is its sink's; the setup the last box's."""
    assert fpga.estimated(file) == [
        {"ns": 3.95, "from": "u_b.y", "to": "u_c.w", "boxes": {"b": 0.53, "c": 3.42}},
        {"ns": 2.56, "from": "u_a.q[0]", "to": "u_c.z", "boxes": {"a": 0.53, "b": 1.04, "c": 1.0}},
    ]


@pytest.mark.parametrize(("boxes", "shown"), [("bcd", 3), ("bcdefgh", fpga.SHOWN)])
def test_one_of_a_kind(boxes: str, shown: int, tmp_path: Path) -> None:
    """Only the slowest path between the same boxes is reported, and at most SHOWN paths."""
    ends = {f"u_{name}.z{i}": 100 * i for i in (1, 2) for name in boxes}
    wires = [wire("u_a.q/Q", f"{end}/DI", ps) for end, ps in ends.items()]
    found = fpga.estimated(written(tmp_path, *wires, *map(register, ["u_a.q", *ends])))
    assert [path["ns"] for path in found] == [0.73] * shown
    assert len({path["to"] for path in found}) == shown


def test_loop(tmp_path: Path) -> None:
    """A loop of LUTs has no longest path."""
    loop = [wire("u_a.x/F", "u_a.y/A", 1), wire("u_a.y/F", "u_a.x/A", 1)]
    file = written(tmp_path, *loop, lut("u_a.x", A=1), lut("u_a.y", A=1))
    with pytest.raises(graphlib.CycleError):
        next(sdf_paths.longest(sdf_paths.read_sdf(file)))
