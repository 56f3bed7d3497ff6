# SPDX-License-Identifier: Apache-2.0
"""The main job: handwritten digits that training never saw, classified by the RTL."""

import argparse
import os
import sys

import numpy as np
import numpy.typing as npt

from openkpu import digits, terminal
from openkpu.checkout import IN_CHECKOUT
from openkpu.digits import float_model
from openkpu_tools import report
from openkpu_tools.command import writing
from openkpu_tools.commands import digits_picture, run_network

# on Icarus as many as half a minute of processor time holds
IMAGES = {"icarus": 4, "verilator": 100, "golden": 360}
SCANS = 360  # held out, and so the most that can be asked for


def sim_digits(args: argparse.Namespace) -> bool:
    """Classify; True when every byte of every layer matched."""
    network = digits.load_network(args.config.ai_ram_rows)
    test = digits.load_data()[1]
    assert len(test) == SCANS
    run_network.check_network(network, args.config)
    count = args.images or IMAGES["golden" if args.golden else args.sim]
    print(
        f"handwritten digits: {count} of {len(test)} held-out scans, {len(network.layers)} layers,"
        f" configuration {args.config.name} ({args.config.macs} MACs)"
    )
    answers = np.array([digits.classify(network.run(image).y) for image in test.pixels])
    labels, classes = test.labels, list[int]()

    def describe(done: run_network.Inference) -> str:
        classes.append(digits.classify(done.y))
        true = int(labels[done.number])
        said = line(done.number, classes[-1], true, done.cycles, done.wrong)
        return shown_with(test.images[done.number, 0], said)

    pixels = test.pixels[:count]
    records, per_inference, good = run_network.run_inferences(args, network, pixels, describe)
    shown = np.array(classes)
    exact = float_model.predict_classes(digits.load_float(), test.images)
    print("\naccuracy")
    if not args.golden:
        images = "1 image" if len(shown) == 1 else f"{len(shown)} images"
        print(f"  RTL     {share(shown, labels[: len(shown)])} on the {images} it ran")
        print(f"  golden  {share(answers[:count], labels[:count])} on the same")
    print(f"  golden  {share(answers, labels)} on all {len(test)} held-out scans")
    print(f"  float   {share(exact, labels)} on all {len(test)} held-out scans")
    more = run_network.network_summary(args, network, records, per_inference)
    report.write_asked(args, records, **more)
    if args.png:
        picture = digits_picture.draw_digits(test.images, shown, labels, records)
        with writing(args.png) as stream:
            picture.save(stream, "PNG")
        print(f"picture: {args.png}")
    if IN_CHECKOUT:
        print("\nnext:  make sim SIM=verilator CONFIG=k210        more digits, on 576 multipliers")
        print("       make predict CONFIG=nano MATMUL=64x64x64  cycles without a simulator")
    else:
        print("\nnext:  openkpu predict --config nano --matmul 64x64x64   cycles of a product")
    return good


def share(found: npt.NDArray, labels: npt.NDArray) -> str:
    """Percentage of right answers."""
    return f"{100 * float(np.mean(np.asarray(found) == labels)):6.2f} %" if len(found) else "-"


# two lines of pixels in one of characters: the upper one is drawn, the lower one is its background
HALF, END = "\N{UPPER HALF BLOCK}", "\N{ESCAPE}[0m"
BESIDE = 2 + 8 + 2  # characters left of the text
DARKEST, LIGHTEST = 232, 255  # of a terminal's 256 colours, the greys


def picture(image: npt.NDArray[np.uint8]) -> list[str]:
    """A scan (8, 8), 0..16, in four lines of eight characters for a terminal with 256 colours."""
    grey = DARKEST + image.astype(int) * (LIGHTEST - DARKEST) // 16
    cell = "\N{ESCAPE}[38;5;{};48;5;{}m" + HALF
    return [
        "".join(cell.format(upper, lower) for upper, lower in zip(*grey[y : y + 2], strict=True))
        + END
        for y in range(0, len(grey), 2)
    ]


def shown_with(image: npt.NDArray[np.uint8], text: str) -> str:
    """The line about a scan, its picture at the left on a terminal that has room and colours."""
    encoding = sys.stdout.encoding or "ascii"
    room = terminal.columns() > len(text) + BESIDE and not os.environ.get("NO_COLOR")
    if not room or not encoding.lower().startswith("utf"):
        return text
    beside = ["", text, "", ""]
    return "\n".join(f"  {row}  {words}" for row, words in zip(picture(image), beside, strict=True))


def line(number: int, found: int, true: int, cycles: int | None, wrong: int) -> str:
    """A line of the table."""
    verdict = "" if found == true else "  misread"
    verdict += f"  {wrong} bytes differ from the golden model" if wrong else ""
    took = f"  {cycles:>8} cycles" if cycles is not None else ""
    return f"image {number:>3}  predicted {found}  true {true}{took}{verdict}"
