# SPDX-License-Identifier: Apache-2.0
"""`make fpga PARAMS=... FAMILY=... PART=...`: a variant without a file, counted for a part."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from openkpu import configs
from openkpu_tools import command, families
from openkpu_tools.flows import eda, fpga, silicon_record, synth
from openkpu_tools.variants import BESIDE, KEYS, Variant, variant
from scripts.tests.documents.test_docs import DOCS, header, section, table
from scripts.tests.documents.test_parameters import ILLEGAL, LEGAL

pytestmark = pytest.mark.fixed  # the same with every seed

# a multiplier, registers and a counter in boxes of their own
BOXES = """module part(input clk, input [7:0] a, input [7:0] b, output [7:0] q);
  reg [15:0] product;
  always @(posedge clk) product <= a * b;
  assign q = product[15:8] ^ product[7:0];
endmodule
module ticks(input clk, output reg [5:0] n);
  always @(posedge clk) n <= n + 1;
endmodule
module openkpu_top #(parameter POOL_LANES = 1)
    (input clk, input [7:0] a, input [7:0] b, output [7:0] q, output [5:0] n);
  wire [5:0] t;
  assign n = ~t;
  part u_part (.clk(clk), .a(a), .b(b), .q(q));
  generate
    if (POOL_LANES == 0) begin : g_none
      assign t = 0;
    end else if (POOL_LANES != 1) begin : g_illegal
      ILLEGAL_POOL_LANES u_illegal ();
    end else begin : g_some
      ticks u_ticks (.clk(clk), .n(t));
    end
  endgenerate
endmodule
"""


@pytest.fixture
def boxes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The device is BOXES, of one parameter; reports and records lie in a folder of the test."""

    def script(device: Variant, commands: list[str], **_more: object) -> str:
        lanes = device.parameters["POOL_LANES"]
        head = ["read_verilog box.v", f"chparam -set POOL_LANES {lanes} openkpu_top"]
        return "\n".join([*head, *commands])

    monkeypatch.setattr(synth, "stage", lambda folder: (folder / "box.v").write_text(BOXES))
    monkeypatch.setattr(synth, "script", script)
    monkeypatch.setattr(silicon_record, "REPORTS", tmp_path)
    monkeypatch.setattr(fpga, "BASELINE", tmp_path / "baseline.json")
    monkeypatch.setattr(fpga, "XC7_RECORD", tmp_path / "xc7.json")


def test_every_parameter_has_a_name() -> None:
    """Those of configs.toml and the others are what docs/integration.md 3 lists."""
    assert {*KEYS} | {*BESIDE} == set(LEGAL) and not {*KEYS} & {*BESIDE}
    nano = configs.load_config("nano")
    for name in KEYS:
        same = getattr(nano, KEYS[name])
        assert variant(nano, [(name, same)]).config == nano


def test_ranges_of_the_page() -> None:
    """The column of legal values has the ends that messages name; where other parameters limit one,
    as FP16_LANES, test_values tries them."""
    small = configs.load_config("small")
    values = {key: getattr(small, key) for key in configs.KEYS}
    rows = {row[0]: row[2] for row in table(section(DOCS / "integration.md", "3 Parameters"))}
    for name, key in KEYS.items():
        if name == "FP16_LANES":
            continue
        said = (configs.illegal(values | {key: -5}) or "").partition("expected ")[2]
        found = [int(n) for n in re.findall(r"\d+", said)]
        listed = [int(n) for n in re.findall(r"\d+", rows[name].partition(";")[0])]
        assert (min(found), max(found)) == (min(listed), max(listed)), f"{name}: {said}"


def test_values_of_a_variant() -> None:
    """Of each parameter: the one that is given, the configuration's, the RTL's default."""
    device = variant(configs.load_config("nano_fpga"), [("GATE", 0), ("PERF", 0)])
    defaults = dict(re.findall(r"parameter\s+(\w+)\s*=\s*(\w+)", header()))
    for name in LEGAL:
        own = {"GATE": 0, "PERF": 0}.get(name)
        other = getattr(device.config, KEYS[name]) if name in KEYS else int(defaults[name])
        assert device.value(name) == (other if own is None else own), name


# what a value needs beside it
NEEDS = {
    "N_Y": {"N_Z": 8},
    "N_Z": {"FLAT_MAPS": 0},
    "FP16_LANES": {"PATH": 64},
}


@pytest.mark.parametrize("name", LEGAL)
def test_values(name: str) -> None:
    """What the RTL refuses is refused before it is mapped; what it has is mapped."""
    small = configs.load_config("small")
    for value in ILLEGAL[name]:
        with pytest.raises(command.UsageError, match=f"^--params.*{name}"):
            variant(small, [(name, value)])
    for value in LEGAL[name]:
        if name == "AI_RAM_ROWS" and value in (17, 100):  # no powers of two
            continue
        changes = {**NEEDS.get(name, {}), name: value}
        found = variant(small, changes.items())
        keys = {key: getattr(found.config, key) for key in configs.KEYS}
        other = {KEYS[n]: v for n, v in changes.items() if n in KEYS}
        assert keys == {key: getattr(small, key) for key in configs.KEYS} | other
        assert dict(found.beside) == {n: v for n, v in changes.items() if n in BESIDE}
        assert found.words.endswith(f"{name}={value}") and found.name == "small"


def test_script() -> None:
    """Yosys is given the values; the AI RAM is the small one unless it is asked for."""
    device = variant(configs.load_config("nano_fpga"), [("POOL_LANES", 0), ("GATE", 0)])
    text = synth.script(device, ["stat"])
    assert "-set POOL_LANES 0" in text and "-set GATE 0" in text
    assert f"-set AI_RAM_ROWS {synth.SMALL_RAM}" in text
    assert f"-set AI_RAM_ROWS {device.config.ai_ram_rows}" in synth.script(
        device, ["stat"], rows=None
    )
    assert device.title == "nano_fpga, POOL_LANES=0 GATE=0"
    assert device.stem == "nano_fpga_pool_lanes_0_gate_0"
    many = {name: value for name, value in device.config.parameters.items() if name != "GATE"}
    stems = {
        variant(device.config, [*many.items(), ("GATE", gate)]).stem + ".json" for gate in (0, 1)
    }
    assert len(stems) == 2 and max(map(len, stems)) < 200
    assert "GATE" not in synth.script(configs.load_config("nano_fpga"), ["stat"])


@pytest.mark.check
@pytest.mark.tool("fpga")
@pytest.mark.parametrize(("family", "multiplier", "flip_flops"), [("ecp5", 0, 6), ("xc7", 0, 6)])
def test_families(
    family: str,
    multiplier: int,
    flip_flops: int,
    boxes: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A count for each box, with its parts; without the counter there is less.

    The register of the product is inside the multiplier: synth_xilinx and the flow move it there.
    """
    words = ["--config=nano_fpga", f"--family={family}", "--map"]
    if family == "xc7":
        words.remove("--map")
    assert fpga.main(words) == 0
    text = capsys.readouterr().out
    tail = "" if family == "ecp5" else "_xc7"
    found = json.loads((tmp_path / "fpga" / f"nano_fpga{tail}.json").read_text())
    assert found["DSP"] == 1 and found["flip-flops"] == flip_flops and found["LUT"] >= 8
    part = found["boxes"]["part"]
    assert (part["flip-flops"], part["DSP"], part["block RAM"]) == (multiplier, 1, 0)
    assert found["boxes"]["ticks"]["flip-flops"] == 6
    parts = families.FAMILIES[family].parts
    for part in parts.values():
        line = next(line for line in text.splitlines() if line.startswith(f"| {part.title} |"))
        assert f"{found['LUT']} of {part.lut:,} (" in line and f" 1 of {part.dsp} (" in line
        assert line.endswith("| fits |") and found["fits"][part.title]
    assert fpga.main([*words, "--params", "POOL_LANES=0"]) == 0
    less = json.loads((tmp_path / "fpga" / f"nano_fpga_pool_lanes_0{tail}.json").read_text())
    assert less["LUT"] < found["LUT"] and less["params"] == {"POOL_LANES": 0}
    assert "ticks" not in less["boxes"] and 'PARAMS="POOL_LANES=0"' in capsys.readouterr().out


@pytest.mark.check
@pytest.mark.tool("fpga")
def test_refused_by_the_rtl(boxes: None, tmp_path: Path, refused) -> None:
    """What configs.toml would allow and the RTL does not is a bad request, not a failure."""
    words = ["--config=nano_fpga", "--map", "--params", "POOL_LANES=2"]
    refused(words, "the RTL refuses ", " POOL_LANES=2 ", ": ILLEGAL_POOL_LANES",
            main=fpga.main, printed=True)  # fmt: skip
    device = variant(configs.load_config("nano"), [("POOL_LANES", 2)])
    with pytest.raises(command.UsageError, match=r"the RTL refuses .*: ILLEGAL_POOL_LANES"):
        synth.yosys(device, ["hierarchy -check -top openkpu_top"])


@pytest.fixture
def large(boxes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The device is mapped already: 73 multipliers in a box, and a LUT."""
    cells = {f"u_core.u_mac.m{n}": {"type": "MULT18X18D"} for n in range(73)}
    cells["u_core.u_post.l"] = {"type": "LUT4"}

    def mapped(_device: object, folder: Path, family: families.Family) -> Path:
        kinds = {"MULT18X18D": "DSP48E1", "LUT4": "LUT6"} if family is families.XC7 else {}
        mine = {name: {"type": kinds.get(c["type"], c["type"])} for name, c in cells.items()}
        file = folder / "netlist.json"
        file.write_text(json.dumps({"modules": {"openkpu_top": {"cells": mine}}}))
        return file

    def never(*_words: object, **_more: object) -> dict:
        raise AssertionError("it was placed")

    monkeypatch.setattr(fpga, "mapped", mapped)
    monkeypatch.setattr(fpga, "placed", never)


def test_too_large(large: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is placed where the part has no room; a mapping says so where the part is named."""
    assert fpga.main(["--part=45k"]) == 1
    assert "FAIL too large for LFE5U-45F: DSP 73 of 72\n" in capsys.readouterr().out
    assert fpga.main(["--part=45k", "--map"]) == 1
    text = capsys.readouterr().out
    assert "FAIL too large for LFE5U-45F: DSP 73 of 72\n" in text
    assert (
        "| LFE5U-45F | 1 of 43,848 (0 %) | 73 of 72 (101 %) | 0 of 108 (0 %) | too small |" in text
    )
    assert "| LFE5U-85F | 1 of 83,640 (0 %) | 73 of 156 (47 %) | 0 of 208 (0 %) | fits |" in text
    assert fpga.main(["--part=85k", "--map"]) == fpga.main(["--map"]) == 0
    with pytest.raises(AssertionError, match="it was placed"):
        fpga.main(["--part=85k"])


def test_xilinx_record(large: None, tmp_path: Path) -> None:
    """Figures of a variant are kept under its parameters; the family follows from the part."""
    words = ["--config=small_fpga", "--part=100t", "--record"]
    assert fpga.main([*words, "--params", "POST_SHARE=4", "MUL_BITS=17"]) == 0
    assert fpga.main(words) == 0 and not (tmp_path / "baseline.json").exists()
    figures = {"LUT": 1, "flip-flops": 0, "DSP": 73, "block RAM": 0}
    assert json.loads((tmp_path / "xc7.json").read_text()) == {
        "small_fpga": figures,
        "small_fpga POST_SHARE=4 MUL_BITS=17": figures,
    }


@pytest.mark.parametrize("family", families.FAMILIES.values(), ids=families.FAMILIES)
def test_every_cell_has_a_price(family: families.Family) -> None:
    """A kind of cell that nobody thought of would count as nothing."""
    known = [kind for weights in family.columns.values() for kind in weights]
    assert len(known) == len(set(known)) and not family.free & set(known)
    netlist = {"modules": {"openkpu_top": {"cells": {"u_a.x": {"type": "ODD"}}}}}
    with pytest.raises(eda.ToolError, match="cells that have no price: ODD"):
        fpga.count(netlist, family)
    half = family.sums(Counter({"RAMB18E1": 3, "DP16KD": 2}))["block RAM"]
    assert half == (1.5 if family is families.XC7 else 2)
    sizes = [[*part.limits.values()] for part in family.parts.values()]
    assert sizes == sorted(sizes)
