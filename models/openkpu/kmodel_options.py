# SPDX-License-Identifier: Apache-2.0
"""Options of `openkpu kmodel`, apart from what reads a model: the list of commands has them too."""

from __future__ import annotations

import argparse
import math

MOST = 1e6  # of a scale or bias, either sign


def given_name(text: str) -> str:
    """argparse type: a name; an empty one would mean that none is given."""
    if not text:
        raise argparse.ArgumentTypeError("'': expected a name")
    return text


def number(text: str) -> float:
    """argparse type: a number that float inputs bear."""
    try:
        value = float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        value = math.nan
    if not abs(value) <= MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: expected a number up to {MOST:g}")
    return value


def add_kmodel_options(parser: argparse.ArgumentParser) -> None:
    """Show what is in a K210 model."""
    parser.add_argument(
        "file",
        type=given_name,
        help="kmodel v0 (model.bin), v1, v3, v4 or v5; of a package: file.kfpkg:name",
    )
    parser.add_argument(
        "--numbering", help="release of nncase whose byte code a v5 file has (found out)"
    )
    parser.add_argument("--image", type=given_name, help="run the golden model on this picture")
    parser.add_argument("--bgr", action="store_true", help="blue plane first")
    parser.add_argument("--scale", type=number, help="float inputs: pixel * SCALE + BIAS (1/255)")
    parser.add_argument("--bias", type=number, help="float inputs: as above (0)")
    parser.add_argument(
        "--detector",
        type=given_name,
        help="JSON with anchors or priors, classes, threshold, nms (docs/models.md)",
    )
    parser.add_argument("--png", type=given_name, help="write the picture with boxes here")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument(
        "--functions", action="store_true", help="the KPU functions of a v5 file one by one"
    )
