# SPDX-License-Identifier: Apache-2.0
"""Mutation, on an example with known results of its mutants: killed, survived, equivalent."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyslang
import pytest
from pyslang import ast, parsing, syntax

from openkpu.checkout import ROOT
from openkpu_tb import mutants
from openkpu_tools import command, registry
from openkpu_tools.mutation import (
    mutate,
    mutate_benches,
    mutate_equivalent,
    mutate_places,
    mutate_schemata,
    mutate_source,
)
from scripts.tests.conftest import Refused
from scripts.tests.setup import builds_only

pytestmark = [pytest.mark.check, pytest.mark.tool("mutation")]

EXAMPLE = "tb/mutation/example"
DRAW = ("--n", "6", "--seed", "45")
FILE = ROOT / EXAMPLE / "step_counter.v"


def found() -> list[mutate_places.Mutation]:
    return places(FILE.read_text(), f"{EXAMPLE}/step_counter.v")


def places(text: str, name: str = "m.v") -> list[mutate_places.Mutation]:
    """All mutations of a text."""
    source = mutate_source.Source(text.encode(), name, ROOT / "rtl/include")
    return mutate_places.find(source)


def plan(folder: Path, change: tuple[str, str] = ("", ""), more: str = "") -> str:
    """A copy of the example's plan with its own list of equivalents, one text replaced there."""
    listed = (ROOT / EXAMPLE / "equivalent.toml").read_text().replace(*change) + more
    (folder / "equivalent.toml").write_text(listed)
    text = (ROOT / EXAMPLE / "benches.toml").read_text()
    for name in ("equivalent.toml", "verdicts.jsonl"):
        text = text.replace(f"{EXAMPLE}/{name}", str(folder / name))
    (folder / "benches.toml").write_text(text)
    return str(folder / "benches.toml")


def words(folder: Path, *more: str, plan: str = f"{EXAMPLE}/benches.toml") -> list[str]:
    return ["mutate", "--plan", plan, "--reports", str(folder), *more]


def run(folder: Path, *more: str, plan: str = f"{EXAMPLE}/benches.toml") -> int:
    return registry.dispatch(words(folder, *more, plan=plan))


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six mutants of the example, with every result; the exit status reports survivors."""
    folder = tmp_path_factory.mktemp("reports")
    assert run(folder, *DRAW) == 1
    return folder


def test_ends(reports: Path) -> None:
    content = json.loads((reports / "mutation.json").read_text())
    ends = {(m["line"], m["before"], m["after"]): m for m in content["mutants"]}
    same = "(count == 4'd0) && !(count > 4'd0)", "1'b1 && (count == 4'd0)"
    assert {place: m["status"] for place, m in ends.items()} == {
        (18, *same): "equivalent",
        (18, "4'd0", "4'd15"): "survived",  # of the redundant comparison
        (22, "count <= 4'd0;", "(dropped)"): "block",
        (24, "count + 4'd1", "count - 4'd1"): "sizes",
        (26, "most <= (count > most) ? count : most;", "(dropped)"): "survived",
        (26, "(count > most)", "1'b0"): "survived",
    }
    assert ends[24, "count + 4'd1", "count - 4'd1"]["by"].endswith("test_longer counts")
    assert content["score"] == pytest.approx(40)
    assert content["failed"] == [
        "3 survived in tb/mutation/example, where none may",
        "score 40.0 %, the goal is 97 %",
    ]


def test_page(reports: Path) -> None:
    """Survivors come first, with their source lines."""
    page = (reports / "mutation.md").read_text()
    assert page.index("## Survivors") < page.index("## By module") < page.index("## Equivalent")
    assert "   most <= (count > most) ? count : most;" in page.partition("## By module")[0]
    assert "**FAIL**" in page and "A count that is 0 is never above 0." in page


def test_goes_on(reports: Path, tmp_path: Path) -> None:
    """Recorded mutants are not run again; a mutant with a truncated line is."""
    lines = (reports / "mutation/results.jsonl").read_text().splitlines(keepends=True)
    results = tmp_path / "mutation/results.jsonl"
    results.parent.mkdir()
    results.write_text("".join(lines[:-1]) + lines[-1][:20] + "\n")
    assert run(tmp_path, *DRAW) == 1
    again = results.read_text().splitlines()
    assert len(again) == len(lines) + 1 and json.loads(again[-1])["key"] in lines[-1]
    found = [json.loads((f / "mutation.json").read_text())["mutants"] for f in (reports, tmp_path)]
    assert [m["status"] for m in found[0]] == [m["status"] for m in found[1]]


def test_recorded_verdicts(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run in another place uses them and runs no bench; one of a module adds to them."""
    own = {"plan": plan(tmp_path)}
    recorded = tmp_path / "verdicts.jsonl"
    stale = '{"key": "00", "outcome": "failed", "by": "", "seconds": 1.0, "longest": 1.0}\n'
    recorded.write_text(stale)
    shutil.copytree(reports / "mutation", tmp_path / "one/mutation")
    assert run(tmp_path / "one", *DRAW, "--record", "--module", "step_counter", **own) == 1
    rows = recorded.read_text().splitlines(keepends=True)
    assert rows[0] == stale and len({json.loads(row)["key"] for row in rows}) == len(rows) > 6
    capsys.readouterr()
    assert run(tmp_path / "two", *DRAW, "--record", **own) == 1
    assert "passes on the original" not in capsys.readouterr().out
    assert sorted(rows[1:]) == recorded.read_text().splitlines(keepends=True)
    assert not (tmp_path / "two/mutation").exists()


def test_verdicts_of_wiring_are_apart(tmp_path: Path) -> None:
    """A whole run of one group keeps the records of the other."""
    more = ["--n", "2", "--record", "--kind", "wiring", "--level", "block"]
    run(tmp_path / "one", *more, plan=plan(tmp_path))
    content = json.loads((tmp_path / "one/mutation.json").read_text())
    assert len(content["mutants"]) == 2
    assert {m["kind"] for m in content["mutants"]} <= set(mutate_places.WIRING) | {"enable"}
    assert (tmp_path / "verdicts_wiring.jsonl").read_text().count("\n") >= 2
    assert not (tmp_path / "verdicts.jsonl").exists()


def test_listed_as_equivalent_but_killed(reports: Path, tmp_path: Path, refused: Refused) -> None:
    """The list cannot hide a mutant that a bench detects."""
    shutil.copytree(reports / "mutation", tmp_path / "mutation")
    more = """[["tb/mutation/example/step_counter.v"]]
line = "count <= 4'd0;"
find = "count <= 4'd0;"
put = "(dropped)"
reason = "It only starts somewhere else."
"""
    text = "step_counter.v:22: listed as equivalent, but killed by"
    refused(words(tmp_path, *DRAW, plan=plan(tmp_path, more=more)), text, printed=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("count == 4'd0) && !(count > 4'd0);", "count == 4'd1);"), "stale"),
        (("put = \"1'b1 && (count", "put = \"1'b0 && (count"), "stale"),
        (('reason = "A count that is 0 is never above 0."', 'reason = " "'), "expected line, find"),
        (("reason", "why"), "expected line, find"),
        (('.v"]]', '.v"]]\nwhich = 2'), "1 places look like this"),
    ],
)
def test_bad_equivalents(
    change: tuple[str, str], said: str, tmp_path: Path, refused: Refused
) -> None:
    refused(words(tmp_path, plan=plan(tmp_path, change)), said)


def test_equivalents_of_the_rtl() -> None:
    """Every entry names a place in the current RTL: a stale one would stop every campaign."""
    plan = mutate_benches.load_benches(ROOT, mutate.PLAN)
    everything = [m for own in mutate.places(plan).values() for m in own]
    listed = mutate_equivalent.load_equivalents(ROOT / plan.equivalent, plan.equivalent, everything)
    assert set(listed) <= set(everything)


def modules_of(build: dict[str, Any]) -> set[str]:
    """Modules of a build, with its parameters."""
    options = ast.CompilationOptions()
    options.topModules = {build["top"]}
    options.paramOverrides = [f"{name}={value}" for name, value in build["params"].items()]
    includes = parsing.PreprocessorOptions()
    includes.additionalIncludePaths = [ROOT / "rtl/include"]
    bag = pyslang.Bag([options, includes])
    sources, compilation = pyslang.SourceManager(), ast.Compilation(bag)
    for file in build["sources"]:
        compilation.addSyntaxTree(syntax.SyntaxTree.fromFile(file, sources, bag))
    held: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, ast.InstanceSymbol):
            held.add(node.definition.name)

    compilation.getRoot().visit(visit)
    return held


def test_every_bench_holds_its_modules(tmp_path: Path) -> None:
    """In builds of the usual run: builds of the nightly run judge no mutants."""
    plan = mutate_benches.load_benches(ROOT, "tb/mutation/benches.toml")
    benches = [bench for bench in plan.benches if bench.modules and not bench.further]
    builds: dict[str, list[dict[str, Any]]] = {}
    for number, choose in enumerate({bench.choose for bench in benches}):
        files = {bench.test for bench in benches if bench.choose == choose}
        said = tmp_path / f"{number}.jsonl"
        words = ["-q", "-n0", "-p", "scripts.tests.setup.builds_only", "-k"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, choose, *sorted(files)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, builds_only.VARIABLE: str(said)},
        )
        assert done.returncode == 0, done.stdout
        builds[choose] = [json.loads(line) for line in said.read_text().splitlines()]
    held = functools.cache(lambda text: modules_of(json.loads(text)))
    wrong = []
    for bench in benches:
        own = [b for b in builds[bench.choose] if b["test"].startswith(bench.test)]
        found = set().union(
            *(held(json.dumps({k: v for k, v in b.items() if k != "test"})) for b in own)
        )
        lacks = sorted(set(bench.modules) - found)
        wrong += [f"{bench.name}: in none of its {len(own)} builds: {lacks}"] if lacks else []
    assert not wrong, "\n".join(wrong)


def test_equivalent_among_several(tmp_path: Path) -> None:
    """Places with the same text are distinguished by their order, or refused."""
    twins = [m for m in found() if (m.before, m.after, m.line) == ("4'd0", "4'd1", 18)]
    assert len(twins) == 2
    entry = f"""[["{twins[0].file}"]]
line = "{twins[0].text}"
find = "4'd0"
put = "4'd1"
reason = "None, this is a test."
"""
    file = tmp_path / "list.toml"
    file.write_text(entry)
    with pytest.raises(command.UsageError, match="2 places look like this"):
        mutate_equivalent.load_equivalents(file, "list.toml", found())
    file.write_text(entry + "which = 2\n")
    assert list(mutate_equivalent.load_equivalents(file, "list.toml", found())) == [twins[1]]


def test_a_bench_that_fails_by_itself(tmp_path: Path, refused: Refused) -> None:
    """No verdict from a bench that fails on the original."""
    bench = ROOT / EXAMPLE / "test_step_counter.py"
    broken = tmp_path / "test_broken.py"
    broken.write_text(bench.read_text().replace("    simulate(", "    assert False, ("))
    text = (ROOT / EXAMPLE / "benches.toml").read_text()
    text = text.replace(f"{EXAMPLE}/test_step_counter.py", str(broken))
    (tmp_path / "benches.toml").write_text(text.replace('"step_counter"\nmod', '"counter"\nmod'))
    asked = words(tmp_path, "--n", "1", plan=str(tmp_path / "benches.toml"))
    refused(asked, "fails on the original RTL", printed=True)


def test_a_bench_without_the_module(tmp_path: Path, refused: Refused) -> None:
    """A survivor that was in no simulation has no meaning: the plan is wrong."""
    text = (ROOT / EXAMPLE / "benches.toml").read_text()
    text = text.replace(f"{EXAMPLE}/*.v", "rtl/lib/stripe_iter.v")
    text = text.replace('modules = ["step_counter"]', 'modules = ["stripe_iter"]')
    text = text.replace(f"{EXAMPLE}/equivalent.toml", str(tmp_path / "none.toml"))
    (tmp_path / "none.toml").write_text("")
    (tmp_path / "benches.toml").write_text(text)
    asked = words(tmp_path, "--n", "1", plan=str(tmp_path / "benches.toml"))
    refused(asked, "does not hold module stripe_iter", printed=True)


def test_sources_of_a_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy replaces a source; numbers stay numbers; a simulation without the mark reports it."""
    (tmp_path / EXAMPLE).mkdir(parents=True)
    copy = tmp_path / EXAMPLE / FILE.name
    copy.write_text("")
    assert mutants.instead(FILE, ROOT) == FILE and mutants.plusargs() == []
    monkeypatch.setenv(mutants.FOLDER, str(tmp_path))
    monkeypatch.setenv(mutants.NUMBER, "12")
    assert mutants.instead(FILE, ROOT) == copy and mutants.plusargs() == ["+mutant=12"]
    assert mutants.instead(FILE.with_name("test_step_counter.py"), ROOT).parent == FILE.parent
    monkeypatch.setenv(mutants.LOG, str(tmp_path / "log"))
    for text in ("MUTANT 12 is in top\n", "MUTANT 1 is in top\n", "all is well\n"):
        (tmp_path / "sim.log").write_text(text)
        mutants.note(tmp_path / "sim.log", 1.5)
    notes = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [n["held"] for n in notes] == [True, False, False]
    monkeypatch.setenv(mutants.NUMBER, "many")
    with pytest.raises(ValueError, match="expected the number of a mutant"):
        mutants.plusargs()


# ---- places and sources
def test_places_are_let_alone() -> None:
    """Constant expressions, targets of assignments, and initial blocks are not mutated."""
    text = """
module m #(parameter W = 4) (input wire clk, input wire [W-1:0] a, output reg [W+1:0] q);
  localparam [3:0] LAST = 4'd7 + 4'd1;
  reg [7:0] mem [0:15];
  wire [W-1:0] sum;
  part #(.N(W + 1)) u_part (.clk(clk), .y({sum[3:2], sum[1:0]}), .x(a ^ 4'd3));
  initial mem[0] = 8'd1 + 8'd2;
  genvar i;
  generate
    for (i = 0; i < W; i = i + 1) begin : g
      if (i == 2) begin : h
        wire t = a[i+:1] | 1'b0;
      end
    end
  endgenerate
  wire unused = &{1'b0, a};
  always @(posedge clk) begin
    case (a)
      4'd9: q[2+:2] <= 2'd2;
      default: mem[a + 4'd6] <= {2{4'd5}};
    endcase
  end
endmodule
"""
    changed = {m.before for m in places(text)}
    assert changed >= {"a ^ 4'd3", "4'd3", "a[i+:1] | 1'b0", "q[2+:2] <= 2'd2;", "4'd5", "2'd2"}
    for alone in ("4'd7", "4'd9", "8'd1", "i == 2", "4'd6", "W + 1", "i + 1", "&{1'b0, a}"):
        assert alone not in changed, alone


def test_a_register_that_stays() -> None:
    """`x <= x` is redundant, so dropping it is no mutant; dropping a reset is one."""
    text = """
module m (input wire clk, input wire rst, input wire [3:0] a, output reg [3:0] x, y);
  always @(posedge clk) begin
    if (rst) begin
      x <= 4'd0;
      y <= y;
    end else begin
      x <= x;
      y <= a;
    end
  end
endmodule
"""
    dropped = {m.before for m in places(text) if m.after == "(dropped)"}
    assert dropped == {"x <= 4'd0;", "y <= a;"}


def test_each_kind_is_drawn() -> None:
    mutations = found()
    drawn = mutate_schemata.draw_mutations({"step_counter": mutations}, 6, 7)
    assert {m.kind for m in drawn} == set(mutate_places.LOGIC)
    assert drawn == mutate_schemata.draw_mutations({"step_counter": mutations}, 6, 7)
    assert drawn != mutate_schemata.draw_mutations({"step_counter": mutations}, 6, 8)
    assert set(drawn) < set(mutate_schemata.draw_mutations({"step_counter": mutations}, 9, 7))


def test_equal_shares() -> None:
    """A module with too few mutants contributes all of them."""
    mutations = found()
    drawn = mutate_schemata.draw_mutations(
        {"a": mutations, "b": mutations[:2], "c": mutations}, 21, 7
    )
    count = sum(drawn.count(m) == 1 for m in mutations[:2])
    assert len(drawn) == 21 and count <= 2
    for kinds in (mutate_places.LOGIC, mutate_places.WIRING, mutate_places.KINDS):
        wanted = [m for m in mutations if set(m.kinds) & set(kinds)]
        assert len(mutate_schemata.draw_mutations({"a": mutations}, 9999, 7, kinds)) == len(wanted)


def test_every_mutant_has_its_number() -> None:
    both = mutate_schemata.schemata(FILE.read_bytes(), enumerate(found(), 1)).decode()
    numbers = set(map(int, re.findall(r"16'd(\d+)", both))) - {0}
    assert numbers == set(range(1, len(found()) + 1))
