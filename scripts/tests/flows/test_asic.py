# SPDX-License-Identifier: Apache-2.0
"""Standard cells: netlists, memories and reports as OpenSTA and the table need them."""

import re
import shutil
from pathlib import Path

import pytest

from openkpu_tools.flows import synth
from openkpu_tools.flows.asic import flow as asic
from openkpu_tools.flows.asic import macros as asic_macros
from openkpu_tools.flows.asic import netlist as asic_netlist
from openkpu_tools.flows.asic import timing as asic_timing

pytestmark = [pytest.mark.check, pytest.mark.tool("asic")]


def inverter(name: str, source: int, target: int) -> dict:
    return {name: {"type": "INVX1", "connections": {"A": [source], "Y": [target]}}}


def module(ports: dict, cells: dict, **more) -> dict:
    return {
        "attributes": {},
        "ports": {n: {"direction": d, "bits": b} for n, (d, b) in ports.items()},
        "cells": cells,
        "netnames": {},
        **more,
    }


def fan_out(sinks: int) -> dict[str, dict]:
    """A net from a port to so many inverters."""
    cells = {}
    for number in range(sinks):
        cells |= inverter(f"i{number}", 2, 10 + number)
    return {"top": module({"a": ("input", [2])}, cells)}


@pytest.mark.parametrize("sinks", [1, 12, 13, 145, 2000])
def test_buffers(sinks: int) -> None:
    """No net drives more than SINKS pins, and every sink still hangs on the port."""
    modules = fan_out(sinks)
    asic_netlist.buffer_nets(modules)
    driven: dict[int, int] = {}
    source = {}
    for cell in modules["top"]["cells"].values():
        (net,) = cell["connections"]["A"]
        driven[net] = driven.get(net, 0) + 1
        source[cell["connections"]["Y"][0]] = net
    assert max(driven.values()) <= asic_netlist.SINKS
    for number in range(sinks):
        net = source[10 + number]
        while net in source:
            net = source[net]
        assert net == 2


def test_clocks_have_no_buffers() -> None:
    cells = {
        f"f{n}": {"type": "DFFPOSX1", "connections": {"CLK": [2], "D": [3], "Q": [10 + n]}}
        for n in range(40)
    }
    modules = {"top": module({"clk": ("input", [2]), "d": ("input", [3])}, cells)}
    asic_netlist.buffer_nets(modules)
    cells = modules["top"]["cells"].values()
    assert all(cell["connections"]["CLK"] == [2] for cell in cells if "CLK" in cell["connections"])
    assert sum(cell["type"] == asic_netlist.BUFFER for cell in cells) == 4


def test_contents_of_boxes() -> None:
    """Area and memory bits are those of all instances; memories are no boxes."""
    modules = {
        "openkpu_top": {"part": 3},
        "part": {"INVX1": 1, "DFFPOSX1": 1, "ram": 1},
    }
    columns = {"gates": {"INVX1": 1, "DFFPOSX1": 6}, "memory bits": {"ram": 512}}
    found = synth.box_table(modules, columns, 2)
    assert found == [
        {"box": "openkpu_top", "level": 0, "instances": 1, "gates": 21, "memory bits": 1536},
        {"box": "part", "level": 1, "instances": 3, "gates": 21, "memory bits": 1536},
    ]


@pytest.mark.skipif(not asic.LIBRARY.exists(), reason="make setup GROUPS=asic brings the library")
def test_verilog_that_opensta_reads(tmp_path: Path) -> None:
    """Flip-flops by the net they drive, modules by short names, nothing signed, no memory."""
    cells = {
        "$auto$1": {"type": "DFFPOSX1", "connections": {"CLK": [2], "D": ["0"], "Q": [4]}},
        "$odd[1]": {"type": "$paramod$1\\part", "connections": {"d": [4, "0"]}},
    }
    nets = {"count": {"hide_name": 0, "bits": [3, 4], "signed": 1}}
    box = {"blackbox": "1"}
    modules = {
        "top": module({"clk": ("input", [2])}, cells, netnames=nets),
        "$paramod$1\\part": module({"d": ("input", [2, 3])}, {}, attributes=box),
    }
    found = asic_netlist.renamed(modules)
    assert list(found) == ["top", "part"]
    shutil.copy(asic.LIBRARY, tmp_path)
    asic.write_netlist(found, tmp_path)
    text = (tmp_path / "netlist.v").read_text()
    assert re.search(r"DFFPOSX1 \\count\[1\]_ff ", text) and re.search(r"^  part ", text, re.M)
    assert "signed" not in text and "module part" not in text


@pytest.mark.parametrize("asynchronous", [False, True])
def test_memories_are_cells(asynchronous: bool) -> None:
    """Data follow the clock, or the address where the read is asynchronous."""
    ports = {"clk": 1, "raddr": 4, "wdata": 8, "rdata": 8} | ({} if asynchronous else {"re": 1})
    found = asic_macros.Memory.of(
        {
            "ports": {
                n: {"direction": "output" if n == "rdata" else "input", "bits": [0] * w}
                for n, w in ports.items()
            },
            "parameter_default_values": {"WIDTH": "1000", "DEPTH": "10000"},
        }
    )
    assert found.bits == 128 and found.asynchronous is asynchronous
    text = asic_macros.liberty({"ram": found})
    assert text.count("{") == text.count("}")
    assert ('related_pin : "raddr"' in text) is asynchronous
    assert "pin(clk)" in text and "bus(rdata) { bus_type : b8;" in text
    for what in ("slew_lower", "slew_upper", "input", "output"):
        assert f"{what}_threshold_pct_rise" in text


REPORT = """
Startpoint: u_core/u_seq/count[3]_ff (rising edge-triggered flip-flop clocked by clk)
Endpoint: u_host/u_perf/flat[5]_ff
          (rising edge-triggered flip-flop clocked by clk)
Path Group: clk
Path Type: max

     Delay       Time   Description
---------------------------------------------------------
     0.000      0.000   clock clk (rise edge)
     0.000      0.000   clock network delay (ideal)
     0.000      0.000 ^ u_core/u_seq/count[3]_ff/CLK (DFFPOSX1)
     0.300      0.300 v u_core/u_seq/count[3]_ff/Q (DFFPOSX1)
     1.250      1.550 ^ u_core/u_seq/_12_/Y (NAND2X1)
     2.000      3.550 v u_host/u_perf/_7_/Y (INVX1)
     0.000      3.550 v u_host/u_perf/flat[5]_ff/D (DFFPOSX1)
                3.550   data arrival time

     6.000      6.000   clock clk (rise edge)
     0.000      6.000   clock network delay (ideal)
     0.000      6.000   clock reconvergence pessimism
                6.000 ^ u_host/u_perf/flat[5]_ff/CLK (DFFPOSX1)
    -0.200      5.800   library setup time
                5.800   data required time
---------------------------------------------------------
"""


def test_paths_of_a_report() -> None:
    """Ends, time with setup, time by box; one path for each way."""
    other = REPORT.replace("flat[5]", "flat[6]").replace("2.000 ", "2.500 ")
    (path,) = asic_timing.timing_paths(REPORT + other)
    assert path == {
        "ns": 4.25,
        "from": "u_core/u_seq/count[3]",
        "to": "u_host/u_perf/flat[6]",
        "boxes": {"core.seq": 1.55, "host.perf": 2.5},
    }


def test_what_is_recorded(monkeypatch, tmp_path, capsys) -> None:
    """3 % more gates or less clock fail."""
    monkeypatch.setattr(asic, "BASELINE", tmp_path / "baseline.json")
    found = {"config": "nano", "gates": 100_000, "mhz": 100.0}
    record, compare = (asic.asic_arguments([flag]) for flag in ("--record", "--baseline"))
    assert asic.asic_judged(found, record) == 0
    assert asic.asic_judged(found | {"gates": 102_900, "mhz": 97.2}, compare) == 0
    assert asic.asic_judged(found | {"gates": 103_100}, compare) == 1
    assert asic.asic_judged(found | {"mhz": 97.0}, compare) == 1
    assert re.search(r"97.0 MHz, recorded 100000 at 100.0", capsys.readouterr().out)
    assert asic.asic_judged(found | {"mhz": 9.0}, asic.asic_arguments([])) == 0
