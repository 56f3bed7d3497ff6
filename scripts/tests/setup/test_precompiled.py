# SPDX-License-Identifier: Apache-2.0
"""scripts/precompiled.sh: Verilator's headers compiled once for all builds; never in the way."""

from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from scripts.tests.checkouts import ran

pytestmark = [pytest.mark.fixed, pytest.mark.check, pytest.mark.tool("precompiled")]

HEADERS = ("verilated.h", "verilated_dpi.h", "verilated_vpi.h", "verilated_config.h")


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """Headers by Verilator's names, and two folders of builds with a source each."""
    folder = tmp_path / "verilator" / "include"
    folder.mkdir(parents=True)
    for name in HEADERS:
        (folder / name).write_text("#pragma once\n")
    (folder / "verilated.h").write_text("#pragma once\ninline int seven() { return VALUE; }\n")
    for build in ("one", "two"):
        (tmp_path / build).mkdir()
        source = '#include "verilated.h"\nint main() { return seven(); }\n'
        (tmp_path / build / "top.cpp").write_text(source)
    return folder


def compiled(include: Path, build: str, *more: str, value: int = 7) -> tuple[int, bool]:
    """(what the program returns, whether a precompiled header was used); -H prints those as "!"."""
    words = ["c++", "-O1", f"-I{include}", f"-DVALUE={value}", "-H", *more, "-c", "-o", "top.o"]
    script = str(ROOT / "scripts" / "precompiled.sh")
    folder = include.parents[1] / build
    said = ran(script, *words, "top.cpp", cwd=folder)
    ran("c++", "-o", "top", "top.o", cwd=folder)
    used = any(line.startswith("! ") for line in said.stderr.splitlines())
    return ran(folder / "top", status=None).returncode, used


def headers(include: Path) -> list[Path]:
    return sorted(include.parents[1].glob("headers_*/*.gch"))


def test_made_once(include: Path) -> None:
    assert compiled(include, "one") == (7, True)
    (made,) = headers(include)
    before = made.stat().st_mtime_ns
    assert compiled(include, "two") == (7, True)
    assert headers(include) == [made]
    assert made.stat().st_mtime_ns == before


def test_other_switches_and_other_headers(include: Path) -> None:
    """They have precompiled headers of their own."""
    assert compiled(include, "one") == (7, True)
    assert compiled(include, "one", value=8) == (8, True)
    assert len(headers(include)) == 2
    (include / "verilated.h").write_text("#pragma once\ninline int seven() { return VALUE + 1; }\n")
    assert compiled(include, "one") == (8, True)
    assert len(headers(include)) == 3


def test_headers_that_do_not_compile_together(include: Path) -> None:
    (include / "verilated_vpi.h").unlink()
    assert compiled(include, "one") == (7, False)
    assert not headers(include)


def test_build_with_its_own(include: Path) -> None:
    assert compiled(include, "one", "-include", "verilated.h") == (7, False)
    assert not headers(include)


def test_error_of_the_source_is_the_compilers(include: Path) -> None:
    (include.parents[1] / "one" / "top.cpp").write_text('#include "verilated.h"\nint wrong(;\n')
    with pytest.raises(AssertionError, match="wrong"):
        compiled(include, "one")


def test_large_builds_have_no_header_of_their_own(include: Path) -> None:
    """Verilator's makefile asks for one; it stays empty, and the sources read what they name."""
    folder = include.parents[1] / "one"
    (folder / "Vtop__pch.h").write_text('#include "verilated.h"\n')
    switches = ["-O1", f"-I{include}", "-DVALUE=7", "-x", "c++-header"]
    made = ["Vtop__pch.h", "-o", "Vtop__pch.h.fast.gch"]
    ran(ROOT / "scripts" / "precompiled.sh", "c++", *switches, *made, cwd=folder)
    assert (folder / "Vtop__pch.h.fast.gch").stat().st_size == 0
    assert compiled(include, "one", "-include", "Vtop__pch.h.fast") == (7, False)
