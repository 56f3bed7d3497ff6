# SPDX-License-Identifier: Apache-2.0
"""The C code of docs/programming.md: it compiles without a warning, and runs the RTL."""

import re
import subprocess
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tb.runs import launch
from openkpu_tb.simrun import run_bench

PAGE = ROOT / "docs" / "programming.md"
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Werror"]
# where the test puts the platform's functions
PLATFORM = """
static uint32_t (*read32)(uint32_t);
static void (*write32)(uint32_t, uint32_t);
static uint32_t (*read8)(uint32_t);
static void (*write8)(uint32_t, uint32_t);
static void (*wait_irq)(void);
void platform(void *r32, void *w32, void *r8, void *w8, void *irq) {
  read32 = (uint32_t (*)(uint32_t))r32;
  write32 = (void (*)(uint32_t, uint32_t))w32;
  read8 = (uint32_t (*)(uint32_t))r8;
  write8 = (void (*)(uint32_t, uint32_t))w8;
  wait_irq = (void (*)(void))irq;
}
uint32_t bus_read32(uint32_t offset) { return read32(offset); }
void bus_write32(uint32_t offset, uint32_t value) { write32(offset, value); }
uint8_t bus_read8(uint32_t offset) { return (uint8_t)read8(offset); }
void bus_write8(uint32_t offset, uint8_t value) { write8(offset, value); }
void wait_for_irq(void) { wait_irq(); }
"""


@pytest.mark.check
def test_code_of_the_page_runs_the_device(tmp_path: Path) -> None:
    """All code blocks are one file; its functions run layers, bursts, lists and streams."""
    blocks = re.findall(r"^```c\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    source, library = tmp_path / "driver.c", tmp_path / "driver.so"
    source.write_text("\n".join([*blocks, PLATFORM]))
    command = ["gcc", *FLAGS, "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
    built = subprocess.run([*command, "-o", library, source], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    config = configs.load_config("nano")
    run_bench(
        "icarus",
        "tb_top",
        launch.SOURCES,
        "tb.device.programming_tests",
        params=launch.parameters(config, 1 << 20),
        public=launch.PUBLIC,
        random_start=False,
        env={"OKPU_CODE": str(library)},
    )
