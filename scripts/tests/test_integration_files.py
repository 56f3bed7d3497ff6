# SPDX-License-Identifier: Apache-2.0
"""Files for integrators' tools: current, complete, and run by the tools that they are for."""

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu.layer.regmap import OFFSETS
from openkpu_tb.simrun import prepare_path
from openkpu_tools.command import run_command
from openkpu_tools.documents import integration_files, register_formats
from scripts.tests.test_docs import DOCS, blocks, ports, section

FIRST = ROOT / "tb" / "first_layer"
NAME = "openkpu:ip:openkpu"


def test_current() -> None:
    """Every file is what the tree, the configurations and the golden model say."""
    assert integration_files.main(["--check"]) == 0


def test_stale_files_are_named(tmp_path: Path, monkeypatch, capsys) -> None:
    for name in integration_files.files():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(integration_files, "ROOT", tmp_path)
    texts = integration_files.files
    with open(tmp_path / "rtl/openkpu.f", "a") as file:
        file.write("rtl/no_such.v\n")
    (tmp_path / "openkpu.core").unlink()
    monkeypatch.setattr(integration_files, "core", lambda: "")
    assert texts and integration_files.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert "rtl/openkpu.f is stale" in said and "openkpu.core is stale" in said


def first_layer(folder: Path, *more: str) -> str:
    """Output of the bench, with the data of a folder."""
    rtl = [str(ROOT / name) for name in integration_files.rtl_sources()]
    command = ["iverilog", "-g2005", f"-I{ROOT}/rtl/include", f"-I{FIRST}", "-o", "bench", *more]
    command += ["-s", "first_layer_tb", str(FIRST / "first_layer_tb.v"), *rtl]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.check
def test_first_layer(tmp_path: Path) -> None:
    """The bench passes, and fails when a weight, a result or a register is another one."""
    for file in FIRST.glob("*.hex"):
        shutil.copy(file, tmp_path)
    assert "PASS: a layer, 73 words compared" in first_layer(tmp_path, "-Pfirst_layer_tb.N_Z=4")
    for name, line in (("storage.hex", 70), ("host_reads.hex", 40), ("host_reads.hex", 0)):
        lines = (FIRST / name).read_text().split()
        lines[line] = lines[line][:-8] + f"{int(lines[line][-8:], 16) ^ 0xFFFFFFFF:08x}"
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        said = first_layer(tmp_path)
        assert "FAIL" in said and "PASS" not in said, name
        shutil.copy(FIRST / name, tmp_path)


def fusesoc(folder: Path, *words: str) -> str:
    """What FuseSoC says; it must succeed."""
    prepare_path()
    command = [str(Path(sys.executable).parent / "fusesoc"), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.check
def test_commands_of_the_page(tmp_path: Path) -> None:
    """From `library add` to the first layer, as the page says; then AXI with parameters."""
    page = section(DOCS / "integration.md", "11 With FuseSoC")
    (text,) = blocks(page, "")
    install, *commands = text.replace("$OPENKPU", str(ROOT)).strip().splitlines()
    assert install == "pip install fusesoc" and len(commands) == 3
    for line in commands:
        program, *words = line.split()
        assert program == "fusesoc"
        said = fusesoc(tmp_path, *words)
    assert "PASS: a layer, 73 words compared" in said
    assert "PASS: a layer, 73 words compared" in page
    fusesoc(tmp_path, "run", "--target=lint_axi", NAME, "--AHB_W", "64", "--N_Z", "16")


@pytest.mark.check
def test_core_refuses_illegal_parameters(tmp_path: Path) -> None:
    """A value that the device refuses stops the lint of FuseSoC."""
    fusesoc(tmp_path, "library", "add", "openkpu", str(ROOT))
    with pytest.raises(AssertionError, match="ILLEGAL_N_Y_2_4_8_16"):
        fusesoc(tmp_path, "run", "--target=lint", NAME, "--N_Y", "3")


def test_targets_of_the_page() -> None:
    """The table of the page names the targets of the core file."""
    text = (ROOT / "openkpu.core").read_text()
    targets = text[text.index("targets:\n") : text.index("parameters:\n", text.index("targets:\n"))]
    found = set(re.findall(r"^  (\w+):", targets, re.MULTILINE))
    page = section(DOCS / "integration.md", "11 With FuseSoC")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == found


@pytest.mark.parametrize("module", ["openkpu_top", "openkpu_axi", "openkpu_apb"])
def test_constraints_cover_the_ports(module: str) -> None:
    """Each port is the clock or matches one of the patterns of its direction."""
    text = (ROOT / "rtl" / "openkpu.sdc").read_text()
    assert "get_ports clk" in text
    for direction, option in (("in", "set_input_delay"), ("out", "set_output_delay")):
        (listed,) = re.findall(rf"{option}.*get_ports {{([^}}]*)}}", text)
        patterns = [word.replace("*", r"\w+") for word in listed.split()]
        for name, way, _ in ports(module):
            if way == direction and name != "clk":
                assert any(re.fullmatch(pattern, name) for pattern in patterns), name


def test_register_formats(tmp_path: Path) -> None:
    """IP-XACT has each register at its offset; the pages are there."""
    assert register_formats.main([str(tmp_path / "out")]) == 0
    root = ET.parse(tmp_path / "out" / "openkpu.xml").getroot()
    space = re.match(r"{.*}", root.tag)
    assert space
    found = {}
    for register in root.iter(f"{space[0]}register"):
        name, offset = register.find(f"{space[0]}name"), register.find(f"{space[0]}addressOffset")
        assert name is not None and offset is not None and offset.text
        found[name.text] = int(offset.text.replace("'h", "0x"), 0)
    assert {name: at for name, at in found.items() if name in OFFSETS} == dict(OFFSETS)
    assert (tmp_path / "out" / "html" / "index.html").exists()


def test_register_formats_refuse_a_file(tmp_path: Path, capsys) -> None:
    file = tmp_path / "out"
    file.touch()
    assert run_command(register_formats.main, [str(file)]) == 2
    assert str(file) in capsys.readouterr().err
