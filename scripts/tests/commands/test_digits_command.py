# SPDX-License-Identifier: Apache-2.0
"""`make sim` without a model: pictures of digits in a terminal and in a file."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from openkpu import digits
from openkpu_tools.commands import digits_picture, run_digits, sim
from openkpu_tools.report import LayerRecord

TEST = digits.load_data()[1]


def layer(name: str, cycles: int | None, **stalls: int) -> LayerRecord:
    every = dict.fromkeys(digits_picture.COLOURS, 0)
    del every["array"]
    return LayerRecord(
        name=name, in_shape=[1], out_shape=[1], cycles=cycles, macs=0, macs_gated=0,
        stalls=None if cycles is None else {**every, **stalls}, roofline_cycles=1,
        efficiency=None, mismatching_bytes=0,
    )  # fmt: skip


def test_a_scan_in_a_terminal() -> None:
    """Four lines of eight characters; the greys are those of the two lines of pixels."""
    scan = np.zeros((8, 8), np.uint8)
    scan[2, 0], scan[3, 0], scan[7, 7] = 16, 8, 16
    lines = run_digits.picture(scan)
    assert len(lines) == 4 and all(line.count(run_digits.HALF) == 8 for line in lines)
    assert lines[1].startswith("\N{ESCAPE}[38;5;255;48;5;243m")
    assert lines[3].endswith(f"38;5;232;48;5;255m{run_digits.HALF}{run_digits.END}")


def test_plain_without_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    png = tmp_path / "digits.png"
    assert sim.main(["--golden", "--images=3", f"--png={png}"]) == 0
    said = capsys.readouterr().out
    assert "\N{ESCAPE}" not in said and "predicted" in said and f"picture: {png}" in said
    assert said.count("make ") == 2  # what to try next
    with Image.open(png) as drawn:
        scan = np.array(drawn.convert("L"))[8:88, 8:88]
    want = 255 - TEST.images[0, 0].astype(int) * 255 // 16
    assert (scan == want.repeat(10, 0).repeat(10, 1)).all()


def test_time_line() -> None:
    """Bars as long as the layers take, of the colours of their causes; a misread digit is red."""
    records = [layer("image0/L00", 300, bus=100), layer("image0/L01", 100)]
    with_bars = digits_picture.draw_digits(
        TEST.images, np.array([TEST.labels[0]]), TEST.labels, records
    )
    without = digits_picture.draw_digits(
        TEST.images, np.array([TEST.labels[0]]), TEST.labels, [layer("image0/L00", None)]
    )
    assert with_bars.height > without.height
    pixels = np.array(with_bars)
    bars = pixels[without.height + 3 * digits_picture.TEXT :]
    count = {
        cause: int((bars == np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])).all(2).sum())
        for cause, colour in digits_picture.COLOURS.items()
    }
    assert count["array"] == pytest.approx(3 * count["bus"], rel=0.05) and count["bus"]
    assert not count["weights"]
    wrong = digits_picture.draw_digits(TEST.images, np.array([9 - TEST.labels[0]]), TEST.labels, [])
    red = np.array(wrong).astype(int)
    assert (red[..., 0] - red[..., 1] > 60).any()
    right = np.array(without).astype(int)
    assert not (right[..., 0] - right[..., 1] > 60).any()
