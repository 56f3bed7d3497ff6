# SPDX-License-Identifier: Apache-2.0
"""The C code of docs/driver.md and docs/programming.md: it compiles, and it is the driver's."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu.export import image
from openkpu_tools.commands.compiled import export
from openkpu_tools.documents import driver_code
from scripts.tests.checkouts import ran

PAGE = (ROOT / "docs" / "driver.md").read_text()
FLAGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
INCLUDES = [f"-I{ROOT / name}" for name in ("sw", "include")]
DRIVER = sorted((ROOT / "sw").glob("*.c"))


def test_code_compiles(tmp_path: Path) -> None:
    """The first inference beside an exported network; the port to UIO with the driver."""
    first, header, port = re.findall(r"^```c\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    words = ["--model", "digits", "--base", "0x80000000", "--output", str(tmp_path / "net")]
    assert export.main([*words, "--config", "nano"]) == 0
    (tmp_path / "first.c").write_text(first)
    (tmp_path / "uio_port.h").write_text(header)
    (tmp_path / "uio_port.c").write_text("#define _POSIX_C_SOURCE 200809L\n" + port)
    common = ["-std=c99", *FLAGS, *INCLUDES, f"-I{tmp_path}", "-c", "-o", tmp_path / "made.o"]
    ran("gcc", *common, tmp_path / "first.c")
    for file in (tmp_path / "uio_port.c", *DRIVER):
        ran("gcc", *common, '-DOPENKPU_PORT="uio_port.h"', file)
    for headers in (["uio_port.h", "openkpu.h"], ["openkpu.h", "openkpu_port.h", "uio_port.h"]):
        lines = [f'#include "{header}"' for header in headers]
        lines += [
            "int main(void) {",
            "  struct uio uio;",
            '  return uio_open(&uio, "/dev/uio0");',
            "}",
        ]
        (tmp_path / "app.c").write_text("\n".join(lines) + "\n")
        ran("gcc", *common, '-DOPENKPU_PORT="uio_port.h"', tmp_path / "app.c")


def test_a_port_defines_what_it_likes(tmp_path: Path) -> None:
    """Macros of a vendor's header with the names of the image's fields, and one macro alone."""
    names = re.findall(r"IMAGE_(\w+)|TENSOR_(\w+)", (ROOT / "sw" / "openkpu_image.c").read_text())
    vendor = [f"#define {''.join(name)} (-1)" for name in sorted(set(names))]
    vendor += [f"#define {name} (-1)" for name in ("MAGIC", "FIFOS", "FIELD", "LOOKS", "CALC_DONE")]
    read = "#define OPENKPU_READ32(port, offset) ((void)(port), (uint32_t)(offset))"
    write = (
        "#define OPENKPU_WRITE32(port, offset, value) ((void)(port), (void)(offset), (void)(value))"
    )
    assert len(vendor) > 30
    for lines in (vendor, [read], [write]):
        (tmp_path / "vendor.h").write_text("\n".join(lines) + "\n")
        for file in DRIVER:
            words = [*FLAGS, *INCLUDES, f"-I{tmp_path}", '-DOPENKPU_PORT="vendor.h"', "-c", "-o"]
            ran("gcc", "-std=c99", *words, tmp_path / "made.o", file)


def test_driver_is_c_and_cplusplus(tmp_path: Path) -> None:
    """Each file with the default port as C99, C11 and, unchanged, C++; the header declares C."""
    for file in DRIVER:
        for language in (["gcc", "-std=c99"], ["gcc", "-std=c11"], ["g++", "-x", "c++"]):
            ran(*language, *FLAGS, *INCLUDES, "-c", "-o", tmp_path / "made.o", file)
    assert " openkpu_text" in ran("nm", tmp_path / "made.o").stdout


def test_driver_calls_nothing_of_a_library(tmp_path: Path) -> None:
    """What the driver's files leave undefined is in others of them."""
    defined, needed = set(), set()
    for file in DRIVER:
        made = tmp_path / f"{file.stem}.o"
        ran("gcc", "-std=c99", "-Os", "-fno-stack-protector", *INCLUDES, "-c", "-o", made, file)
        for kind, name in re.findall(r"^[0-9a-f ]{16} (\w) (\S+)$", ran("nm", made).stdout, re.M):
            (needed if kind == "U" else defined).add(name)
    assert needed - defined <= {"memcpy", "memset"}, needed - defined


def test_cppcheck_finds_nothing() -> None:
    """All checks over the driver and its native tests, but those for a whole program."""
    tool = shutil.which("cppcheck", path=str(Path(sys.executable).parent))
    if tool is None:
        pytest.skip("make setup GROUPS=lint")
    left_out = ["missingIncludeSystem", "unusedFunction", "staticFunction", "checkersReport"]
    left_out += ["normalCheckLevelMaxBranches", "missingInclude", "unmatchedSuppression"]
    words = [tool, "--std=c99", "--enable=all", "--quiet", "--error-exitcode=1", "--inline-suppr"]
    words += [f"--suppress={name}" for name in left_out]
    ran(*words, *INCLUDES, f"-I{ROOT / 'tb' / 'soc'}", *DRIVER, ROOT / "tb/soc/driver_tests.c")


def test_every_function_is_declared_and_defined() -> None:
    """The interface in openkpu.h is what the files define."""
    header = (ROOT / "sw" / "openkpu.h").read_text()
    declared = set(re.findall(r"\b(openkpu_\w+)\([^;{]*\);", header))
    assert len(declared) > 20
    code = "\n".join(file.read_text() for file in DRIVER)
    defined = set(re.findall(r"^\w[\w *]*?\b(openkpu_\w+)\([^;]*?\) \{", code, re.MULTILINE))
    internal = (ROOT / "sw" / "openkpu_internal.h").read_text()
    internal_names = set(re.findall(r"\b(openkpu_\w+)\([^;{]*\);", internal))
    assert declared == defined - internal_names


def test_layout_of_the_page_is_that_of_the_image() -> None:
    """The last words of the header and of a tensor."""
    rows = re.findall(
        r"^\| ([\d, ]+|\d+ and on) \| (.*?) \|$",
        PAGE.partition("## 5")[2].partition("## 6")[0],
        re.MULTILINE,
    )
    words = [int(w) for row, _ in rows[:-1] for w in row.split(",")]
    assert words == list(range(26))
    assert rows[-1][0] == f"{image.FIELDS} and on"
    assert f"{image.TENSOR_FIELDS} words for each tensor" in rows[-1][1]


def test_code_of_the_page_is_the_drivers() -> None:
    """Every block of C is one that `openkpu page-tables` copies out of sw/."""
    page = (ROOT / "docs" / "programming.md").read_text()
    blocks = re.findall(r"^```c\n.*?^```$", page, re.MULTILINE | re.DOTALL)
    assert blocks == [driver_code.block(name) for name in driver_code.PARTS]
