# SPDX-License-Identifier: Apache-2.0
"""`make gates NETLIST=... KEEP=...`: files that are no netlist of the device, and what is kept."""

import dataclasses
import json
from pathlib import Path

import pytest

from openkpu import configs
from openkpu_tools.flows import eda, gates
from scripts.tests.conftest import Refused
from scripts.tests.documents.test_docs import ports

pytestmark = pytest.mark.fixed  # the same with every seed

NANO = configs.load_config("nano_fpga")
CELL = {"type": "LUT4", "parameters": {"INIT": "0"}, "connections": {"Z": [3]}}


def device(**changes: object) -> dict:
    """A module with the ports of the device and one cell; ports that ``changes`` names are others,
    or with None not there."""
    ports = {
        name: {"direction": way, "bits": list(range(2, 2 + (bits or 5)))}
        for name, (way, bits) in gates.device_ports(NANO).items()
    }
    made = {"ports": {k: v for k, v in (ports | changes).items() if v}, "cells": {"a": CELL}}
    return {"modules": {"openkpu_top": made}}


def test_ports_of_the_device() -> None:
    """Those of the page of integration, with numbers in place of parameters."""
    for bus in (32, 64):
        found = gates.device_ports(dataclasses.replace(NANO, ahb_width=bus))
        listed = {name: (f"{way}put", width) for name, way, width in ports("openkpu_top")}
        assert {name: way for name, (way, _) in found.items()} == {
            name: way for name, (way, _) in listed.items()
        }
        widths = {"AHB_W": bus, "AHEAD_BITS": 0}
        for name, (_, width) in listed.items():
            assert found[name][1] == (widths[width] if width in widths else int(width)), name


MAPPED = "expected a mapped openkpu_top in Yosys's JSON"


def cell(**changes: object) -> dict:
    """A netlist without ports, of one cell."""
    return {"modules": {"openkpu_top": {"cells": {"a": CELL | changes}}}}


REFUSED = {
    "list": ([], f"no modules in it, {MAPPED}"),
    "another": ({"modules": {"a": {}}}, f"no openkpu_top in it, {MAPPED}"),
    "modules": ({"modules": [1]}, f"no modules in it, {MAPPED}"),
    "empty": ({"modules": {"openkpu_top": {}}}, f"has no cells of a mapped device, {MAPPED}"),
    "no cells": ({"modules": {"openkpu_top": {"cells": {}}}}, "has no cells of a mapped device, "),
    "no type": (cell(type=None), "has no cells of a mapped device, "),
    "a list": (cell(parameters=[]), "has no cells of a mapped device, "),
    "pins": (cell(connections={"Z": 3}), "has no cells of a mapped device, "),
    "no ports": (cell(), f"openkpu_top has no port clk, {MAPPED}"),
    "no port": (device(irq=None), f"openkpu_top has no port irq, {MAPPED}"),
    "no bits": (device(irq={"direction": "output"}), f"openkpu_top has no port irq, {MAPPED}"),
    "direction": (
        device(irq={"direction": "input", "bits": [2]}),
        "port irq is an input of 1 bits, expected an output of 1 bits with ",
    ),
    "width": (
        device(m_ahb_hwdata={"direction": "output", "bits": [2] * 64}),
        "port m_ahb_hwdata is an output of 64 bits, expected an output of 32 bits with "
        "--config=nano_fpga",
    ),
    "toml": ("[nano]\nn_y = 2\n", f": is no JSON, {MAPPED}"),
    "nested": ("[" * 100_000, f"nested too deeply, {MAPPED}"),
    "binary": (b"\xff\xfe\x00", f": is no JSON, {MAPPED}"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_refused(
    name: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with the option, the file and what was expected; nothing is kept, nothing runs."""
    content, said = REFUSED[name]
    if isinstance(content, str):
        content = content.encode()
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    file, keep = tmp_path / "n.json", tmp_path / "x.json"
    file.write_bytes(data)
    monkeypatch.setattr(gates, "lower", None)
    line = refused(["gates", "--netlist", str(file), "--keep", str(keep)], said)
    assert line.startswith(f"error: --netlist={file}: ") and not keep.exists()


def test_a_file_that_is_not_there(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "none.json"
    refused(["gates", f"--netlist={file}"], f"--netlist={file}: No such file or directory")
    file.touch()
    refused(["gates", f"--netlist={file}", "--keep", str(file)], "would be read and written")


def test_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A netlist that can be simulated, not one that Yosys refuses."""
    file, keep = tmp_path / "n.json", tmp_path / "x.json"
    file.write_text(json.dumps(device()))
    words = ["--netlist", str(file), "--keep", str(keep)]

    def fails(*_: object) -> list[Path]:
        raise eda.ToolError("yosys: no such cell")

    monkeypatch.setattr(gates, "lower", fails)
    assert gates.main(words) == 1 and not keep.exists()
    monkeypatch.setattr(gates, "lower", lambda *_: [])
    monkeypatch.setattr(gates, "simulate", lambda *_: None)
    assert gates.main(words) == 0 and keep.read_bytes() == file.read_bytes()
