# SPDX-License-Identifier: Apache-2.0
"""State machines of fsm.toml: as the RTL has them, and the bench as the table has them."""

from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tb.coverage import fsm

pytestmark = pytest.mark.fixed  # the same with every seed

SLAVE = {
    "file": "rtl/host/ahb_slave.v",
    "instance": "u_host.u_slave",
    "states": ["IDLE", "REGS", "RAM"],
    "arcs": ["IDLE>RAM", "*>IDLE"],
}


def test_bench_is_written(tmp_path: Path) -> None:
    """Once, and again when the table has changed; it names every point."""
    path = fsm.bench_file(tmp_path)
    first = path.stat().st_mtime_ns
    assert fsm.bench_file(tmp_path).stat().st_mtime_ns == first
    text = path.read_text()
    assert all(f"  {point}: cover property" in text for m in fsm.machines() for point in m.points)
    path.write_text("old")
    assert fsm.bench_file(tmp_path).read_text() == text and [*tmp_path.iterdir()] == [path]


def test_every_machine_is_listed() -> None:
    """Each `case (state)` of the device has a table with all of its states; the bridges, which are
    not in it, have benches of their own."""
    listed = {each.file: each for each in fsm.machines()}
    for path in ROOT.glob("rtl/**/*.v"):
        text = path.read_text()
        if "case (state)" in text and path.parent.name != "bus":
            each = listed.pop(str(path.relative_to(ROOT)))
            assert len(set(each.states.values())) == len(each.states)
            arms = text.split("case (state)")[-1]
            assert all(f"{state}:" in arms.replace(" ", "") for state in each.states), each.name
    assert not listed


def test_a_table() -> None:
    found = fsm.machine("slave", SLAVE)
    assert found.states == {"IDLE": 0, "REGS": 1, "RAM": 2} and found.width == 3
    assert found.arcs == (("IDLE", "RAM"), ("REGS", "IDLE"), ("RAM", "IDLE"))
    assert found.points[:2] == ["slave__IDLE", "slave__REGS"]
    assert found.points[3:] == ["slave__IDLE__RAM", "slave__REGS__IDLE", "slave__RAM__IDLE"]


def test_a_name_as_verilator_writes_it() -> None:
    assert fsm.place("pixels___05FP_IDLE") == fsm.place("pixels__P_IDLE")
    assert fsm.place("runner___05FIDLE___05FPIXELS")[2] == "IDLE > PIXELS"


def test_what_is_not_there() -> None:
    with pytest.raises(fsm.FsmError, match=r"ahb_slave\.v: no state NEVER"):
        fsm.machine("slave", {**SLAVE, "states": ["IDLE", "NEVER"]})
    with pytest.raises(fsm.FsmError, match="IDLE>NEVER: no state NEVER"):
        fsm.machine("slave", {**SLAVE, "arcs": ["IDLE>NEVER"]})
    with pytest.raises(fsm.FsmError, match="no state or transition slave__NEVER"):
        fsm.place("slave__NEVER")
