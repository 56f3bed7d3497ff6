# SPDX-License-Identifier: Apache-2.0
"""Netlists in simulation: a mapped box with all kinds of cells behaves as its RTL."""

import copy
import json
import re
import shutil
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tb import simrun
from openkpu_tools.flows import dsp_registers, eda, equivalence, fpga, gates
from scripts.tests.checkouts import ran

pytestmark = [pytest.mark.check, pytest.mark.tool("gates")]

CYCLES = 3000

# A memory of each width of the block RAM, with byte enables where it has them; one that is read
# before the write; LUT RAM, with and without an output register; products; registers of every kind.
LUT_RAM = (40, 4, 1)  # width, bits of the address, enables
MEMORIES = [(1, 14, 1), (2, 13, 1), (4, 12, 1), (9, 11, 1), (18, 10, 2), (36, 9, 4), LUT_RAM]
BOX = """
module ram #(parameter W = 1, A = 1, B = 1) (
  input wire clk, input wire [B-1:0] we, input wire re, input wire [A-1:0] wa, ra,
  input wire [W-1:0] d, output reg [W-1:0] q);
  (* no_rw_check *) reg [W-1:0] mem [0:(1<<A)-1];
  integer i;
  always @(posedge clk)
    for (i = 0; i < B; i = i + 1) if (we[i]) mem[wa][i*(W/B) +: W/B] <= d[i*(W/B) +: W/B];
  always @(posedge clk) if (re) q <= mem[ra];
endmodule
module box (
  input wire clk, rst, en, input wire [3:0] we, input wire [13:0] wa, ra, input wire [39:0] d,
  output wire [109:0] q, output reg [17:0] first, output wire [7:0] lut,
  output reg [35:0] p0, output reg [28:0] p1, output reg [23:0] p2, output reg [11:0] count, odd,
  output reg [35:0] p3, output reg [23:0] p4, p5, p6, p7, p8, output reg [7:0] also, both);
RAMS
  (* ram_style = "block" *) reg [17:0] single [0:1023];
  always @(posedge clk) if (en) begin
    first <= single[wa[9:0]];
    if (we[0]) single[wa[9:0]] <= d[17:0];
  end
  (* ram_style = "distributed" *) reg [7:0] few [0:15];
  always @(posedge clk) if (we[1]) few[wa[3:0]] <= d[7:0];
  assign lut = few[ra[3:0]];
  always @(posedge clk) p0 <= $signed(d[17:0]) * $signed(d[35:18]);
  always @(posedge clk) if (en) p1 <= d[17:0] * d[28:18];
  always @(posedge clk) if (rst) p2 <= 24'd0; else p2 <= $signed(d[7:0]) * $signed({1'b0, d[23:8]});
  always @(posedge clk) if (rst) count <= 12'd5; else if (en) count <= count + d[11:0];
  // all three registers of one enable; a product with a reset, behind factors without; factors that
  // something else reads; enable and reset; a product that is read twice; a factor that is set
  reg [17:0] f3, g3;
  reg [7:0] f4, f5, f8;
  reg [15:0] g4, g5;
  wire [23:0] now = d[31:24] * d[16:1];
  always @(posedge clk) if (en) begin f3 <= d[17:0]; g3 <= d[35:18]; p3 <= f3 * g3; end
  always @(posedge clk) begin f4 <= d[39:32]; g4 <= d[31:16]; also <= f4; end
  always @(posedge clk) if (rst) p4 <= 24'd0; else p4 <= f4 * g4;
  always @(posedge clk) begin f5 <= d[8:1]; g5 <= {d[15:9], wa[8:0]}; p5 <= f5 * g5; end
  always @(posedge clk) both <= f5 ^ now[7:0];
  always @(posedge clk) if (rst) p6 <= 24'd0; else if (en) p6 <= d[10:3] * d[26:11];
  always @(posedge clk) p7 <= now;
  always @(posedge clk) if (rst) f8 <= 8'hff; else f8 <= d[12:5];
  always @(posedge clk) p8 <= f8 * wa;
  always @(posedge clk) if (en && d[3]) odd <= d[11:0] - {wa[5:0], ra[5:0]} ^ {12{we[2]}};
endmodule
"""
BENCH = """
`timescale 1ns/1ps
module bench;
  reg clk = 0, rst = 1, en = 1;
  reg [3:0] we = 0;
  reg [13:0] wa = 0, ra = 0;
  reg [39:0] d = 0;
  wire [OUTS-1:0] rtl, cells;
  reg  [OUTS-1:0] may = 0;  // bits that are read while they are written
  box u_rtl(.clk(clk), .rst(rst), .en(en), .we(we), .wa(wa), .ra(ra), .d(d), PINS(rtl));
  box_cells u_cells(.clk(clk), .rst(rst), .en(en), .we(we), .wa(wa), .ra(ra), .d(d), PINS(cells));
  integer n, k, wrong = 0, clashes = 0, missed = 0;
  function [13:0] place(input integer r);  // few places all over the memory, the last one too
    place = r % 13 == 12 ? 14'd16383 : (r % 13) * 1493 & 16383;
  endfunction
  initial begin
    for (n = 0; n < CYCLES; n = n + 1) begin
      rst = n < 2 || $urandom % 50 == 0;
      en = n < 40 || $urandom % 4 != 0;
      we = n < 40 ? 4'hf : $urandom;
      wa = place(n < 40 ? n : $urandom);
      ra = place(n < 40 ? n + 12 : $urandom);
      d = {$urandom, $urandom};
      #5 clk = 1;
      #1;
      // the word read last stays unknown while nothing is read
      CLASH
      #1;
      for (k = 0; k < OUTS; k = k + 1)
        if (n >= 40) begin
          if (may[k]) begin
            clashes = clashes + 1;
            if (cells[k] !== 1'bx) missed = missed + 1;
          end else if (rtl[k] !== cells[k]) begin
            if (wrong < 5) $display("cycle %0d bit %0d: %b, in cells %b", n, k, rtl[k], cells[k]);
            wrong = wrong + 1;
          end
        end
      #3 clk = 0;
    end
    $display("wrong %0d missed %0d clashes %0d", wrong, missed, clashes);
    $finish;
  end
endmodule
"""


def simulated(folder: Path, files: list[Path], top: str = "bench") -> str:
    """Output of a bench on Icarus."""
    simrun.check_tool("icarus")
    ran("iverilog", "-g2009", "-s", top, "-o", "bench.vvp", *files, cwd=folder)
    return ran("vvp", "-n", "bench.vvp", cwd=folder).stdout


# ---- a box, mapped
@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """Folder with the RTL and the bench of the box; its netlist."""
    folder = tmp_path_factory.mktemp("box")
    rams, clashes, at = [], [], 0
    for w, a, b in MEMORIES:
        rams.append(
            f"  ram #(.W({w}), .A({a}), .B({b})) u_{w}(.clk(clk), .we(we[{b - 1}:0]), .re(en),"
            f" .wa(wa[{a - 1}:0]), .ra(ra[{a - 1}:0]), .d(d[{w - 1}:0]), .q(q[{at + w - 1}:{at}]));"
        )
        each = w // b
        clashes += [
            f"if (en) may[{at + each * i} +: {each}] = "
            f"{{{each}{{we[{i}] && wa[{a - 1}:0] == ra[{a - 1}:0]}}}};"
            for i in range(b)
            if (w, a, b) != LUT_RAM  # returns the old data
        ]
        at += w
    sizes = {"q": 110, "first": 18, "lut": 8, "p0": 36, "p1": 29, "p2": 24, "count": 12, "odd": 12}
    sizes |= {"p3": 36, "p4": 24, "p5": 24, "p6": 24, "p7": 24, "p8": 24, "also": 8, "both": 8}
    pins, low = [], 0
    for name, size in sizes.items():
        pins.append(f".{name}(@[{low + size - 1}:{low}])")
        low += size
    assert at == sizes["q"]
    bench = BENCH.replace("CLASH", "\n      ".join(clashes)).replace("OUTS", str(low))
    bench = re.sub(r"PINS\((\w+)\)", lambda m: ", ".join(pins).replace("@", m[1]), bench)
    (folder / "bench.v").write_text(bench.replace("CYCLES", str(CYCLES)))
    (folder / "box.v").write_text(BOX.replace("RAMS", "\n".join(rams)))
    flow = fpga.MAP.replace("openkpu_top", "box")
    equivalence.yosys_log(["read_verilog box.v", flow, "write_json box.json"], folder, "map")
    return folder, json.loads((folder / "box.json").read_text())["modules"]["box"]


def box_run(box: tuple[Path, dict], folder: Path, module: dict) -> dict[str, int]:
    """The counts of the bench, with ``module`` as the netlist."""
    for name in ("bench.v", "box.v"):
        shutil.copy(box[0] / name, folder)
    sources = gates.lower(copy.deepcopy(module), folder, "box_cells")
    said = simulated(folder, [folder / "bench.v", folder / "box.v", *sources])
    found = re.search(r"wrong (\d+) missed (\d+) clashes (\d+)", said)
    assert found, said
    print(said)
    return dict(zip(("wrong", "missed", "clashes"), map(int, found.groups()), strict=True))


def test_every_kind_of_cell_is_there(box: tuple[Path, dict]) -> None:
    """Otherwise the next tests would check less than they claim."""
    cells = box[1]["cells"].values()
    kinds = {cell["type"] for cell in cells}
    assert kinds >= {"LUT4", "CCU2C", "TRELLIS_FF", "TRELLIS_DPR16X4", "DP16KD", "MULT18X18D"}
    rams = [cell["parameters"] for cell in cells if cell["type"] == "DP16KD"]
    assert {int(ram["DATA_WIDTH_A"], 2) for ram in rams} == {1, 2, 4, 9, 18, 36}
    assert {ram.get("WRITEMODE_A") for ram in rams} >= {"READBEFOREWRITE"}


def test_a_box_in_cells_is_its_rtl(box: tuple[Path, dict], tmp_path: Path) -> None:
    """Exact; a read during a write returns x in every written bit."""
    found = box_run(box, tmp_path, box[1])
    assert found["wrong"] == 0 and found["missed"] == 0 and found["clashes"] > 1000, found


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"type": "LUT5"}, eda.ToolError, "Module `\\\\LUT5' .* is not part of the design"),
        ({"parameters": {"REG_PIPELINE_CLK": "CLK0"}}, eda.ToolError, "REG_PIPELINE_CLK"),
        (
            {"parameters": {"REG_OUTPUT_CE": "CE1"}},
            AssertionError,
            "ILLEGAL_REGISTER_OF_MULT18X18D",
        ),
    ],
)
def test_what_is_not_known_is_refused(
    change: dict, error: type[Exception], word: str, box: tuple[Path, dict], tmp_path: Path
) -> None:
    module = copy.deepcopy(box[1])
    next(c for c in module["cells"].values() if c["type"] == "MULT18X18D").update(change)
    with pytest.raises(error, match=word):
        box_run(box, tmp_path, module)


# ---- registers that move into multipliers
PARTS = ("OUTPUT", "INPUTA", "INPUTB")
OWN = {  # output of the box: registers that its product's multiplier has
    "p0": {"OUTPUT"},
    "p1": {"OUTPUT"},
    "p2": {"OUTPUT"},
    "p3": {"OUTPUT", "INPUTA", "INPUTB"},
    "p4": {"OUTPUT"},
    "p5": {"OUTPUT", "INPUTA", "INPUTB"},
    "p6": set(),
    "p7": set(),
    "p8": {"OUTPUT"},
}


def registers_of(module: dict, output: str) -> dict:
    """The multiplier that drives an output, or the register of one."""
    bit = module["ports"][output]["bits"][0]
    for _ in range(2):
        for cell in module["cells"].values():
            pins = {pin for pin, bits in cell["connections"].items() if bits == [bit]}
            if any(cell["port_directions"][pin] == "output" for pin in pins):
                break
        if cell["type"] == "MULT18X18D":
            return cell
        (bit,) = cell["connections"]["DI"]
    raise AssertionError(f"{output} is no product")


def test_registers_in_multipliers(box: tuple[Path, dict], tmp_path: Path) -> None:
    """Registers that may move do, and the box still equals its RTL, cycle by cycle."""
    module = copy.deepcopy(box[1])
    before = len(module["cells"])
    saved = dsp_registers.fold_registers(module)
    for output, parts in OWN.items():
        cell = registers_of(module, output)
        assert {part for part in PARTS if f"REG_{part}_CLK" in cell["parameters"]} == parts, output
    # the register of p5's factor g5 is removed, f5 stays for `both`
    assert saved == before - len(module["cells"]) == 36 + 29 + 24 + (36 + 36) + 24 + (24 + 16) + 22
    found = box_run(box, tmp_path, module)
    assert found["wrong"] == 0 and found["missed"] == 0, found
    assert dsp_registers.fold_registers(module) == 0


@pytest.mark.parametrize(
    ("top", "folder", "changes", "parts"),
    [
        # four products of batch norm, two of the zero point, two of the activation
        ("post_lane", "post", "-set MULTIPLY 1", 8 * [set(PARTS)]),
        # operands stay where a product is gated, and the product becomes zero: two controls
        ("mac_unit", "mac", "", [{"OUTPUT"}]),
    ],
)
def test_registers_of_the_data_path(
    top: str, folder: str, changes: str, parts: list[set[str]], tmp_path: Path
) -> None:
    """A lane's multipliers have registers on both sides that move, the array's have one behind."""
    rtl = ROOT / "rtl"
    files = [*sorted((rtl / folder).glob("*.v")), rtl / "lib" / "ram_1r1w_async.v"]
    steps = [f"read_verilog -I{rtl / 'include'} {' '.join(map(str, files))}"]
    steps += [f"chparam {changes} {top}"] if changes else []
    steps += [fpga.MAP.replace("openkpu_top", top), "write_json top.json"]
    equivalence.yosys_log(steps, tmp_path, "map")
    module = json.loads((tmp_path / "top.json").read_text())["modules"][top]
    dsp_registers.fold_registers(module)
    found = [
        {part for part in PARTS if f"REG_{part}_CLK" in cell["parameters"]}
        for cell in module["cells"].values()
        if cell["type"] == "MULT18X18D"
    ]
    assert found == parts


def test_order_of_cells(box: tuple[Path, dict]) -> None:
    """A product with another reader keeps its register outside, in any order of the cells."""
    module = copy.deepcopy(box[1])
    module["cells"] = dict(reversed(module["cells"].items()))
    dsp_registers.fold_registers(module)
    for output, parts in OWN.items():
        settings = registers_of(module, output)["parameters"]
        assert {part for part in PARTS if f"REG_{part}_CLK" in settings} == parts, output


@pytest.mark.parametrize("key", [f"REG_{part}_CLK" for part in PARTS])
def test_a_lost_register_is_seen(key: str, box: tuple[Path, dict], tmp_path: Path) -> None:
    module = copy.deepcopy(box[1])
    dsp_registers.fold_registers(module)
    del registers_of(module, "p3")["parameters"][key]
    assert box_run(box, tmp_path, module)["wrong"] > 0


@pytest.mark.parametrize(("pin", "output"), [("CE0", "p3"), ("RST0", "p4"), ("CE0", "p5")])
def test_a_lost_control_is_seen(
    pin: str, output: str, box: tuple[Path, dict], tmp_path: Path
) -> None:
    """An enable that is constant 0 or 1, a reset that is never asserted."""
    module = copy.deepcopy(box[1])
    dsp_registers.fold_registers(module)
    pins = registers_of(module, output)["connections"]
    pins[pin] = ["0" if pins[pin] == ["1"] or pin == "RST0" else "1"]
    assert box_run(box, tmp_path, module)["wrong"] > 0


@pytest.mark.parametrize("kind", ["LUT4", "DP16KD", "MULT18X18D", "TRELLIS_DPR16X4"])
def test_a_fault_in_a_box_is_seen(box: tuple[Path, dict], tmp_path: Path, kind: str) -> None:
    """One table inverted; two wires of one instance exchanged."""
    module = copy.deepcopy(box[1])
    of_kind = [cell for cell in module["cells"].values() if cell["type"] == kind]
    # the widest block RAM: its port A writes, port B reads
    cell = max(of_kind, key=lambda cell: cell["parameters"].get("DATA_WIDTH_A", ""))
    if kind == "LUT4":
        init = cell["parameters"]["INIT"]
        cell["parameters"]["INIT"] = "".join("10"[int(bit)] for bit in init)
    else:
        pins = cell["connections"]
        first, second = {
            "DP16KD": ("ADA5", "ADA6"),
            "MULT18X18D": ("A0", "A1"),
            "TRELLIS_DPR16X4": ("WAD", "RAD"),
        }[kind]
        pins[first], pins[second] = pins[second], pins[first]
    assert box_run(box, tmp_path, module)["wrong"] > 0
