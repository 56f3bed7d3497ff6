# SPDX-License-Identifier: Apache-2.0
"""Mutations that replace one signal by another: on small texts, each operator by itself."""

from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tools.mutation import mutate_places, mutate_schemata, mutate_source
from openkpu_tools.mutation.mutate_places import Mutation
from scripts.tests.checkouts import ran

PORTS = """input wire clk, input wire rst, input wire [3:0] a, input wire [3:0] b, input wire c,
  input wire d, input wire e, input wire signed [3:0] s, output reg [7:0] q, output wire [7:0] y"""


def module(body: str) -> str:
    return f"\nmodule m ({PORTS});\n{body}\nendmodule\n"


def found(body: str, kind: str, inputs: dict[str, frozenset[str]] | None = None) -> list[Mutation]:
    """Mutations of one kind in a module with this body."""
    return [m for m in places(module(body), inputs) if kind in m.kinds]


def places(text: str, inputs: dict[str, frozenset[str]] | None = None) -> list[Mutation]:
    """All mutations of a text."""
    source = mutate_source.Source(text.encode(), "m.v", ROOT / "rtl/include")
    return mutate_places.find(source, inputs)


def shown(body: str, kind: str, inputs: dict[str, frozenset[str]] | None = None) -> set[str]:
    return {m.shown for m in found(body, kind, inputs)}


def plain_mutant(data: bytes, mutation: Mutation) -> bytes:
    """The file with this one mutation, without the selection logic."""
    one = ((mutation.start, mutation.end, mutation.after),)
    edits = [(start, end, f"({after})") for start, end, after in mutation.edits or one]
    if mutation.declares:
        at, declaration = mutation.declares
        edits.append((at, at, declaration))
    for start, end, after in sorted(edits, reverse=True):
        data = data[:start] + after.encode() + data[end:]
    return data


def mutated(body: str, mutation: Mutation) -> str:
    """The body with this mutation alone and spaces folded."""
    text = plain_mutant(module(body).encode(), mutation).decode()
    inner = text.partition(");\n")[2].rpartition("\nendmodule")[0]
    return " ".join(inner.split())


# ---- two signals of one width
def test_swap_in_a_statement() -> None:
    """Only signals of one width are swapped; both places change."""
    body = "assign y = c ? {4'd0, a - b} : {7'd0, d};"
    assert shown(body, "swap") == {"c, d -> d, c", "a, b -> b, a"}
    (one,) = [m for m in found(body, "swap") if m.before == "a, b"]
    assert mutated(body, one) == "assign y = c ? {4'd0, (b) - (a)} : {7'd0, d};"


def test_swap_of_parts() -> None:
    """Parts of one width count as signals, even parts of the same signal."""
    body = "wire [7:0] w = 8'd0; assign y = (w[3:0] << 1) + (a & w[7:4]) + w[1:0];"
    assert shown(body, "swap") == {"w[3:0], a -> a, w[3:0]"}
    body = "wire [7:0] w = 8'd0; assign y = w[7:4] - w[3:0];"
    assert shown(body, "swap") == {"w[7:4], w[3:0] -> w[3:0], w[7:4]"}


@pytest.mark.parametrize(
    "value",
    ["c && d", "c && e && d", "c && (d && e)", "c || d", "a + b", "a == b", "a & b", "a ^ b",
     "!c && !d", "~a & ~b", "a & {4{c}}", "a - s", "{a, c}"],
)  # fmt: skip
def test_swaps_that_change_nothing(value: str) -> None:
    """Operands of commutative operators; other widths; signed with unsigned ones."""
    assert shown(f"assign y = {value};", "swap") == set()


@pytest.mark.parametrize("value", ["c && !d", "!(c && !d)", "(c && e) || d", "c ? d : e", "a < b"])
def test_swaps_that_change_something(value: str) -> None:
    assert shown(f"assign y = {value};", "swap")


def test_swap_at_an_instance() -> None:
    """Inputs are identified by the module's header; possible outputs are not mutated."""
    body = "part u_part (.clk(clk), .x(c), .z(d), .y(q));"
    assert shown(body, "swap", {"part": frozenset({"clk", "x", "z"})}) == {"c, d -> d, c"}
    assert shown(body, "swap", {"part": frozenset({"clk", "x"})}) == set()
    assert shown(body, "swap") == set()


def test_clocks_and_resets_stay() -> None:
    body = "always @(posedge clk) if (rst) q <= 8'd0; else if (c) q <= {7'd0, rst};"
    assert shown(body, "swap") == set() and shown(body, "late") == {"c -> mutant_late_c"}


# ---- bits
def test_bit_of_a_slice() -> None:
    body = "assign y = a[3:1] == 3'd0;"
    assert shown(body, "bit") == {
        "a[3:1] -> ({a[3:1] << 1} >> 1)",  # without the top one
        "a[3:1] -> ({a[3:1] >> 1} << 1)",
    }
    assert shown("assign y = a[c+:2];", "bit") == {
        "a[c+:2] -> ({a[c+:2] << 1} >> 1)",
        "a[c+:2] -> ({a[c+:2] >> 1} << 1)",
    }


def test_bit_of_a_concatenation() -> None:
    """Single bits, the ends of signals, comparisons; no number, no whole signal."""
    body = "assign y = {c, a, b[2], a < b, 1'b1} ^ s;"
    assert {text.partition(" -> ")[0] for text in shown(body, "bit")} == {"c", "a", "b[2]", "a < b"}
    (single,) = [m for m in found(body, "bit") if m.before == "c"]
    assert single.after == "1'b0"
    assert shown("assign {q[0], y} = a;", "bit") == set(), "what is written to"
    assert shown("assign y = {a | b, 1'b0};", "bit") == {
        "a | b -> ({(a | b) << 1} >> 1)",
        "a | b -> ({(a | b) >> 1} << 1)",
    }


# ---- terms
def test_term_at_any_depth() -> None:
    body = "assign y = (a & b & s) | (c && (d || e));"
    texts = {mutated(body, m) for m in found(body, "term")}
    assert len(texts) == 9
    for without in (
        "assign y = (((a & b))) | (c && (d || e));",  # s
        "assign y = ((b) & s) | (c && (d || e));",  # a
        "assign y = ((a) & s) | (c && (d || e));",  # b
        "assign y = (a & b & s) | (c && ((1'b0 || d)));",  # e, three levels down
        "assign y = (a & b & s) | ((1'b1 && (d || e)));",  # c
    ):
        assert without in texts, without


def test_terms_count_as_what_they_were() -> None:
    """A term of && counts as an enable in a draw of enables, and as a term in a draw of terms."""
    terms = found("assign y = c && d;", "term")
    assert {m.kind for m in terms} == {"enable"} and len(terms) == 2
    every = found("assign y = (c && d) ? a & b : 8'd0;", "term")
    drawn = mutate_schemata.draw_mutations({"m": every}, 99, 1, mutate_places.WIRING)
    assert len(drawn) == len(every) == 4
    assert len(mutate_schemata.draw_mutations({"m": every}, 99, 1)) == 2


# ---- a cycle late
def test_late_signal() -> None:
    """A registered copy is inserted at the signal's declaration, with its range and sign."""
    body = "wire [1:0] w = a[1:0];\nassign y = {w, s};"
    texts = {mutated(body, m) for m in found(body, "late")}
    assert texts == {
        "reg signed [3:0] mutant_late_s; always @(posedge clk) mutant_late_s <= s; "
        "wire [1:0] w = a[1:0]; assign y = {w, (mutant_late_s)};",
        "wire [1:0] w = a[1:0]; reg [1:0] mutant_late_w; always @(posedge clk) "
        "mutant_late_w <= w; assign y = {(mutant_late_w), s};",
        "reg [3:0] mutant_late_a; always @(posedge clk) mutant_late_a <= a; "
        "wire [1:0] w = (mutant_late_a[1:0]); assign y = {w, s};",
    }


def test_late_needs_a_clock() -> None:
    text = "\nmodule m (input wire a, output wire y);\n  assign y = !a;\nendmodule\n"
    every = places(text)
    assert every and not [m for m in every if m.kind == "late"]


def test_memories_and_parameters_are_no_signals() -> None:
    body = "localparam [3:0] P = 4'd1; reg [3:0] mem [0:3];\nassign y = mem[a[1:0]] + P;"
    assert shown(body, "late") == {"a[1:0] -> mutant_late_a[1:0]"}
    assert shown(body, "swap") == set()


# ---- case
def test_case_items() -> None:
    """Neighbouring items swap their labels; several labels, default and casez stay."""
    body = """always @* case (a)
  4'd1: q = 8'd1;
  `ERROR_BUS_ERROR: q = 8'd2;
  4'd3, 4'd4: q = 8'd3;
  4'd5: q = 8'd4;
  default: q = 8'd5;
endcase"""
    header = '`include "openkpu_regs.vh"\n'
    every = found(header + body, "case")
    assert [m.shown for m in every] == [
        "4'd1, `ERROR_BUS_ERROR -> `ERROR_BUS_ERROR, 4'd1",
        "`ERROR_BUS_ERROR, 4'd5 -> 4'd5, `ERROR_BUS_ERROR",
    ]
    body = body.replace("`ERROR_BUS_ERROR", "4'd2")
    text = mutated(body, found(body, "case")[1])
    assert "(4'd5): q = 8'd2;" in text and "(4'd2): q = 8'd4;" in text
    assert shown(body.replace("case (", "casez ("), "case") == set()


# ---- all of them at once
BODY = """
wire [3:0] w = a & ~b;
reg [3:0] r;
always @(posedge clk) begin
  if (rst) r <= 4'd0;
  else case (s[1:0])
    2'd0: r <= {w[2:0], c};
    2'd1: r <= d ? w : b;
    2'd2: r <= (c && !d) ? r - w : r;
    default: r <= r;
  endcase
  q <= {r, w[3:1], e};
end
assign y = {4'd0, r} ^ q;
"""


def test_the_choice_of_none_is_the_original(tmp_path: Path) -> None:
    """All mutants in one text: with number 0 the module behaves as the original, with others
    not."""
    text = module(BODY)
    every = [m for kind in mutate_places.WIRING for m in found(BODY, kind) if m.kind == kind]
    assert {m.kind for m in every} == set(mutate_places.WIRING) and len(every) > 30
    both = mutate_schemata.schemata(text.encode(), enumerate(every, 1)).decode()
    (tmp_path / "m.v").write_text(both)
    (tmp_path / "o.v").write_text(text.replace("module m", "module original"))
    names = "clk, rst, a, b, c, d, e, s"
    (tmp_path / "t.v").write_text(
        f"""module t;
  reg clk = 0, rst = 1; reg [3:0] a = 0, b = 0; reg signed [3:0] s = 0; reg c = 0, d = 0, e = 0;
  wire [7:0] q1, q2, y1, y2;
  integer i, wrong = 0, seed = 1;
  m u_1 ({names}, q1, y1);
  original u_2 ({names}, q2, y2);
  initial begin
    for (i = 0; i < 400; i = i + 1) begin
      {{a, b, s, c, d, e}} = $random(seed);
      rst = i < 3;
      #1 clk = 1;
      #1 if (i > 4 && (q1 !== q2 || y1 !== y2)) wrong = wrong + 1;
      clk = 0;
    end
    $display("WRONG %0d", wrong);
  end
endmodule
"""
    )
    ran("iverilog", "-g2005", "-s", "t", "-o", "t.vvp", "t.v", "m.v", "o.v", cwd=tmp_path)
    mismatches = {}
    for number in range(len(every) + 1):
        said = ran("vvp", "t.vvp", f"+mutant={number}", cwd=tmp_path).stdout
        mismatches[number] = int(said.rpartition("WRONG ")[2])
    assert mismatches.pop(0) == 0
    alike = [every[n - 1].shown for n, wrong in mismatches.items() if not wrong]
    assert not alike, alike
