# SPDX-License-Identifier: Apache-2.0
"""Faults planted in the driver, one at a time: the tests of driver_tests.c see each of them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tb import verilated
from tb.soc.test_driver import AHEAD, BENCH, SECONDS, flags_of
from tb.soc.test_driver import data as data

pytestmark = pytest.mark.nightly
# name: file, what it has, what it gets, the test that must fail
FAULTS = {
    "no_busy": (
        *("openkpu.c", "if (dev->state == OPENKPU_STATE_IDLE) return", "if (dev->state) return"),
        "two_runs",
    ),
    "no_reset": (
        *("openkpu.c", "OPENKPU_AI_CTRL, OPENKPU_AI_CTRL_SOFT_RESET_MASK", "OPENKPU_AI_CTRL, 0"),
        "lost_interrupt",
    ),
    "old_events": ("openkpu.c", "dev->events = 0; /* before", "/* before", "by_interrupt"),
    "any_config": ("openkpu_image.c", "!= dev->config", "== 0", "other_configuration"),
    "no_crc": ("openkpu_image.c", "!= field(bytes, IMAGE_BODY_CRC)", "== 0", "corrupted"),
    "any_place": (
        "openkpu_image.c",
        "address != field(bytes, IMAGE_BASE)",
        "!address",
        "misplaced",
    ),
    "word_order": (
        *("openkpu_layers.c", "OPENKPU_LAYER_ARGUMENT_FIFO + 4,", "OPENKPU_LAYER_ARGUMENT_FIFO,"),
        "layers",
    ),
    "no_stride": ("openkpu.c", "AI_RES_STRIDE, result_stride", "AI_RES_STRIDE, 0", "stream"),
    "all_rows": ("openkpu_layers.c", "row + rows <= dev->rows", "row + rows <= 32768", "small_ram"),
    "old_rows": (
        "openkpu.c",
        "wr(dev, OPENKPU_AI_SPARE_ROWS, 0)",
        "rd(dev, 0)",
        "spare_rows_of_one",
    ),
    "no_word_of_rows": (
        *(
            "openkpu.c",
            "AI_SPARE_ROWS, spare);\n  return openkpu_check(dev)",
            "AI_SPARE_ROWS, spare);\n  return 0",
        ),
        "spare_rows_of_one",
    ),
    "their_int_en": (
        "openkpu_layers.c",
        "(word & ~OPENKPU_LAYER_INTERRUPT_ENABE_INT_EN_MASK)",
        "word",
        "bits_of_another_driver",
    ),
    "their_data_out": (
        "openkpu_layers.c",
        "(word & ~OPENKPU_LAYER_DMA_PARAMETER_SEND_DATA_OUT_MASK)",
        "word",
        "bits_of_another_driver",
    ),
    "gaps": ("openkpu.c", "stride <= bytes", "1", "between_results"),
    "empty_fifos": (
        "openkpu.c",
        "OPENKPU_FIFO_CTRL, OPENKPU_ALL_FIFOS",
        "OPENKPU_FIFO_CTRL, 0",
        "left_behind",
    ),
    "silent_stop": (
        "openkpu.c",
        "  if (finished) *finished = dev->finished;\n  return code;\n}\n/* page end */\n",
        "  if (finished && !code) *finished = dev->finished;\n  return code;\n}\n/* page end */\n",
        "unusual",
    ),
    "counted_again": (
        *("openkpu.c", "code = openkpu_check(dev); /* a refused", "code = 0; /* a refused"),
        "refused_start",
    ),
    "any_stride": (
        "openkpu.c",
        "if (count == 1) pixel_stride",
        "if (!count) pixel_stride",
        "refused_start",
    ),
    "open_masks": (
        *(
            "openkpu.c",
            "if (dev->by_irq) openkpu_wr(dev, OPENKPU_AI_INT_MASK, 0)",
            "openkpu_wr(dev, OPENKPU_AI_INT_MASK, 0)",
        ),
        "polled",
    ),
    "served_while_polled": ("openkpu.c", " || !dev->by_irq) return 0", ") return 0", "polled"),
    "dirty_input": ("openkpu.c", "if (net->loaded_bytes)", "if (0)", "maps_inside"),
    "stale_output": (
        *("openkpu.c", "if (dev->finished < now && dev->stored_bytes)", "if (0)"),
        "maps_inside",
    ),
    "only_a_timeout": (
        *(
            "openkpu.c",
            "openkpu_check(dev);\n  if (code) return code;\n  uint32_t state",
            "OPENKPU_OK;\n  if (code) return code;\n  uint32_t state",
        ),
        "error_behind_a_timeout",
    ),
    "only_stuck": (
        *(
            "openkpu.c",
            "recover(dev) ? OPENKPU_STUCK : dev->error.code",
            "openkpu_reset(dev) ? OPENKPU_STUCK : dev->error.code",
        ),
        "stuck",
    ),
    "storm": ("openkpu.c", "  mask(dev); /* what a boot", "  /* what a boot", "begun_anew"),
    "no_sleep": ("openkpu.c", "dev->events = 0; /* of results", "/* of results", "late_event"),
    "no_limit": ("openkpu.c", "address + bytes <= end", "address < end", "no_room"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str, data: Path, tmp_path: Path) -> None:
    """The driver with the fault fails the test that is named."""
    file, old, new, test = FAULTS[name]
    driver = tmp_path / f"sw_{name}"
    shutil.copytree(ROOT / "sw", driver)
    text = (driver / file).read_text()
    assert text.count(old) >= 1, f"{file} has no {old!r}"
    (driver / file).write_text(text.replace(old, new))
    device = configs.load_config("nano")
    folder = verilated.model("openkpu_top", ["rtl/**/*.v"], device.parameters | AHEAD)
    sources = [*sorted(driver.glob("*.c")), *BENCH]
    flags = [*flags_of(device), "-Wno-error"]
    program = verilated.program(folder, "openkpu_top", sources, f"fault_{name}", flags)
    try:
        done = subprocess.run(
            [program, data, test], capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode != 0, f"{test} passes"
    finally:
        program.unlink()
