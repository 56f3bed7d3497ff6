# SPDX-License-Identifier: Apache-2.0
"""Reading and merging Verilator's coverage files, on a small one made by hand."""

import gzip
from pathlib import Path

import pytest

from openkpu_tb.coverage import points
from openkpu_tb.coverage.points import Arm, CoverageError, Figure

pytestmark = pytest.mark.fixed  # the same with every seed

ROOT = Path("/project")


def point(kind: str, line: int, column: int, name: str, count: int, lines: str = "", **more) -> str:
    """One line of a .dat file."""
    file, module = more.get("file", "rtl/a/x.v"), more.get("module", "x")
    fields = {"f": f"{ROOT}/{file}", "l": line, "n": column, "t": kind}
    fields |= {"page": f"v_{kind}/{module}", "o": name} | ({"S": lines} if lines else {})
    key = "".join(f"\x01{k}\x02{v}" for k, v in fields.items()) + "\x01h\x02tb_top.dut"
    return f"C '{key}' {count}\n"


SMALL = [
    point("line", 10, 3, "block", 7, "10,13"),
    point("branch", 11, 5, "if", 0, "11"),
    point("branch", 11, 6, "else", 7, "12"),
    point("expr", 11, 8, "(a==1 && b==1) => 1", 3),
    point("expr", 11, 8, "(b==0) => 0", 0),
    point("toggle", 4, 9, "q[0]:0->1", 2),
    point("toggle", 4, 9, "q[0]:1->0", 1),
    point("toggle", 4, 9, "q[1]:0->1", 0),
    point("toggle", 4, 9, "q[1]:1->0", 0),
    point("toggle", 5, 9, "enable:0->1", 1, file="rtl/b/y.v"),
]


def dat(path: Path, lines: list[str]) -> Path:
    path.write_text("# SystemC::Coverage-3\n" + "".join(lines))
    return path


def test_one_file(tmp_path: Path) -> None:
    sources = points.merge([dat(tmp_path / "a.dat", SMALL)], ROOT)
    x = sources["rtl/a/x.v"]
    assert x.lines == {10: 7, 13: 7, 11: 0, 12: 7}
    assert x.arms == {11: [Arm(5, "if", 0), Arm(6, "else", 7)]}
    assert x.signals[4, "q"] == {"[0]:0->1": 2, "[0]:1->0": 1, "[1]:0->1": 0, "[1]:1->0": 0}
    figures = [(3, 4), (1, 2), (1, 2), (2, 4), (0, 0)]
    assert [x.figure(kind) for kind in points.KINDS] == figures
    assert x.terms[11] == [Arm(8, "(a==1 && b==1) => 1", 3), Arm(8, "(b==0) => 0", 0)]
    assert sources["rtl/b/y.v"].figure("toggle") == (1, 1)
    assert list(points.by_folder(sources)) == ["rtl/a", "rtl/b"]


def test_sinks(tmp_path: Path) -> None:
    """Terms and toggles of a net for unused bits do not count; others of its file do."""
    source = tmp_path / "rtl/a/x.v"
    source.parent.mkdir(parents=True)
    source.write_text("wire q;\n  wire unused_q = &{1'b0, q};\n  wire unused_r = &{q, q};\n")
    rows = [point("toggle", n, 8, f"w{n}:0->1", 1) for n in (1, 2, 3)]
    rows += [point("expr", n, 8, "(q==0) => 0", 0) for n in (1, 2, 3)]
    rows += [point("line", 2, 3, "block", 1, "2")]
    rows = [row.replace(str(ROOT), str(tmp_path)) for row in rows]
    x = points.merge([dat(tmp_path / "a.dat", rows)], tmp_path)["rtl/a/x.v"]
    assert sorted(line for line, _ in x.signals) == [1, 3] and sorted(x.terms) == [1, 3]
    assert x.lines == {2: 1}


def test_machines(tmp_path: Path) -> None:
    """Cover properties of the bench count for the file of the machine."""
    lines = [
        point("user", 9, 1, "slave__FAULT__FAULT2", 2, file="sim_build/tb_fsm.v", module="tb_fsm"),
        point("user", 9, 2, "slave__RAM", 0, file="sim_build/tb_fsm.v", module="tb_fsm"),
    ]
    sources = points.merge([dat(tmp_path / "a.dat", lines)], ROOT)
    assert list(sources) == ["rtl/host/ahb_slave.v"]
    slave = sources["rtl/host/ahb_slave.v"]
    assert slave.figure("fsm") == (1, 2) and slave.figure("expr") == (0, 0)
    names = {arm.name: arm.count for steps in slave.steps.values() for arm in steps}
    assert names == {"FAULT > FAULT2": 2, "RAM": 0}


def test_runs_are_added(tmp_path: Path) -> None:
    """A second run, packed, takes the arm that the first did not."""
    second = tmp_path / "b.dat.gz"
    with gzip.open(second, "wt") as stream:
        stream.write(point("branch", 11, 5, "if", 4, "11"))
    sources = points.merge([dat(tmp_path / "a.dat", SMALL), second], ROOT)
    assert sources["rtl/a/x.v"].arms[11] == [Arm(5, "if", 4), Arm(6, "else", 7)]
    assert sources["rtl/a/x.v"].lines[11] == 4
    assert sources["rtl/a/x.v"].figure("branch") == (2, 2)


def test_instances_are_one_place(tmp_path: Path) -> None:
    """A bit that toggles in one parameter variant of a module has toggled."""
    wide = point("toggle", 4, 9, "q[1]:0->1", 3, module="x__W8")
    still = point("toggle", 4, 9, "q[0]:0->1", 0, module="x__W9")
    sources = points.merge([dat(tmp_path / "a.dat", [*SMALL, wide, still])], ROOT)
    assert sources["rtl/a/x.v"].figure("toggle") == (3, 4)
    assert sources["rtl/a/x.v"].signals[4, "q"]["[0]:0->1"] == 2


def test_a_file_without_points(tmp_path: Path) -> None:
    with pytest.raises(CoverageError, match=r"empty\.dat: no coverage points"):
        points.merge([dat(tmp_path / "a.dat", SMALL), dat(tmp_path / "empty.dat", [])], ROOT)
    with pytest.raises(CoverageError, match="no simulation"):
        points.merge([], ROOT)


def test_points_from_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(CoverageError, match="not expected"):
        points.merge([dat(tmp_path / "a.dat", SMALL)], Path("/other"))
    odd = point("toggle", 4, 9, "q[0]", 1)
    with pytest.raises(CoverageError, match="toggle point named"):
        points.merge([dat(tmp_path / "a.dat", [odd])], ROOT)


def test_nothing_is_left_out(tmp_path: Path) -> None:
    sources = points.merge([dat(tmp_path / "a.dat", SMALL)], ROOT)
    points.require(sources, ["rtl/a/x.v", "rtl/b/y.v"])
    with pytest.raises(CoverageError, match=r"without a coverage point: rtl/c/z\.v"):
        points.require(sources, ["rtl/a/x.v", "rtl/c/z.v"])


def test_percentages_are_rounded_down() -> None:
    assert str(Figure(99999, 100000)) == "99.99 % (99999 of 100000)"
    assert Figure(2801, 10000).percent == "28.01 %" and Figure(0, 0).percent == "-"
    assert str(Figure(5, 5)) == "100.00 % (5 of 5)"
    assert points.add_figures([Figure(1, 2), Figure(3, 4)]) == (4, 6) and points.add_figures(
        []
    ) == (0, 0)
