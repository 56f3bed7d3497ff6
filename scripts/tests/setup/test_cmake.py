# SPDX-License-Identifier: Apache-2.0
"""The driver's CMake target: from the folder and installed, as docs/driver.md says."""

import re
import shutil
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from scripts.tests.checkouts import ran
from scripts.tests.documents.test_docs import DOCS, blocks, section

pytestmark = pytest.mark.skipif(not shutil.which("cmake"), reason="there is no cmake on the path")
PROGRAM = """#include "openkpu.h"
#include <stdio.h>
int main(void) {
  static struct openkpu dev;
  struct openkpu_network net;
  if (openkpu_open(&dev, &net, "", 0, OPENKPU_CHECK_ALL) != OPENKPU_WRONG_ORDER) return 1;
  printf("%06x %s\\n", (unsigned)openkpu_version(), openkpu_text(dev.error.code));
  return 0;
}
"""
PORT = """#include <stdint.h>
static inline uint32_t nothing_there(uint32_t offset) { return offset; }
#define OPENKPU_READ32(port, offset) ((void)(port), nothing_there(offset))
#define OPENKPU_WRITE32(port, offset, value) ((void)(port), (void)(offset), (void)(value))
"""


def lists(folder: Path, *lines: str) -> None:
    """A project of a user: a program in C."""
    folder.mkdir()
    (folder / "main.c").write_text(PROGRAM)
    head = ["cmake_minimum_required(VERSION 3.16)", "project(mine C)"]
    text = [*head, "add_executable(main main.c)", *lines]
    (folder / "CMakeLists.txt").write_text("\n".join(text) + "\n")


def built(folder: Path, *options: str) -> str:
    """What the program of a project prints."""
    build = folder / "build"
    ran("cmake", "-S", folder, "-B", build, *options)
    ran("cmake", "--build", build)
    return ran(build / "main").stdout


@pytest.mark.check
def test_added_as_a_folder(tmp_path: Path) -> None:
    """The lines of the page, and with a port; the version is the driver's."""
    page = section(DOCS / "driver.md", "CMake")
    (text,) = blocks(page, "cmake")
    lines = text.replace("third_party/openkpu", str(ROOT)).strip().splitlines()
    lists(tmp_path / "plain", *lines)
    header = (ROOT / "sw" / "openkpu.h").read_text()
    (version,) = re.findall(r"OPENKPU_DRIVER_VERSION 0x(\w{6})u", header)
    assert built(tmp_path / "plain").startswith(f"{version} a call that needs another")
    given = re.findall(r"project\(openkpu VERSION (\d+)\.(\d+)\.(\d+)", cmake_lists())
    assert given == [tuple(str(int(version[i : i + 2], 16)) for i in (0, 2, 4))]
    lists(tmp_path / "port", *lines)
    (tmp_path / "port" / "my_port.h").write_text(PORT)
    assert built(tmp_path / "port", "-DOPENKPU_PORT=my_port.h").startswith(version)
    (library,) = (tmp_path / "port" / "build").rglob("libopenkpu.a")
    assert "nothing_there" in ran("nm", "--defined-only", library).stdout


@pytest.mark.check
def test_installed(tmp_path: Path) -> None:
    """find_package finds what was installed, and needs nothing of the checkout."""
    where = tmp_path / "usr"
    (tmp_path / "my_port.h").write_text(PORT)
    port = f"-DOPENKPU_PORT={tmp_path / 'my_port.h'}"
    ran("cmake", "-S", ROOT / "sw", "-B", tmp_path / "build", port)
    ran("cmake", "--build", tmp_path / "build")
    ran("cmake", "--install", tmp_path / "build", "--prefix", where)
    names = {file.name for file in (where / "include" / "openkpu").iterdir()}
    assert names == {"openkpu.h", "openkpu_port.h", "openkpu_regs.h", "my_port.h"}
    (tmp_path / "my_port.h").unlink()
    texts = {p: p.read_text() for p in where.rglob("*.cmake")}
    kept = [p for p, text in texts.items() if str(ROOT) in text or str(tmp_path) in text]
    assert not kept, kept
    line = "target_link_libraries(main PRIVATE openkpu::openkpu)"
    lists(tmp_path / "mine", "find_package(openkpu 1.0 REQUIRED)", line)
    assert "a call that needs another" in built(tmp_path / "mine", f"-DCMAKE_PREFIX_PATH={where}")


def cmake_lists() -> str:
    return (ROOT / "sw" / "CMakeLists.txt").read_text()


def test_every_file_of_the_driver() -> None:
    """The library has all the sources of sw/, and installs its public headers."""
    text = cmake_lists()
    (listed,) = re.findall(r"add_library\(openkpu STATIC ([^)]*)\)", text)
    assert listed.split() == sorted(path.name for path in (ROOT / "sw").glob("*.c"))
